// Random but valid rows of every type, with the values that break kernels: extreme codes, negative, zero, subnormal and
// large scales. Shared by the tests of panels and kernels.
//
//   std::vector<uint8_t> rows = random_rows(Type::Q4_K, 16, 512, row_bytes(Type::Q4_K, 512), 1);
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "tensor/half.h"
#include "tensor/types.h"

namespace ridge {

inline std::vector<Type> every_type() {
  std::vector<Type> types;
  for (const TypeInfo& info : all_types()) types.push_back(info.type);
  return types;
}

// Column counts that meet whole and partial units of the panel layouts.
inline std::vector<size_t> test_cols(Type type) {
  if (type_info(type).is_float) return {1, 2, 3, 16, 31, 32, 64, 97, 160};
  if (type_info(type).block == 256) return {256, 512, 768};
  return {32, 64, 96, 128, 160, 192, 224, 288};
}

// An f16 that is sometimes zero, subnormal, large or negative, mostly of the size of real scales.
inline uint16_t random_scale(std::mt19937_64& rng) {
  switch (rng() % 16) {
    case 0:
      return 0x0000;
    case 1:
      return static_cast<uint16_t>(rng() % 0x400 | (rng() % 2) << 15);  // subnormal
    case 2:
      return static_cast<uint16_t>(0x5000 | rng() % 0x400);  // 32 … 64
    default:
      return static_cast<uint16_t>(0x1400 + rng() % 0x1800 + (rng() % 2 << 15));
  }
}

// Offsets of the f16 fields of a block.
inline std::vector<size_t> scale_offsets(Type type) {
  switch (type) {
    case Type::Q4_0:
    case Type::Q5_0:
    case Type::Q8_0:
    case Type::IQ4_NL:
    case Type::IQ4_XS:
    case Type::IQ1_S:
    case Type::IQ2_XXS:
    case Type::IQ2_XS:
    case Type::IQ2_S:
    case Type::IQ3_XXS:
    case Type::IQ3_S:
      return {0};
    case Type::Q4_1:
    case Type::Q5_1:
    case Type::Q4_K:
    case Type::Q5_K:
      return {0, 2};
    case Type::Q2_K:
      return {80, 82};
    case Type::Q3_K:
      return {108};
    case Type::Q6_K:
      return {208};
    case Type::TQ1_0:
      return {52};
    case Type::TQ2_0:
      return {64};
    default:
      return {};
  }
}

inline void set_scale(uint16_t half, uint8_t* field) { std::memcpy(field, &half, 2); }

// The top nibbles of the last four 16-bit words are the f16.
inline void set_iq1_m_scale(uint16_t half, uint8_t* block) {
  for (size_t k = 0; k < 4; ++k) {
    uint8_t& high = block[48 + 2 * k + 1];
    high = static_cast<uint8_t>((high & 15) | ((half >> (4 * k)) & 15) << 4);
  }
}

inline void random_float(Type type, std::mt19937_64& rng, uint8_t* out) {
  const float value = std::normal_distribution<float>()(rng);
  const uint16_t half = type == Type::F16 ? (rng() % 8 ? f32_to_f16(value) : random_scale(rng)) : f32_to_bf16(value);
  if (type == Type::F32) {
    std::memcpy(out, &value, 4);
  } else {
    std::memcpy(out, &half, 2);
  }
}

inline void random_block(Type type, std::mt19937_64& rng, uint8_t* out) {
  const TypeInfo& info = type_info(type);
  if (info.is_float) return random_float(type, rng, out);
  const uint64_t kind = rng() % 8;  // all bits 0, all bits 1 (the largest codes), sign bits alone (Q8_0 = -128), random
  for (size_t i = 0; i < info.bytes; ++i) {
    out[i] = kind == 0 ? 0 : kind == 1 ? 0xff : kind == 2 ? 0x80 : static_cast<uint8_t>(rng());
  }
  for (const size_t offset : scale_offsets(type)) set_scale(random_scale(rng), out + offset);
  if (type == Type::IQ1_M) set_iq1_m_scale(random_scale(rng), out);
  // MXFP4: mostly near 1, sometimes subnormal; never so large that sums overflow.
  if (type == Type::MXFP4) out[0] = static_cast<uint8_t>(rng() % 8 ? 120 + rng() % 16 : rng() % 4);
}

inline std::vector<uint8_t> random_rows(Type type, size_t rows, size_t cols, size_t stride, uint64_t seed) {
  std::mt19937_64 rng(seed * 1000 + static_cast<uint64_t>(type));
  const TypeInfo& info = type_info(type);
  // Not a byte more than the last row's end, so that sanitizers see any over-read.
  std::vector<uint8_t> bytes((rows - 1) * stride + row_bytes(type, cols));
  for (size_t r = 0; r < rows; ++r) {
    for (size_t b = 0; b < cols / info.block; ++b) random_block(type, rng, bytes.data() + r * stride + b * info.bytes);
  }
  return bytes;
}

}  // namespace ridge
