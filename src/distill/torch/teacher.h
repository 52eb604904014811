// Who a student learns from: a checkpoint of this trainer, or any GGUF model that Ridge's engine runs.
//
//   auto teacher = RIDGE_TRY(open_teacher(job, *words.tokenizer));     // nullptr without one
//   TeacherOutput out = RIDGE_TRY(teacher->run(ids, {.hidden = true}));
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "distill/job.h"
#include "text/tokenizer.h"

namespace ridge::distill {

struct TeacherOutput {
  torch::Tensor logits;               // [batch, window, vocabulary]
  std::vector<torch::Tensor> hidden;  // after each block; checkpoints only
};

class Teacher {
 public:
  virtual ~Teacher() = default;
  // ids: int64 [batch, window].
  virtual Result<TeacherOutput> run(const torch::Tensor& ids) = 0;
  virtual uint32_t dim() const = 0;
  virtual uint32_t blocks() const = 0;
};

// Bad input if the vocabularies differ, or hidden states are wanted of an engine, which has none to give.
Result<std::unique_ptr<Teacher>> open_teacher(const DistillJob& job, const Tokenizer& student);

}  // namespace ridge::distill
