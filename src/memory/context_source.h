// A weight source that keeps nothing: each block gets memory of its own when it is asked for, is read, made ready, used
// and given back before the next. What a board does whose runtime holds one context at a time (load, run, release), to
// be compared with pins and reading ahead (`ridge image --lifecycle load-run-release`).
//
// Not for: speed. StreamingSource reads ahead into slots that stay.
//
//   auto source = RIDGE_TRY(ContextSource::create({.program = &program, .pool = &pool, .pack = kernels.pack}));
//   uint64_t charged = ContextSource::memory_bytes(program);
//
// The same bytes in a block's panels as from any other source.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "memory/io_engine.h"
#include "memory/streaming_source.h"
#include "memory/weight_source.h"
#include "program/pass_times.h"

namespace ridge {

struct ContextSourceOptions {
  const Program* program = nullptr;    // must outlive the source
  ThreadPool* pool = nullptr;          // to make blocks ready
  const PackFunction* pack = nullptr;  // table by type, as Kernels::pack; nullptr: the reference
  IoKind io = IoKind::automatic;
  PassTimes* times = nullptr;    // gets load, init and release of every block
  Syscalls* syscalls = nullptr;  // nullptr: the real ones (tests make them fail)
};

class ContextSource : public WeightSource {
 public:
  // Opens the files. Errors as StreamingSource::create().
  static Result<std::unique_ptr<ContextSource>> create(const ContextSourceOptions& options);
  // The most it charges: the largest block as it is read, and as panels.
  static uint64_t memory_bytes(const Program& program);
};

}  // namespace ridge
