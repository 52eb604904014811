#include "tensor/panel.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/panel_format.h"

namespace ridge {
namespace {

// F32: one column of 16 values is 64 bytes; F16 and BF16: two columns are.
constexpr PanelPart kF32[] = {{4, 0, 1, 0, 64}};
constexpr PanelPart kHalf[] = {{2, 0, 1, 0, 32}};
// Types whose block begins with a lone f16 scale: the scales of two blocks fill the header.
constexpr PanelPart kScaleNibbles[] = {{2, 0, 1, 0, 32}, {4, 2, 4, 64, 256}};
constexpr PanelPart kQ5_0[] = {{2, 0, 1, 0, 32}, {4, 2, 1, 64, 320, Rearranged::bit_planes}, {4, 6, 4, 128, 320}};
constexpr PanelPart kQ8_0[] = {{2, 0, 1, 0, 32}, {4, 2, 8, 64, 512, Rearranged::sign_flipped}};
constexpr PanelPart kMxfp4[] = {{1, 0, 1, 0, 16}, {4, 1, 4, 64, 256}};
// Types whose block is whole 32-bit words. Two f16 fields become two vectors of 16.
constexpr PanelPart kQ4_1[] = {{2, 0, 2, 0, 320}, {4, 4, 4, 64, 320}};
constexpr PanelPart kQ5_1[] = {{2, 0, 2, 0, 384}, {4, 4, 1, 64, 384, Rearranged::bit_planes}, {4, 8, 4, 128, 384}};
constexpr PanelPart kQ2_K[] = {{2, 80, 2, 0, 1344}, {4, 0, 20, 64, 1344}};
constexpr PanelPart kQ4_K[] = {{2, 0, 2, 0, 2304}, {4, 4, 35, 64, 2304}};
constexpr PanelPart kQ5_K[] = {{2, 0, 2, 0, 2816}, {4, 4, 43, 64, 2816}};
constexpr PanelPart kIq4Xs[] = {{2, 0, 2, 0, 2176}, {4, 4, 33, 64, 2176}};
// Types with half a word too much: their f16 scale comes first and 32 bytes are padding.
constexpr PanelPart kQ3_K[] = {{2, 108, 1, 0, 1792}, {4, 96, 3, 64, 1792}, {4, 0, 24, 256, 1792}};
constexpr PanelPart kQ6_K[] = {{2, 208, 1, 0, 3392}, {4, 192, 4, 64, 3392}, {4, 0, 48, 320, 3392}};
// Types of 3.4 bits and less. A block of 16 rows is a whole number of half vectors: every second unit begins at 32
// bytes.
constexpr PanelPart kIq2Xxs[] = {{2, 0, 1, 0, 1056}, {8, 2, 8, 32, 1056, Rearranged::low_words_and_planes}};
constexpr PanelPart kIq2Xs[] = {
    {2, 0, 1, 0, 1184}, {4, 66, 2, 32, 1184}, {8, 2, 8, 160, 1184, Rearranged::indices_and_planes}};
constexpr PanelPart kIq2S[] = {
    {2, 0, 1, 0, 1312}, {4, 66, 4, 32, 1312}, {4, 2, 8, 288, 1312}, {4, 34, 8, 800, 1312, Rearranged::bit_planes}};
constexpr PanelPart kIq3Xxs[] = {
    {2, 0, 1, 0, 1568}, {4, 66, 8, 32, 1568, Rearranged::sign_planes}, {4, 2, 16, 544, 1568}};
constexpr PanelPart kIq3S[] = {{2, 0, 1, 0, 1760},
                               {4, 106, 1, 32, 1760},
                               {4, 66, 2, 96, 1760},
                               {4, 74, 8, 224, 1760, Rearranged::bit_planes},
                               {4, 2, 16, 736, 1760}};
constexpr PanelPart kIq1S[] = {{2, 0, 1, 0, 800}, {4, 34, 4, 32, 800}, {4, 2, 8, 288, 800}};
constexpr PanelPart kIq1M[] = {{4, 48, 2, 0, 896}, {4, 32, 4, 128, 896}, {4, 0, 8, 384, 896}};
constexpr PanelPart kTq1_0[] = {{2, 52, 1, 0, 864}, {4, 48, 1, 32, 864}, {4, 0, 12, 96, 864}};
constexpr PanelPart kTq2_0[] = {{2, 64, 1, 0, 1056}, {4, 0, 16, 32, 1056}};

constexpr PanelFormat kFormats[] = {
    {Type::F32, 1, 0, 64, kF32},
    {Type::F16, 2, 0, 32, kHalf},
    {Type::BF16, 2, 0, 32, kHalf},
    {Type::Q4_0, 2, 64, 256, kScaleNibbles},
    {Type::IQ4_NL, 2, 64, 256, kScaleNibbles},
    {Type::Q5_0, 2, 64, 320, kQ5_0},
    {Type::Q8_0, 2, 64, 512, kQ8_0},
    {Type::MXFP4, 4, 64, 256, kMxfp4},
    {Type::Q4_1, 1, 0, 320, kQ4_1},
    {Type::Q5_1, 1, 0, 384, kQ5_1},
    {Type::Q2_K, 1, 0, 1344, kQ2_K},
    {Type::Q3_K, 1, 0, 1792, kQ3_K},
    {Type::Q4_K, 1, 0, 2304, kQ4_K},
    {Type::Q5_K, 1, 0, 2816, kQ5_K},
    {Type::Q6_K, 1, 0, 3392, kQ6_K},
    {Type::IQ4_XS, 1, 0, 2176, kIq4Xs},
    {Type::IQ1_S, 1, 0, 800, kIq1S},
    {Type::IQ1_M, 1, 0, 896, kIq1M},
    {Type::IQ2_XXS, 1, 0, 1056, kIq2Xxs},
    {Type::IQ2_XS, 1, 0, 1184, kIq2Xs},
    {Type::IQ2_S, 1, 0, 1312, kIq2S},
    {Type::IQ3_XXS, 1, 0, 1568, kIq3Xxs},
    {Type::IQ3_S, 1, 0, 1760, kIq3S},
    {Type::TQ1_0, 1, 0, 864, kTq1_0},
    {Type::TQ2_0, 1, 0, 1056, kTq2_0},
};

uint32_t to_bit_planes(uint32_t bits) {
  uint32_t planes = 0;
  for (uint32_t v = 0; v < 8; ++v) {
    for (uint32_t i = 0; i < 4; ++i) planes |= ((bits >> (4 * v + i)) & 1u) << (8 * i + v);
  }
  return planes;
}

uint32_t from_bit_planes(uint32_t planes) {
  uint32_t bits = 0;
  for (uint32_t v = 0; v < 8; ++v) {
    for (uint32_t i = 0; i < 4; ++i) bits |= ((planes >> (8 * i + v)) & 1u) << (4 * v + i);
  }
  return bits;
}

// 4 × 7 bits and 4 × 1 bit to 4 × 8 bits.
uint32_t with_eighth_bits(uint32_t word) {
  uint32_t out = 0;
  for (uint32_t j = 0; j < 4; ++j) {
    out |= ((word >> (7 * j)) & 127u) << (8 * j) | ((word >> (28 + j)) & 1u) << (8 * j + 7);
  }
  return out;
}

uint32_t without_eighth_bits(uint32_t eights) {
  uint32_t out = 0;
  for (uint32_t j = 0; j < 4; ++j) {
    out |= ((eights >> (8 * j)) & 127u) << (7 * j) | ((eights >> (8 * j + 7)) & 1u) << (28 + j);
  }
  return out;
}

// 4 × (9 bits of index, 7 of signs) to 4 low bytes of indices in the low word and 4 × (7 signs, bit 8 of the index) in
// the high one.
uint64_t split_indices(uint64_t value) {
  uint64_t out = 0;
  for (uint64_t j = 0; j < 4; ++j) {
    const uint64_t index = (value >> (16 * j)) & 511u, signs = (value >> (16 * j + 9)) & 127u;
    out |= (index & 255u) << (8 * j) | (signs | (index >> 8) << 7) << (32 + 8 * j);
  }
  return out;
}

uint64_t join_indices(uint64_t value) {
  uint64_t out = 0;
  for (uint64_t j = 0; j < 4; ++j) {
    const uint64_t low = (value >> (8 * j)) & 255u, eight = (value >> (32 + 8 * j)) & 255u;
    out |= (low | (eight >> 7) << 8 | (eight & 127u) << 9) << (16 * j);
  }
  return out;
}

uint64_t to_panel(Rearranged rearranged, uint64_t value) {
  const auto low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
  switch (rearranged) {
    case Rearranged::no:
      return value;
    case Rearranged::sign_flipped:
      return low ^ 0x80808080u;
    case Rearranged::bit_planes:
      return to_bit_planes(low);
    case Rearranged::sign_planes:
      return to_bit_planes(with_eighth_bits(low));
    case Rearranged::low_words_and_planes:
      return low | uint64_t{to_bit_planes(with_eighth_bits(high))} << 32;
    case Rearranged::indices_and_planes: {
      const uint64_t split = split_indices(value);
      return (split & 0xffffffffu) | uint64_t{to_bit_planes(static_cast<uint32_t>(split >> 32))} << 32;
    }
  }
  return value;
}

uint64_t from_panel(Rearranged rearranged, uint64_t value) {
  const auto low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
  switch (rearranged) {
    case Rearranged::no:
      return value;
    case Rearranged::sign_flipped:
      return low ^ 0x80808080u;
    case Rearranged::bit_planes:
      return from_bit_planes(low);
    case Rearranged::sign_planes:
      return without_eighth_bits(from_bit_planes(low));
    case Rearranged::low_words_and_planes:
      return low | uint64_t{without_eighth_bits(from_bit_planes(high))} << 32;
    case Rearranged::indices_and_planes:
      return join_indices(low | uint64_t{from_bit_planes(high)} << 32);
  }
  return value;
}

size_t unit_offset(const PanelFormat& format, size_t block_index) {
  return block_index / format.unit_blocks * format.unit_bytes();
}

// One block of one row into its places in the panel.
void scatter_block(const PanelFormat& format, const uint8_t* block, size_t block_index, size_t row, uint8_t* panel) {
  uint8_t* unit = panel + unit_offset(format, block_index);
  for (const PanelPart& part : format.parts) {
    const size_t lane = std::min(part.width, 4u);  // bytes of a row in a vector
    uint8_t* out = unit + part.panel_offset + block_index % format.unit_blocks * part.block_stride + row * lane;
    for (size_t i = 0; i < part.count; ++i, out += kPanelRows * part.width) {
      uint64_t value = 0;
      std::memcpy(&value, block + part.file_offset + i * part.width, part.width);
      value = to_panel(part.rearranged, value);
      std::memcpy(out, &value, lane);
      if (part.width == 8) std::memcpy(out + kPanelRows * lane, reinterpret_cast<const uint8_t*>(&value) + lane, lane);
    }
  }
}

}  // namespace

const PanelFormat& panel_format(Type type) {
  for (const PanelFormat& format : kFormats) {
    if (format.type == type) return format;
  }
  check_failed(__FILE__, __LINE__, "panel_format", "a Type has a panel layout");
}

void gather_block(const PanelFormat& format, const uint8_t* panel, size_t block_index, size_t row, uint8_t* block) {
  const uint8_t* unit = panel + unit_offset(format, block_index);
  for (const PanelPart& part : format.parts) {
    const size_t lane = std::min(part.width, 4u);
    const uint8_t* in = unit + part.panel_offset + block_index % format.unit_blocks * part.block_stride + row * lane;
    for (size_t i = 0; i < part.count; ++i, in += kPanelRows * part.width) {
      uint64_t value = 0;
      std::memcpy(&value, in, lane);
      if (part.width == 8) std::memcpy(reinterpret_cast<uint8_t*>(&value) + lane, in + kPanelRows * lane, lane);
      value = from_panel(part.rearranged, value);
      std::memcpy(block + part.file_offset + i * part.width, &value, part.width);
    }
  }
}

size_t panel_bytes(Type type, size_t cols) {
  const PanelFormat& format = panel_format(type);
  const TypeInfo& info = type_info(type);
  RIDGE_CHECK(cols % info.block == 0, "a panel's columns are whole blocks");
  const size_t blocks = cols / info.block;
  const size_t rest = blocks % format.unit_blocks;
  const size_t last = rest == 0 ? 0 : format.header_bytes + rest * format.block_bytes;
  return (blocks / format.unit_blocks * format.unit_bytes() + last + 63) / 64 * 64;
}

size_t panels_bytes(Type type, size_t rows, size_t cols) {
  return (rows + kPanelRows - 1) / kPanelRows * panel_bytes(type, cols);
}

void pack_panel(const PackArgs& args) {
  RIDGE_CHECK(args.row_count >= 1 && args.row_count <= kPanelRows, "a panel holds 1 to 16 rows");
  const PanelFormat& format = panel_format(args.type);
  const TypeInfo& info = type_info(args.type);
  std::memset(args.panel, 0, panel_bytes(args.type, args.cols));
  constexpr uint8_t kZeroBlock[kMaxBlockBytes] = {};
  for (size_t row = 0; row < kPanelRows; ++row) {
    const bool missing = row >= args.row_count;
    for (size_t b = 0; b < args.cols / info.block; ++b) {
      const uint8_t* block = missing ? kZeroBlock : args.rows + row * args.row_stride + b * info.bytes;
      scatter_block(format, block, b, row, args.panel);
    }
  }
}

void dequantize_panel(Type type, const uint8_t* panel, size_t cols, size_t col_begin, size_t col_count, float* out) {
  RIDGE_CHECK(col_begin + col_count <= cols, "the columns lie inside the panel");
  const PanelFormat& format = panel_format(type);
  const TypeInfo& info = type_info(type);
  uint8_t block[kMaxBlockBytes];
  float values[256];
  for (size_t b = col_begin / info.block; b * info.block < col_begin + col_count; ++b) {
    const size_t begin = std::max(col_begin, b * info.block);
    const size_t end = std::min(col_begin + col_count, (b + 1) * info.block);
    for (size_t row = 0; row < kPanelRows; ++row) {
      gather_block(format, panel, b, row, block);
      info.dequantize(block, values, info.block);
      for (size_t c = begin; c < end; ++c) out[(c - col_begin) * kPanelRows + row] = values[c - b * info.block];
    }
  }
}

void dequantize_panel_row(Type type, const uint8_t* panel, size_t cols, size_t row, float* out) {
  RIDGE_CHECK(row < kPanelRows, "a panel has 16 rows");
  const PanelFormat& format = panel_format(type);
  const TypeInfo& info = type_info(type);
  uint8_t block[kMaxBlockBytes];
  for (size_t b = 0; b < cols / info.block; ++b) {
    gather_block(format, panel, b, row, block);
    info.dequantize(block, out + b * info.block, info.block);
  }
}

}  // namespace ridge
