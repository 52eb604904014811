#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ridge {
namespace {

std::vector<float> there_and_back(Type type, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(row_bytes(type, values.size()));
  quantize_row(type, values.data(), values.size(), bytes.data());
  std::vector<float> out(values.size());
  type_info(type).dequantize(bytes.data(), out.data(), out.size());
  return out;
}

TEST(Quantize, ErrsByHalfAStepAtMost) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(std::sin(static_cast<float>(i)) * (i < 32 ? 1.0f : 40.0f));
  // Of the largest magnitude in a block: half a step, and what the scale loses as an f16. Q4_0's step is an eighth; on
  // the side without −8 a whole one may be cut off.
  const std::pair<Type, float> limits[] = {{Type::F32, 0},
                                           {Type::F16, 1.0f / 1024},
                                           {Type::BF16, 1.0f / 128},
                                           {Type::Q8_0, 0.5f / 127 + 1e-3f},
                                           {Type::Q4_0, 1.0f / 8 + 1e-3f}};
  for (const auto& [type, limit] : limits) {
    ASSERT_TRUE(can_quantize(type));
    const std::vector<float> back = there_and_back(type, values);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::fabs(back[i] - values[i]), limit * (i < 32 ? 1.0f : 40.0f)) << type_info(type).name << " " << i;
    }
  }
}

// By hand: the largest magnitude is −4, so d = 0.5 and code 0; 3 is 14, 0 is 8; 4 would be 16 and is cut to 15.
TEST(Quantize, Q4CodesAreThoseOfTheFormat) {
  std::vector<float> values(32, 0.0f);
  values[0] = -4;
  values[1] = 3;
  values[16] = 4;
  uint8_t bytes[18];
  quantize_row(Type::Q4_0, values.data(), 32, bytes);
  EXPECT_EQ(bytes[0] | bytes[1] << 8, 0x3800);  // 0.5
  EXPECT_EQ(bytes[2], 0xF0);
  EXPECT_EQ(bytes[3], 0x8E);
  EXPECT_EQ(bytes[4], 0x88);
}

TEST(Quantize, ZerosStayZeros) {
  const std::vector<float> zeros(64, 0.0f);
  for (Type type : {Type::Q8_0, Type::Q4_0, Type::F16}) EXPECT_EQ(there_and_back(type, zeros), zeros);
  EXPECT_FALSE(can_quantize(Type::Q6_K));
}

}  // namespace
}  // namespace ridge
