#include "tensor/types.h"

#include <array>
#include <iterator>

#include "base/check.h"
#include "tensor/blocks.h"
#include "tensor/low_bit_blocks.h"

namespace ridge {
namespace {

template <class Format>
constexpr TypeInfo quantised(std::string_view name) {
  return {Format::kType, name, Format::kBlock, sizeof(typename Format::Block), false, &dequantize_blocks<Format>};
}

constexpr TypeInfo kTypes[] = {
    {Type::F32, "F32", 1, 4, true, &dequantize_f32},
    {Type::F16, "F16", 1, 2, true, &dequantize_f16},
    {Type::BF16, "BF16", 1, 2, true, &dequantize_bf16},
    quantised<blocks::Q4_0>("Q4_0"),
    quantised<blocks::Q4_1>("Q4_1"),
    quantised<blocks::Q5_0>("Q5_0"),
    quantised<blocks::Q5_1>("Q5_1"),
    quantised<blocks::Q8_0>("Q8_0"),
    quantised<blocks::Q2_K>("Q2_K"),
    quantised<blocks::Q3_K>("Q3_K"),
    quantised<blocks::Q4_K>("Q4_K"),
    quantised<blocks::Q5_K>("Q5_K"),
    quantised<blocks::Q6_K>("Q6_K"),
    quantised<blocks::IQ4_NL>("IQ4_NL"),
    quantised<blocks::IQ4_XS>("IQ4_XS"),
    quantised<blocks::MXFP4>("MXFP4"),
    quantised<blocks::IQ1_S>("IQ1_S"),
    quantised<blocks::IQ1_M>("IQ1_M"),
    quantised<blocks::IQ2_XXS>("IQ2_XXS"),
    quantised<blocks::IQ2_XS>("IQ2_XS"),
    quantised<blocks::IQ2_S>("IQ2_S"),
    quantised<blocks::IQ3_XXS>("IQ3_XXS"),
    quantised<blocks::IQ3_S>("IQ3_S"),
    quantised<blocks::TQ1_0>("TQ1_0"),
    quantised<blocks::TQ2_0>("TQ2_0"),
};

// The row of each number: a plan asks for the bytes of rows millions of times.
constexpr uint8_t kNoRow = 255;
constexpr std::array<uint8_t, 64> kRows = [] {
  std::array<uint8_t, 64> rows{};
  rows.fill(kNoRow);
  for (uint8_t i = 0; i < std::size(kTypes); ++i) rows.at(static_cast<uint32_t>(kTypes[i].type)) = i;
  return rows;
}();

}  // namespace

const TypeInfo* find_type(uint32_t number) {
  if (number >= kRows.size() || kRows[number] == kNoRow) return nullptr;
  return &kTypes[kRows[number]];
}

const TypeInfo& type_info(Type type) {
  const TypeInfo* info = find_type(static_cast<uint32_t>(type));
  RIDGE_CHECK(info != nullptr, "a Type has a row in the table of types");
  return *info;
}

std::span<const TypeInfo> all_types() { return kTypes; }

size_t row_bytes(Type type, size_t cols) {
  const TypeInfo& info = type_info(type);
  RIDGE_CHECK(cols % info.block == 0, "a row is whole blocks");
  return cols / info.block * info.bytes;
}

}  // namespace ridge
