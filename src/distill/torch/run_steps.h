// The loop around a training: checkpoints now and then and when interrupted, progress; and the border that no exception
// of libtorch crosses.
//
//   return guarded("--batch or --context", [&]() -> Result<void> {
//     set_up_torch(threads);
//     …
//     return run_steps(training, {.steps = 1000, .checkpoint_every = 200}, hooks);
//   });
#pragma once

#include <torch/torch.h>

#include <new>
#include <string>

#include "base/result.h"
#include "distill/torch/checkpoint.h"
#include "distill/train.h"

namespace ridge::distill {

class Training {
 public:
  virtual ~Training() = default;
  virtual const CheckpointState& state() const = 0;
  virtual double last_loss() const = 0;
  // One step; `refused` where the loss or its gradient is no finite number: nothing has changed then.
  virtual Result<void> advance() = 0;
  virtual Result<void> save() = 0;

  uint64_t step() const { return state().step; }
};

struct StepsToRun {
  uint64_t steps = 0, checkpoint_every = 0;
};

// From the training's step on, until it has done `steps`. An I/O error when interrupted, after saving.
Result<void> run_steps(Training& training, const StepsToRun& steps, const TrainHooks& hooks);

// threads 0: all usable CPUs.
void set_up_torch(int threads);

// What went wrong in libtorch: does_not_fit, with what to give less of, where memory ran out, else a bug.
Error error_of(const c10::Error& e, const std::string& give_less);

template <class Job>
auto guarded(const std::string& give_less, const Job& job) -> decltype(job()) {
  try {
    return job();
  } catch (const c10::Error& e) {
    return error_of(e, give_less);
  } catch (const std::bad_alloc&) {
    return does_not_fit("out of memory while training: give " + give_less);
  }
}

}  // namespace ridge::distill
