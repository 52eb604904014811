// The two 16-bit float formats as bit patterns: IEEE binary16 (f16) and bfloat16 (bf16), to and from float.
// Rounding is to nearest even; infinities and quiet NaNs survive, as in the hardware's conversions.
//
// Not for: hot loops (the kernels use instructions of their ISA).
//
//   float d = f16_to_f32(block.d);
//   uint16_t h = f32_to_f16(1.5f);     // 0x3e00
//
// `static inline`: every object file has its own copy, so the linker never has to choose one.
#pragma once

#include <cstdint>

namespace ridge {

static inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    return __builtin_bit_cast(float, sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
  }
  // The bits moved into place read as the value × 2^-112, for normal and subnormal numbers alike.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, scaled));
}

static inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t h;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    h = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: 0.5 has the ulp 2^-24, the step of f16's subnormals
    h = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  } else {
    h = ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  }
  return static_cast<uint16_t>(sign | h);
}

static inline float bf16_to_f32(uint16_t h) { return __builtin_bit_cast(float, static_cast<uint32_t>(h) << 16); }

static inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace ridge
