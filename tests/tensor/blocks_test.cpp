// Dequantised blocks against independent golden values, and the table of types.
#include "tensor/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tensor/half.h"
#include "tensor/type_names.h"
#include "tensor/types.h"

namespace ridge {
namespace {

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Blocks, DequantizeEqualsGoldenBitForBit) {
  const std::string folder = RIDGE_TEST_DATA "/blocks/";
  const auto index = nlohmann::json::parse(std::ifstream(folder + "index.json"));
  size_t checked = 0;
  for (const TypeInfo& info : all_types()) {
    if (info.is_float) continue;
    const std::string name(info.name);
    ASSERT_TRUE(index.contains(name)) << name;
    EXPECT_EQ(index[name]["type_id"], static_cast<uint32_t>(info.type)) << name;
    EXPECT_EQ(index[name]["weights_per_block"], info.block) << name;
    EXPECT_EQ(index[name]["bytes_per_block"], info.bytes) << name;
    const std::vector<uint8_t> blocks = read_file(folder + name + ".blocks");
    const std::vector<uint8_t> expected = read_file(folder + name + ".f32");
    const size_t count = blocks.size() / info.bytes * info.block;
    ASSERT_GT(count, 0u) << name;
    ASSERT_EQ(expected.size(), 4 * count) << name;
    std::vector<float> values(count);
    info.dequantize(blocks.data(), values.data(), count);
    for (size_t i = 0; i < count; ++i) {
      uint32_t got, want;
      std::memcpy(&got, &values[i], 4);
      std::memcpy(&want, &expected[4 * i], 4);
      ASSERT_EQ(got, want) << name << " element " << i;
    }
    ++checked;
  }
  EXPECT_EQ(checked, 22u);
}

TEST(Blocks, BlockInfoAgreesWithTheTypeTable) {
  for (const TypeInfo& info : all_types()) {
    const BlockInfo* block = block_info(info.type);
    ASSERT_EQ(block == nullptr, info.is_float) << info.name;
    if (block == nullptr) continue;
    EXPECT_EQ(block->block, info.block) << info.name;
    EXPECT_EQ(block->bytes, info.bytes) << info.name;
  }
}

TEST(Types, UnknownNumbersHaveNoRow) {
  for (uint32_t number : {4u, 5u, 9u, 15u, 31u, 40u, 1000u}) EXPECT_EQ(find_type(number), nullptr) << number;
  EXPECT_EQ(all_types().size(), 25u);
  for (const TypeInfo& info : all_types()) EXPECT_EQ(find_type(static_cast<uint32_t>(info.type)), &info);
}

TEST(Types, AreFoundByName) {
  for (const TypeInfo& info : all_types()) EXPECT_EQ(type_named(info.name), info.type) << info.name;
  for (const char* name : {"", "q4_K", "Q4_K ", "Q4", "F64"}) EXPECT_EQ(type_named(name), std::nullopt) << name;
}

TEST(Types, RowBytes) {
  EXPECT_EQ(row_bytes(Type::F32, 7), 28u);
  EXPECT_EQ(row_bytes(Type::Q4_0, 64), 36u);
  EXPECT_EQ(row_bytes(Type::Q6_K, 512), 420u);
  EXPECT_EQ(row_bytes(Type::MXFP4, 32), 17u);
}

// Every f16 is a float, and goes back to itself (NaNs become quiet).
TEST(Half, F16RoundTripOfAllPatterns) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float value = f16_to_f32(static_cast<uint16_t>(h));
    const uint16_t expected = static_cast<uint16_t>(std::isnan(value) ? h | 0x200 : h);
    ASSERT_EQ(f32_to_f16(value), expected) << h;
  }
}

TEST(Half, F16Values) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xc500), -5.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x03ff), 1023 * 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f16_to_f32(0xfc00), -std::numeric_limits<float>::infinity());
}

// Ties go to even, for normal and subnormal results; 65520 is the first that overflows.
TEST(Half, F16Rounding) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = f16_to_f32(static_cast<uint16_t>(h)), high = f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = 0.5f * (low + high);
    ASSERT_EQ(f32_to_f16(middle), h + (h & 1)) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, low)), h) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, high)), h + 1) << h;
  }
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
}

TEST(Half, Bf16) {
  EXPECT_EQ(bf16_to_f32(0x3f80), 1.0f);
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);            // a tie, to even
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);  // a tie, to even
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace ridge
