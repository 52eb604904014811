// The list of architectures: to add one, write its file and its row here (docs/models/README.md).
#include <fmt/format.h>

#include <array>

#include "model/architectures.h"

namespace ridge {

std::span<const Architecture> architectures() {
  static constexpr std::array kList = {
      Architecture{"llama", make_llama},   Architecture{"qwen2", make_qwen2},   Architecture{"qwen3", make_qwen3},
      Architecture{"gemma2", make_gemma2}, Architecture{"gemma3", make_gemma3}, Architecture{"phi3", make_phi3},
      Architecture{"plm", make_plm},
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

}  // namespace ridge
