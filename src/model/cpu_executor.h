// The CPU as an executor: a context is the block's panels, read and rearranged as a resident model's are (direct reads,
// packing while the next read is under way), with inputs, outputs and int8 activations of its own.
//
// The I/O engine and the two load buffers are shared by all contexts and exist from create() on: they are no part of a
// context's overhead.
//
//   auto cpu = RIDGE_TRY(CpuExecutor::create({.program = &program, .pool = &pool, .kernels = &kernels}));
//   RIDGE_TRY(cpu->prepare(0));
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "memory/io_engine.h"
#include "model/executor.h"

namespace ridge {

struct CpuExecutorOptions {
  const Program* program = nullptr;  // must outlive the executor, as must pool and kernels
  ThreadPool* pool = nullptr;
  const Kernels* kernels = nullptr;
  uint32_t tokens = 1;  // most rows of a run
  bool exact = false;   // float activations for all types
  IoKind io = IoKind::automatic;
  Syscalls* syscalls = nullptr;  // nullptr: the real ones (tests make them fail)
};

class CpuExecutor : public Executor {
 public:
  // Opens the files and allocates the load buffers.
  static Result<std::unique_ptr<Executor>> create(const CpuExecutorOptions& options);
};

}  // namespace ridge
