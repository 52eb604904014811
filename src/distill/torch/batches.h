// Which windows a step learns from, chosen by seed and step alone, so that a resumed training sees the same; and text
// that a student writes itself.
//
//   Batches batches(job, data, rationales);
//   Batch batch = batches.of_step(17, &student);
#pragma once

#include <torch/torch.h>

#include <vector>

#include "distill/rationales.h"
#include "distill/text_data.h"
#include "distill/torch/student.h"
#include "text/rng.h"

namespace ridge::distill {

struct Batch {
  torch::Tensor inputs, targets;  // int64 [batch, window]
  torch::Tensor weight;           // [batch · window]: 1 where the next token is scored
  bool own_text = false;          // written by the student: the teacher alone judges it
};

// Rows of window + 1 tokens as a batch in which every position counts.
Batch batch_of(const std::vector<std::vector<TokenId>>& rows, uint32_t window);

class Batches {
 public:
  Batches(const DistillJob& job, const TextData& data, const Rationales& rationales)
      : job_(job), data_(data), rationales_(rationales) {}
  // The student is asked where it writes texts itself (job.on_policy), and may be none elsewhere.
  Batch of_step(uint64_t step, const Student* student) const;
  // `count` windows one after the other, from the held-out text or the beginning of the other.
  static std::vector<Batch> in_order(const std::vector<TokenId>& text, uint64_t tokens, const DistillJob& job);

 private:
  std::vector<TokenId> window_at_random(Rng& rng) const;
  Batch own_text(Rng& rng, const Student& student) const;
  void add_rationale(Rng& rng, std::vector<TokenId>& row, std::vector<float>& weight) const;

  const DistillJob& job_;
  const TextData& data_;
  const Rationales& rationales_;
};

// Appends `count` tokens to each row, the likeliest ones or, with a generator, drawn from the student's distribution;
// the rows may differ in length, and none grows beyond the context. Each token costs a whole pass: for tens of tokens.
void write_on(const Student& student, std::vector<std::vector<TokenId>>& rows, uint32_t count, Rng* rng);

// Share of the questions held out to which the student, writing greedily, gives the very answer.
double share_of_right_answers(const Student& student, const Rationales& rationales, const Tokenizer& tokenizer);

}  // namespace ridge::distill
