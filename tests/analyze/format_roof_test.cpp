#include "analyze/format_roof.h"

#include <gtest/gtest.h>

#include "analyze/shape_model.h"
#include "model/model.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

FormatPoint rate(const char* type, double gb_per_s) { return {type, {gb_per_s, gb_per_s, gb_per_s, 5}}; }

std::unique_ptr<Model> two_types() {
  ModelShape shape{.name = "two types", .layers = 2, .width = 256, .ffn = 512, .vocabulary = 1024, .heads = 4};
  shape.kv_heads = 4;
  shape.head_dim = 64;
  shape.type = Type::Q4_0;
  shape.head_type = Type::Q8_0;
  return make_shape_model(shape).value();
}

TEST(FormatRoof, EachTypeOfAMixTakesItsOwnTime) {
  const auto model = two_types();
  const Program program = model->program({.tokens = 1, .outputs = 1, .role = TokenRole::generated}, {});
  const FormatPoint rates[] = {rate("Q4_0", 10), rate("Q8_0", 40)};
  const FormatRoofs roofs = format_roofs(program, model->head().id, rates, 2);
  // By hand: per layer 4 × 256 × 256 for attention and 3 × 512 × 256, then the head, in whole panels of 16 rows.
  const double layers = 2.0 * (4 * 256 + 2 * 512) / 16 * static_cast<double>(panel_bytes(Type::Q4_0, 256)) +
                        2.0 * 256 / 16 * static_cast<double>(panel_bytes(Type::Q4_0, 512));
  const double head = 1024.0 / 16 * static_cast<double>(panel_bytes(Type::Q8_0, 256));
  EXPECT_NEAR(roofs.whole, 2 * (layers + head) / (layers / 10 + head / 40), 1e-9);
  EXPECT_NEAR(roofs.of[static_cast<size_t>(Operator::head)], 80, 1e-9);
  EXPECT_NEAR(roofs.of[static_cast<size_t>(Operator::qkv)], 20, 1e-9);
  EXPECT_NEAR(roofs.of[static_cast<size_t>(Operator::ffn)], 20, 1e-9);
  EXPECT_EQ(roofs.of[static_cast<size_t>(Operator::attention)], 0);  // no weights
}

TEST(FormatRoof, IsUnknownWhereARateIs) {
  const auto model = two_types();
  const Program program = model->program({.tokens = 1, .outputs = 1, .role = TokenRole::generated}, {});
  const FormatPoint rates[] = {rate("Q4_0", 10)};
  const FormatRoofs roofs = format_roofs(program, model->head().id, rates, 1);
  EXPECT_EQ(roofs.whole, 0);
  EXPECT_EQ(roofs.of[static_cast<size_t>(Operator::head)], 0);
  EXPECT_NEAR(roofs.of[static_cast<size_t>(Operator::ffn)], 10, 1e-9);
}

TEST(FormatRoof, UpperRatesLieAboveEveryMeasurement) {
  const FormatPoint rates[] = {{"Q4_0", {10, 9, 10.5, 5}}, {"Q8_0", {10, 5, 20, 5}}};
  const std::vector<FormatPoint> upper = upper_rates(rates);
  EXPECT_DOUBLE_EQ(upper[0].gb_per_s.value, 1.1 * 10.5);
  EXPECT_DOUBLE_EQ(upper[1].gb_per_s.value, 30);
}

}  // namespace
}  // namespace ridge
