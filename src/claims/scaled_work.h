// Large models of which only the shape is known, whose neurons rest as those of a small student did: every layer's up
// and down matrices are cut into as many groups as the student's layers have, and a pass visits the groups that a token
// of the student touched. The gate, attention and head are read whole.
//
//   sim::NpuWork work = RIDGE_TRY(scaled_work(program, visits, {.passes = 32}));
//
// Not for: which neurons a large model of this kind would touch; that is not known of a model that nobody trained.
#pragma once

#include "base/result.h"
#include "program/program.h"
#include "sim/npu_work.h"

namespace ridge {

struct ScaledOptions {
  uint32_t passes = 32;  // at most; as many as the student has tokens
};

// Layer i of n takes the visits of the student's layer ⌊i·m/n⌋ of m. Multiply-adds go with the bytes. Bad input if the
// visits are not those of blocks of neurons ("blk.0.ffn.3", as `ridge distill --record` writes them), or the program
// has no up and down matrices.
Result<sim::NpuWork> scaled_work(const Program& program, const sim::RecordedTrace& visits,
                                 const ScaledOptions& options);

}  // namespace ridge
