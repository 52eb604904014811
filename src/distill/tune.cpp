#include "distill/tune.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge::distill {
namespace {

constexpr std::string_view kTargets[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};

}  // namespace

std::string checkpoint_of(const std::string& adapter) { return adapter + ".checkpoint.safetensors"; }

Result<void> check_tune_job(const TuneJob& job) {
  const Optimizer& o = job.optimizer;
  const Range ranges[] = {{"--rank", double(job.rank), 1, 1024},
                          {"--alpha", job.alpha, 1e-3, 1e6},
                          {"--context", double(job.context), 8, 32768},
                          {"--steps", double(o.steps), 1, 1e9},
                          {"--batch", double(o.batch), 1, 65536},
                          {"--rate", o.rate, 1e-9, 1e6},
                          {"--warmup", o.warmup, 0, 1},
                          {"--decay", o.decay, 0, 10},
                          {"--clip", o.clip, 1e-6, 1e9},
                          {"--held-out", job.held_out, 0.01, 0.5},
                          {"--checkpoint-every", double(job.checkpoint_every), 1, 1e9},
                          {"--evaluate-every", double(job.evaluate_every), 1, 1e9},
                          {"--validation-tokens", double(job.validation_tokens), double(job.context), 1e8}};
  RIDGE_TRY(check_ranges(ranges));
  for (const std::string& target : job.targets) {
    if (std::find(std::begin(kTargets), std::end(kTargets), target) == std::end(kTargets)) {
      return usage_error(fmt::format("--targets {}: not known; give some of {}", target, fmt::join(kTargets, ",")));
    }
    if (std::count(job.targets.begin(), job.targets.end(), target) > 1) {
      return usage_error(fmt::format("--targets: {} is named twice", target));
    }
  }
  if (job.targets.empty()) return usage_error(fmt::format("--targets: names none of {}", fmt::join(kTargets, ",")));
  return {};
}

Account tune_account(const TuneSizes& s, const TuneJob& job) {
  constexpr uint64_t kFloat = sizeof(float);
  const uint64_t positions = uint64_t{job.optimizer.batch} * job.context;
  // What a block keeps for its gradient, and what it takes beside that on the way back.
  const uint64_t scores = s.heads * job.context;
  const uint64_t block =
      16 * s.width + 8 * s.query_width + 4 * s.key_width + 9 * s.ffn + 4 * scores + 7 * uint64_t{job.rank};
  const uint64_t head = std::min<uint64_t>(positions, kHeadPositions) * s.vocabulary;
  Account a;
  a.add("weights, as the file has them", s.weight_bytes);
  // A product's own copy of it in the library included.
  a.add("the largest matrix as floats", 2 * kFloat * s.largest_matrix);
  a.add("adapters, gradients, moments", 5 * kFloat * s.adapters);
  a.add(fmt::format("states of {} × {} tokens", job.optimizer.batch, job.context),
        kFloat * positions * (s.layers + 2) * s.width);
  a.add("activations of a block", kFloat * positions * block);
  a.add("logits of some tokens", 4 * kFloat * head);
  return a;
}

}  // namespace ridge::distill
