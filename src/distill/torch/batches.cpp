#include "distill/torch/batches.h"

#include <algorithm>

namespace ridge::distill {
namespace {

size_t below(Rng& rng, size_t n) { return static_cast<size_t>(rng.uniform() * static_cast<double>(n)); }

// One stream of numbers for each step.
Rng rng_of_step(uint64_t seed, uint64_t step) {
  uint64_t state = seed;
  return Rng(splitmix64(state) ^ (step * 0x9E3779B97F4A7C15u));
}

TokenId draw(const float* logits, int64_t vocabulary, Rng* rng) {
  const float* best = std::max_element(logits, logits + vocabulary);
  if (rng == nullptr) return static_cast<TokenId>(best - logits);
  double sum = 0;
  for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(static_cast<double>(logits[i] - *best));
  double left = rng->uniform() * sum;
  for (int64_t i = 0; i < vocabulary; ++i) {
    left -= std::exp(static_cast<double>(logits[i] - *best));
    if (left < 0) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(best - logits);
}

}  // namespace

Batch batch_of(const std::vector<std::vector<TokenId>>& rows, uint32_t window) {
  const auto count = static_cast<int64_t>(rows.size());
  auto all = torch::empty({count, int64_t{window} + 1}, torch::kInt64);
  int64_t* to = all.data_ptr<int64_t>();
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
  return {all.narrow(1, 0, window).contiguous(), all.narrow(1, 1, window).contiguous(),
          torch::ones({count * int64_t{window}}), false};
}

std::vector<TokenId> Batches::window_at_random(Rng& rng) const {
  const size_t length = job_.shape.context + 1;
  const auto from = data_.train.begin() + static_cast<std::ptrdiff_t>(below(rng, data_.train.size() - length + 1));
  return {from, from + static_cast<std::ptrdiff_t>(length)};
}

void Batches::add_rationale(Rng& rng, std::vector<TokenId>& row, std::vector<float>& weight) const {
  const RationaleItem& item = rationales_.train[below(rng, rationales_.train.size())];
  row = item.prompt;
  row.insert(row.end(), item.reply.begin(), item.reply.end());
  const size_t end = row.size(), length = job_.shape.context + 1;
  row.resize(length, row.back());
  std::fill(weight.begin(), weight.end(), 0.0f);
  std::fill(weight.begin() + static_cast<std::ptrdiff_t>(item.prompt.size()) - 1,
            weight.begin() + static_cast<std::ptrdiff_t>(std::min(end, length)) - 1, 1.0f);
}

Batch Batches::own_text(Rng& rng, const Student& student) const {
  const uint32_t window = job_.shape.context, own = job_.on_policy_tokens;
  std::vector<std::vector<TokenId>> rows;
  for (uint32_t b = 0; b < job_.optimizer.batch; ++b) {
    rows.push_back(window_at_random(rng));
    rows.back().resize(window - own);
  }
  write_on(student, rows, own, &rng);
  // The last token's successor does not count: it would be one more pass for one position.
  for (auto& row : rows) row.push_back(row.back());
  Batch batch = batch_of(rows, window);
  auto weight = torch::zeros({int64_t{job_.optimizer.batch}, int64_t{window}});
  weight.narrow(1, window - own - 1, own).fill_(1);
  batch.weight = weight.flatten();
  batch.own_text = true;
  return batch;
}

Batch Batches::of_step(uint64_t step, const Student* student) const {
  Rng rng = rng_of_step(job_.optimizer.seed, step);
  if (job_.on_policy > 0 && rng.uniform() < job_.on_policy) return own_text(rng, *student);
  const uint32_t window = job_.shape.context;
  std::vector<std::vector<TokenId>> rows;
  std::vector<float> weights;
  for (uint32_t b = 0; b < job_.optimizer.batch; ++b) {
    std::vector<float> weight(window, 1.0f);
    rows.emplace_back();
    if (!rationales_.train.empty() && rng.uniform() < job_.rationale_share) {
      add_rationale(rng, rows.back(), weight);
    } else {
      rows.back() = window_at_random(rng);
    }
    weights.insert(weights.end(), weight.begin(), weight.end());
  }
  Batch batch = batch_of(rows, window);
  batch.weight = torch::tensor(weights);
  return batch;
}

std::vector<Batch> Batches::in_order(const std::vector<TokenId>& text, uint64_t tokens, const DistillJob& job) {
  const uint32_t window = job.shape.context;
  const uint64_t windows = std::max<uint64_t>(1, std::min<uint64_t>(tokens, text.size() - 1) / window);
  std::vector<Batch> out;
  std::vector<std::vector<TokenId>> rows;
  for (uint64_t w = 0; w < windows; ++w) {
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(w * window);
    rows.emplace_back(from, from + window + 1);
    if (rows.size() < job.optimizer.batch && w + 1 < windows) continue;
    out.push_back(batch_of(rows, window));
    rows.clear();
  }
  return out;
}

void write_on(const Student& student, std::vector<std::vector<TokenId>>& rows, uint32_t count, Rng* rng) {
  torch::NoGradGuard off;
  const size_t context = student.shape().context;
  for (uint32_t i = 0; i < count; ++i) {
    size_t longest = 0;
    for (const auto& row : rows) longest = std::max(longest, row.size());
    longest = std::min(longest, context);
    // What stands behind the end of a shorter row is not seen by its last token.
    auto ids = torch::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, torch::kInt64);
    for (size_t b = 0; b < rows.size(); ++b) {
      std::copy_n(rows[b].begin(), std::min(rows[b].size(), context), ids.data_ptr<int64_t>() + b * longest);
    }
    const auto logits = student.forward(ids).logits.to(torch::kFloat32).contiguous();
    const int64_t vocabulary = logits.size(2);
    for (size_t b = 0; b < rows.size(); ++b) {
      if (rows[b].size() >= context) continue;
      const auto last = static_cast<int64_t>(b * longest + rows[b].size() - 1);
      rows[b].push_back(draw(logits.data_ptr<float>() + last * vocabulary, vocabulary, rng));
    }
  }
}

double share_of_right_answers(const Student& student, const Rationales& rationales, const Tokenizer& tokenizer) {
  size_t longest = 0, right = 0;
  std::vector<std::vector<TokenId>> rows;
  for (const RationaleItem& item : rationales.held) {
    rows.push_back(item.prompt);
    longest = std::max(longest, item.reply.size());
  }
  write_on(student, rows, static_cast<uint32_t>(longest) + 2, nullptr);
  for (size_t i = 0; i < rows.size(); ++i) {
    const RationaleItem& item = rationales.held[i];
    const auto begin = rows[i].begin() + static_cast<std::ptrdiff_t>(item.prompt.size());
    const std::string reply = tokenizer.decode(std::vector<TokenId>(begin, rows[i].end()), {});
    right += answer_in(reply) == item.answer ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

}  // namespace ridge::distill
