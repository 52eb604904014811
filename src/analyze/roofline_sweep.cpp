#include "analyze/roofline_sweep.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

constexpr std::string_view kNames[] = {"depth", "type", "attention", "context", "threads"};

// Elements of a layer's matrices.
uint64_t attention_elements(const ModelShape& s) {
  const uint64_t h = s.width, nh = s.heads;
  if (s.latent != 0) {
    const uint64_t q = s.query_rank != 0 ? s.query_rank * (h + nh * (s.nope + s.rope)) : h * nh * (s.nope + s.rope);
    return q + h * (s.latent + s.rope) + nh * (s.nope + s.value) * s.latent + nh * s.value * h;
  }
  return 2 * h * nh * s.head_dim + 2 * h * s.kv_heads * s.head_dim;
}

// The variant with as many elements in a layer as the base.
ModelShape matched(ModelShape variant, const ModelShape& base) {
  const int64_t step = int64_t{base.width} * base.ffn_matrices;
  const int64_t whole = static_cast<int64_t>(attention_elements(base)) + step * base.ffn;
  const int64_t ffn = (whole - static_cast<int64_t>(attention_elements(variant))) / step;
  constexpr int64_t kBlock = 32;
  variant.ffn = static_cast<uint32_t>(std::max(kBlock, (ffn + kBlock / 2) / kBlock * kBlock));
  return variant;
}

std::vector<ModelShape> attentions(const ModelShape& base) {
  constexpr uint32_t kGroup = 4;
  ModelShape plain = base;
  if (base.latent != 0) plain.head_dim = base.nope;
  plain.latent = plain.nope = plain.rope = plain.value = plain.query_rank = 0;
  plain.absorbed = false;
  ModelShape mha = plain, gqa = plain, mla = plain;
  mha.kv_heads = base.heads;
  gqa.kv_heads = base.heads % kGroup == 0 ? base.heads / kGroup : 1;
  // DeepSeek-V2's proportions: a latent of four heads, half a head that turns.
  mla.nope = mla.value = plain.head_dim;
  mla.rope = plain.head_dim / 2;
  mla.latent = 4 * plain.head_dim;
  std::vector<ModelShape> all;
  for (auto& [name, shape] : {std::pair{"MHA", mha}, {"GQA", gqa}, {"MLA", mla}}) {
    all.push_back(matched(shape, base));
    all.back().name = fmt::format("{} as {}", base.name, name);
  }
  return all;
}

}  // namespace

std::string_view name_of(Sweep sweep) { return kNames[static_cast<size_t>(sweep)]; }

Result<Sweep> parse_sweep(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Sweep>(i);
  }
  return usage_error(fmt::format("--sweep {}: is none of depth, type, attention, context, threads", name));
}

bool is_of_shapes(Sweep sweep) { return sweep == Sweep::depth || sweep == Sweep::type || sweep == Sweep::attention; }

std::vector<ModelShape> sweep_shapes(Sweep sweep, const ModelShape& base) {
  std::vector<ModelShape> all;
  if (sweep == Sweep::attention) return attentions(base);
  if (sweep == Sweep::depth) {
    for (uint32_t layers : {1, 2, 4, 8, 16, 24, 32, 48, 64}) {
      all.push_back(base);
      all.back().layers = layers;
      all.back().name = fmt::format("{} of {} layer{}", base.name, layers, layers == 1 ? "" : "s");
    }
  }
  if (sweep == Sweep::type) {
    for (Type type : {Type::F16, Type::Q8_0, Type::Q6_K, Type::Q4_K, Type::Q4_0}) {
      all.push_back(with_type(base, type, type));
      all.back().name = fmt::format("{} in {}", base.name, type_info(type).name);
    }
  }
  return all;
}

std::vector<Scenario> context_scenarios(const ScenarioLengths& lengths) {
  std::vector<Scenario> all;
  constexpr uint64_t kFirst = 128;
  for (uint64_t n = std::min(kFirst, lengths.long_tokens);; n = std::min(2 * n, lengths.long_tokens)) {
    all.push_back({.name = fmt::format("context {}", n), .prompt = n, .answer = lengths.short_tokens});
    if (n == lengths.long_tokens) return all;
  }
}

std::optional<TimeFit> fit_time(const std::vector<TimeSample>& samples) {
  if (samples.empty()) return std::nullopt;
  const double n = static_cast<double>(samples.size());
  double x = 0, y = 0;
  for (const TimeSample& s : samples) {
    x += s.count / n;
    y += s.seconds / n;
  }
  double xx = 0, xy = 0;
  for (const TimeSample& s : samples) {
    xx += (s.count - x) * (s.count - x);
    xy += (s.count - x) * (s.seconds - y);
  }
  if (xx <= 0) return std::nullopt;
  return TimeFit{.t0 = y - xy / xx * x, .tau = xy / xx};
}

}  // namespace ridge
