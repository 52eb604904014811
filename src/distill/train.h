// Training a student, from a teacher or from the text alone. Declared here without libtorch, so that nobody else parses
// its headers; the code is in torch/, and only a build with libtorch has it.
//
//   RIDGE_TRY(check_job(job));
//   TrainReport report = RIDGE_TRY(train(job, {.interrupted = &flag}));
//
// FOLDER gets checkpoint.safetensors while it runs, and at the end student.gguf, model.safetensors, config.json (and
// draft.gguf where there is an early exit). The curve goes to whoever asks for it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "distill/gate_record.h"
#include "distill/job.h"

namespace ridge::distill {

// Means over the steps since the point before; nats per token.
struct CurvePoint {
  uint64_t step = 0;
  double loss = 0, cross_entropy = 0, divergence = 0, hidden = 0, gates = 0, exit = 0;
  double norm = 0;  // of the gradients, before clipping
  double rate = 0;
  double held_out = 0;  // cross-entropy on text that was held out
};

struct TrainReport {
  StudentShape shape;
  uint64_t steps = 0, tokens = 0;  // trained on
  double seconds = 0;
  double held_out = 0;  // nats per token
  double held_out_per_byte = 0;
  std::optional<double> right_answers;  // share, of rationales held out
  std::optional<TouchStats> touches;    // ReLU students
  std::vector<CurvePoint> curve;
};

struct TrainHooks {
  const std::atomic<bool>* interrupted = nullptr;                       // then the last step is kept in the checkpoint
  std::function<Result<void>(std::span<const CurvePoint>)> curve = {};  // at every checkpoint, and at the end
};

// Bad input for data, checkpoints and teachers that do not fit; does_not_fit; I/O errors. `refused` where the loss is
// no finite number: the last checkpoint stays as it is.
Result<TrainReport> train(const DistillJob& job, const TrainHooks& hooks);

// The checkpoint that train() keeps in a folder.
std::string checkpoint_path(const std::string& folder);

}  // namespace ridge::distill
