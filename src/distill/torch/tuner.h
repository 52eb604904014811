// One training of adapters, step by step: what tune() runs, open for tests.
//
//   auto tuner = RIDGE_TRY(Tuner::open(job));
//   while (tuner->step() < job.optimizer.steps) RIDGE_TRY(tuner->advance());
//   RIDGE_TRY(tuner->write_adapter());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distill/text_data.h"
#include "distill/torch/adamw.h"
#include "distill/torch/batches.h"
#include "distill/torch/checkpoint.h"
#include "distill/torch/frozen_model.h"
#include "distill/torch/run_steps.h"
#include "distill/tune.h"

namespace ridge::distill {

class Tuner : public Training {
 public:
  // Settles the memory before weights are read; goes on from the checkpoint where the job says so.
  static Result<std::unique_ptr<Tuner>> open(const TuneJob& job);

  const CheckpointState& state() const override { return state_; }
  double last_loss() const override { return last_loss_; }
  Result<void> advance() override;
  Result<void> save() override;

  FrozenModel& model() { return *model_; }
  // A whole GGUF adapter, or none.
  Result<void> write_adapter() const;
  TuneReport report() const;

 private:
  explicit Tuner(TuneJob job) : job_(std::move(job)) {}
  Result<void> prepare();
  Result<void> check_files() const;
  Result<void> settle_memory();
  Result<void> resume();
  uint64_t settings() const;
  double held_out_loss() const;

  TuneJob job_;
  DistillJob windows_;  // which windows a step sees, as Batches wants it
  Vocabulary vocabulary_;
  TextData data_;
  Rationales none_;
  std::unique_ptr<FrozenModel> model_;
  std::unique_ptr<AdamW> optimizer_;
  std::unique_ptr<Batches> batches_;
  std::vector<Batch> held_;
  CheckpointState state_;
  uint64_t needed_ = 0;
  double last_loss_ = 0;
};

}  // namespace ridge::distill
