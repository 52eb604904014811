// How `ridge distill` and `ridge tune` reach libtorch: a program of its own, ridge-distill, has the trainers, so that
// ridge itself stays small and starts at once. Both parse the same command line with cli/distill.cpp and cli/tune.cpp.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "distill/job.h"
#include "distill/train.h"
#include "distill/tune.h"

namespace ridge::cli {

// ridge-distill, beside this program or in libexec; none: this build has no trainer.
std::optional<std::string> find_trainer();
// In ridge: becomes ridge-distill, and returns only if that cannot be; the job is what the command line says. In
// ridge-distill: trains.
Result<distill::TrainReport> start_training(const distill::DistillJob& job, const distill::TrainHooks& hooks);
Result<distill::TuneReport> start_tuning(const distill::TuneJob& job, const distill::TrainHooks& hooks);

}  // namespace ridge::cli
