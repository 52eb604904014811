// What the command lines of `ridge distill` and `ridge tune` share: how long, at which rate, and how often it is
// judged.
//
//   TrainingFlags training{.steps = 200, .batch = 4};
//   add_training_flags(command, training, job.optimizer, "of windows");
//   RIDGE_TRY(read_training_flags(training, job));
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "base/result.h"
#include "distill/job.h"

namespace ridge::cli {

struct TrainingFlags {
  int64_t steps = 0, batch = 0, seed = 1;
  int64_t checkpoint_every = 0, evaluate_every = 0, validation_tokens = 0;
  bool resume = false;
};

// What the fields hold is the default. `seeded`: what the seed decides.
void add_training_flags(CLI::App& c, TrainingFlags& f, distill::Optimizer& o, const char* seeded);

// What a flag with a whole number says, for fields of 32 bits; fails with Code::usage.
Result<uint32_t> whole_number(int64_t value, const char* flag);

// Job: DistillJob or TuneJob.
template <class Job>
Result<void> read_training_flags(const TrainingFlags& f, Job& job) {
  job.optimizer.steps = RIDGE_TRY(whole_number(f.steps, "--steps"));
  job.optimizer.batch = RIDGE_TRY(whole_number(f.batch, "--batch"));
  job.optimizer.seed = static_cast<uint64_t>(f.seed);
  job.checkpoint_every = RIDGE_TRY(whole_number(f.checkpoint_every, "--checkpoint-every"));
  job.evaluate_every = RIDGE_TRY(whole_number(f.evaluate_every, "--evaluate-every"));
  job.validation_tokens = RIDGE_TRY(whole_number(f.validation_tokens, "--validation-tokens"));
  job.resume = f.resume;
  return {};
}

}  // namespace ridge::cli
