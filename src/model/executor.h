// Runs blocks one by one, each in a context of its own: prepare, run, release. The CPU is the first executor
// (cpu_executor.h); an accelerator whose driver wants a context per graph is the next.
//
// Not for: a forward pass on the CPU. Compute takes blocks from a weight source and shares one workspace among all of
// them; what a context of its own costs beside that is what `ridge ladder` measures.
//
//   RIDGE_TRY(executor.prepare(block));                             // weights in memory, ready to run
//   fill(executor.input(slice));
//   Matrix<const float> y = RIDGE_TRY(executor.run(slice, tokens));
//   executor.release(block);                                        // executor.lifecycle(block) tells the cost
//
// One thread uses an executor. What is prepared when it is destroyed is released.
#pragma once

#include <string>

#include "base/matrix.h"
#include "base/result.h"
#include "program/lifecycle.h"
#include "program/program.h"

namespace ridge {

class Executor {
 public:
  virtual ~Executor() = default;

  // The most that prepare() will charge to the process for this block, known before.
  virtual uint64_t needs(BlockId block) const = 0;
  // Loads the block and makes it ready; nothing is left of it after an error. does_not_fit where memory is refused;
  // errors of reading as the weight sources report them.
  virtual Result<void> prepare(BlockId block) = 0;
  virtual bool prepared(BlockId block) const = 0;

  // A linear step of a prepared block (Program::steps): what it reads, [most tokens, cols], owned by the context.
  virtual Matrix<float> input(const Slice& slice) = 0;
  // The first `tokens` rows of the input times the rows of the slice's pieces, one piece after another:
  // [tokens, sum of rows], valid until the next run of this block.
  virtual Result<Matrix<const float>> run(const Slice& slice, size_t tokens) = 0;

  // Gives the memory back. Nothing happens to a block that is not prepared.
  virtual void release(BlockId block) = 0;

  // As measured when the block was last prepared (and released); zeros before.
  virtual const Lifecycle& lifecycle(BlockId block) const = 0;
  virtual const Program& program() const = 0;
  // "CPU, avx512 kernels, 2 threads; io_uring, …", for people.
  virtual std::string description() const = 0;
};

}  // namespace ridge
