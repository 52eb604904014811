#include "distill/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/units.h"
#include "machine/memory_limits.h"

namespace ridge::distill {
namespace {

struct FfnName {
  FfnKind kind;
  std::string_view name, architecture;
};
constexpr std::array kFfns = {FfnName{FfnKind::swiglu, "swiglu", "llama"},
                              FfnName{FfnKind::reglu, "reglu", "reglu-llama"},
                              FfnName{FfnKind::relu2, "relu2", "arcee"}};

constexpr std::array<std::pair<Divergence, std::string_view>, 4> kDivergences = {
    {{Divergence::forward, "forward"},
     {Divergence::reverse, "reverse"},
     {Divergence::skew_forward, "skew-forward"},
     {Divergence::skew_reverse, "skew-reverse"}}};

// Weights, gradients and two moments of AdamW; activations of a step, roughly: what a block keeps for its gradient, and
// the logits of the student and the teacher with their softmaxes.
uint64_t bytes_of_training(const DistillJob& job) {
  const StudentShape& s = job.shape;
  const uint64_t positions = uint64_t{job.optimizer.batch} * s.context;
  const uint64_t block = 14 * uint64_t{s.dim} + 5 * uint64_t{s.ffn} + 3 * uint64_t{s.heads} * s.context;
  const uint64_t logits = (job.teacher.empty() ? 3 : 7) * uint64_t{s.vocabulary};
  return sizeof(float) * (4 * s.parameters() + positions * (s.runs() * block + logits));
}

}  // namespace

Result<void> check_ranges(std::span<const Range> ranges) {
  for (const Range& r : ranges) {
    if (r.value >= r.least && r.value <= r.most) continue;  // false for NaN too
    return usage_error(fmt::format("{} {} cannot be used: give {} to {}", r.flag, r.value, r.least, r.most));
  }
  return {};
}

double rate_of(const Optimizer& o, uint64_t step) {
  constexpr double kLast = 0.1;
  const auto total = static_cast<double>(o.steps), at = static_cast<double>(step);
  const double warm = std::max(1.0, o.warmup * total);
  if (at <= warm) return o.rate * at / warm;
  const double part = (at - warm) / std::max(1.0, total - warm);
  return o.rate * (kLast + (1 - kLast) * 0.5 * (1 + std::cos(std::numbers::pi * part)));
}

std::string_view name_of(FfnKind kind) { return kFfns[static_cast<size_t>(kind)].name; }
std::string_view architecture_of(FfnKind kind) { return kFfns[static_cast<size_t>(kind)].architecture; }
std::string_view name_of(Divergence divergence) { return kDivergences[static_cast<size_t>(divergence)].second; }

Result<FfnKind> parse_ffn_kind(std::string_view name) {
  for (const FfnName& f : kFfns) {
    if (f.name == name) return f.kind;
  }
  return usage_error(fmt::format("--ffn {}: not known; give swiglu, reglu or relu2", name));
}

Result<Divergence> parse_divergence(std::string_view name) {
  for (const auto& [divergence, known] : kDivergences) {
    if (known == name) return divergence;
  }
  return usage_error(
      fmt::format("--divergence {}: not known; give forward, reverse, skew-forward or skew-reverse", name));
}

uint64_t StudentShape::parameters() const {
  const uint64_t d = dim, matrices = ffn_kind == FfnKind::relu2 ? 2 : 3;
  const uint64_t block = 2 * d * d + 2 * d * kv_heads * head_dim() + matrices * d * ffn + 2 * d;
  return (tied ? 1 : 2) * uint64_t{vocabulary} * d + layers * block + d;
}

Result<void> check_shape(const StudentShape& s) {
  const Range ranges[] = {{"--layers", double(s.layers), 1, 256},
                          {"--dim", double(s.dim), 8, 16384},
                          {"--heads", double(s.heads), 1, 256},
                          {"--kv-heads", double(s.kv_heads), 1, 256},
                          {"--ffn-dim", double(s.ffn), 8, 131072},
                          {"--context", double(s.context), 8, 32768},
                          {"--exit-layer", double(s.exit_layer), 0, double(s.runs()) - 1}};
  RIDGE_TRY(check_ranges(ranges));
  if (s.dim % s.heads != 0 || s.head_dim() % 2 != 0) {
    return usage_error(
        fmt::format("--dim {} with --heads {}: a head needs an even whole number of values; give a --dim "
                    "that is a multiple of {}",
                    s.dim, s.heads, 2 * s.heads));
  }
  if (s.heads % s.kv_heads != 0) {
    return usage_error(
        fmt::format("--heads {} with --kv-heads {}: give a number of heads that is a multiple", s.heads, s.kv_heads));
  }
  return {};
}

Result<void> check_job(const DistillJob& job) {
  RIDGE_TRY(check_shape(job.shape));
  const Losses& l = job.losses;
  const Optimizer& o = job.optimizer;
  const Range ranges[] = {
      {"--kd", l.kd, 0, 1},
      {"--skew", l.skew, 0, 0.99},
      {"--temperature", l.temperature, 0.05, 100},
      {"--hidden", l.hidden, 0, 1e6},
      {"--l1", l.l1, 0, 1e6},
      {"--l1-ramp", l.l1_ramp, 0, 1},
      {"--exit-weight", l.exit, 0, 1e6},
      {"--steps", double(o.steps), 1, 1e9},
      {"--batch", double(o.batch), 1, 65536},
      {"--rate", o.rate, 1e-9, 1e6},
      {"--warmup", o.warmup, 0, 1},
      {"--decay", o.decay, 0, 10},
      {"--clip", o.clip, 1e-6, 1e9},
      {"--rationale-share", job.rationale_share, 0, 1},
      {"--on-policy", job.on_policy, 0, 1},
      {"--on-policy-tokens", double(job.on_policy_tokens), 1, job.on_policy > 0 ? double(job.shape.context) - 1 : 1e6},
      {"--held-out", job.held_out, 0.01, 0.5},
      {"--checkpoint-every", double(job.checkpoint_every), 1, 1e9},
      {"--evaluate-every", double(job.evaluate_every), 1, 1e9},
      {"--validation-tokens", double(job.validation_tokens), double(job.shape.context), 1e8},
      {"--neurons", double(job.neurons), 1, double(job.shape.ffn)},
      {"--fisher-windows", double(job.fisher_windows), 1, 1e6}};
  RIDGE_TRY(check_ranges(ranges));
  if (job.teacher.empty() && (l.kd > 0 || l.hidden > 0 || job.on_policy > 0)) {
    return usage_error(
        "--kd, --hidden and --on-policy learn from a teacher: name one with --teacher, or leave them out");
  }
  if (l.l1 > 0 && job.shape.ffn_kind == FfnKind::swiglu) {
    return usage_error("--l1 makes gates zero, which SwiGLU's never are: give --ffn reglu or --ffn relu2");
  }
  const uint64_t needed = bytes_of_training(job), there = memory_limits().available;
  if (needed > there) {
    return does_not_fit(
        fmt::format("a student of {} parameters with batches of {} × {} tokens needs about {} for "
                    "training, and {} is left here: make it smaller, or --batch or --context",
                    format_count(job.shape.parameters()), job.optimizer.batch, job.shape.context, format_bytes(needed),
                    format_bytes(there)));
  }
  return {};
}

}  // namespace ridge::distill
