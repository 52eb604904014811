// One training, step by step: what train() runs, open for tests.
//
//   auto trainer = RIDGE_TRY(Trainer::open(job));
//   while (trainer->step() < job.optimizer.steps) RIDGE_TRY(trainer->advance());
//   RIDGE_TRY(trainer->save());
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "distill/importance_map.h"
#include "distill/rationales.h"
#include "distill/text_data.h"
#include "distill/torch/adamw.h"
#include "distill/torch/batches.h"
#include "distill/torch/checkpoint.h"
#include "distill/torch/run_steps.h"
#include "distill/torch/student.h"
#include "distill/torch/teacher.h"
#include "distill/train.h"

namespace ridge::distill {

class Trainer : public Training {
 public:
  // Reads the data, opens the teacher, and makes the student or reads it from the folder's checkpoint.
  static Result<std::unique_ptr<Trainer>> open(const DistillJob& job);

  const CheckpointState& state() const override { return state_; }
  Student& student() { return *student_; }
  double last_loss() const override { return last_loss_; }

  Result<void> advance() override;
  // A point of the curve, with the loss on held-out text.
  void note_point();
  Result<void> save() override;
  // student.gguf, model.safetensors, config.json, draft.gguf.
  Result<void> export_files() const;
  // job.fisher, from windows of the text learned from.
  Result<void> write_fisher();
  Result<TrainReport> report();

 private:
  explicit Trainer(DistillJob job) : job_(std::move(job)) {}
  Result<void> prepare();
  Result<void> resume();
  void make_projections();
  void set_learning_factors();
  uint64_t settings() const;

  struct Terms {
    torch::Tensor total;
    CurvePoint values;
  };
  Result<Terms> loss_of(const Batch& batch);
  torch::Tensor hidden_loss(const Student::Output& out, const TeacherOutput& teacher,
                            const torch::Tensor& weight) const;
  double held_out_loss() const;
  GateRecord gates_on(const std::vector<TokenId>& text) const;
  Result<TouchStats> touches() const;

  DistillJob job_;
  Vocabulary vocabulary_;
  TextData data_;
  Rationales rationales_;
  ImportanceMap map_;
  std::unique_ptr<Student> student_;
  std::unique_ptr<Teacher> teacher_;
  std::vector<Parameter> trained_;  // the student's, then the projections
  std::unique_ptr<AdamW> optimizer_;
  std::unique_ptr<Batches> batches_;
  std::vector<Batch> held_;
  CheckpointState state_;
  double last_loss_ = 0;
};

}  // namespace ridge::distill
