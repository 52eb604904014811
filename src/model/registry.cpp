// The list of architectures: to add one, write its file and its row here (docs/models/README.md).
#include <fmt/format.h>

#include <array>

#include "kernels/math.h"
#include "model/architectures.h"

namespace ridge {

std::span<const Architecture> architectures() {
  static constexpr std::array kList = {
      Architecture{"llama", make_llama},       Architecture{"qwen2", make_qwen2},
      Architecture{"qwen3", make_qwen3},       Architecture{"gemma2", make_gemma2},
      Architecture{"gemma3", make_gemma3},     Architecture{"phi3", make_phi3},
      Architecture{"olmoe", make_olmoe},       Architecture{"qwen2moe", make_qwen2moe},
      Architecture{"qwen3moe", make_qwen3moe}, Architecture{"gpt-oss", make_gpt_oss},
      Architecture{"plm", make_plm},           Architecture{"deepseek2", make_deepseek2},
      Architecture{"smollm3", make_smollm3},   Architecture{"granite", make_granite},
      Architecture{"minicpm", make_minicpm},   Architecture{"reglu-llama", make_reglu_llama, true},
      Architecture{"arcee", make_arcee, true},
  };
  return kList;
}

Result<RopeTable> rope_table_of(ModelBuilder& b, const ModelConfig& c, std::string_view base_key, float default_base) {
  RopeTable rope;
  rope.config.rot = RIDGE_TRY(b.integer("rope.dimension_count", c.key_dim));
  if (rope.config.rot < 2 || rope.config.rot % 2 != 0 || rope.config.rot > c.key_dim) {
    return bad_input(fmt::format("{}: key '{}' is {}, expected an even number up to the head size {}",
                                 b.metadata().where, b.key("rope.dimension_count"), rope.config.rot, c.key_dim));
  }
  rope.config.base = static_cast<double>(RIDGE_TRY(b.number(base_key, default_base)));
  if (!(rope.config.base > 0)) {
    return bad_input(
        fmt::format("{}: key '{}' is {}, expected more than 0", b.metadata().where, b.key(base_key), rope.config.base));
  }
  return rope;
}

Result<double> linear_rope_factor(ModelBuilder& b) {
  std::string type = RIDGE_TRY(b.text("rope.scaling.type", "none"));
  if (type == "none") return 1.0;
  if (type != "linear") {
    return bad_input(
        fmt::format("{}: key '{}' is '{}', and Ridge knows none and linear here: the model would run with wrong "
                    "angles",
                    b.metadata().where, b.key("rope.scaling.type"), type));
  }
  float factor = RIDGE_TRY(b.number("rope.scaling.factor", 1.0f));
  if (!(factor > 0))
    return bad_input(fmt::format("{}: key '{}' is {}, expected more than 0", b.metadata().where,
                                 b.key("rope.scaling.factor"), factor));
  return static_cast<double>(factor);
}

Result<void> read_yarn(ModelBuilder& b, const ModelConfig& c, RopeConfig& rope) {
  auto wrong = [&](std::string_view suffix, const std::string& what) {
    return bad_input(fmt::format("{}: key '{}' is {}", b.metadata().where, b.key(suffix), what));
  };
  std::string type = RIDGE_TRY(b.text("rope.scaling.type", "none"));
  if (type == "none") return {};
  if (type != "yarn") {
    return wrong("rope.scaling.type",
                 fmt::format("'{}', and Ridge knows none and yarn here: the model would run with wrong angles", type));
  }
  auto positive = [&](std::string_view suffix, float fallback) -> Result<double> {
    const float value = RIDGE_TRY(b.number(suffix, fallback));
    if (!(value > 0)) return wrong(suffix, fmt::format("{}, expected more than 0", value));
    return static_cast<double>(value);
  };
  rope.yarn_factor = RIDGE_TRY(positive("rope.scaling.factor", 1.0f));
  rope.yarn_original_context =
      RIDGE_TRY(positive("rope.scaling.original_context_length", static_cast<float>(c.context)));
  rope.yarn_beta_fast = RIDGE_TRY(positive("rope.scaling.yarn_beta_fast", 32.0f));
  rope.yarn_beta_slow = RIDGE_TRY(positive("rope.scaling.yarn_beta_slow", 1.0f));
  rope.magnitude = RIDGE_TRY(positive("rope.scaling.attn_factor", 1.0f));
  return {};
}

double yarn_attention(double share, double factor) { return 1.0 + share * d_log(factor); }

}  // namespace ridge
