#include "tensor/low_bit_blocks.h"

#include <cstring>

#include "tensor/codebooks.h"
#include "tensor/half.h"

namespace ridge::blocks {
namespace {

uint32_t word(const uint8_t bytes[4]) {
  uint32_t value;
  std::memcpy(&value, bytes, 4);
  return value;
}

uint32_t nibble(const uint8_t* bytes, size_t i) { return (bytes[i / 2] >> (4 * (i % 2))) & 15u; }

// Seven stored signs and the eighth that makes their number even.
uint32_t eight_signs(uint32_t seven) { return seven | static_cast<uint32_t>(__builtin_popcount(seven) % 2) << 7; }

// Code i of a grid entry of 8.
uint32_t code_of(uint32_t entry, size_t i) { return (entry >> (8 * (i % 4) + 4 * (i / 4))) & 15u; }

// The codes of 8 weights of an IQ2 type.
void iq2_codes(uint32_t entry, uint32_t signs, int zero, uint8_t code[8]) {
  for (size_t i = 0; i < 8; ++i) {
    const int value = kIq2Values[code_of(entry, i)];
    code[i] = static_cast<uint8_t>((signs >> i) & 1u ? zero - value : zero + value);
  }
}

// The codes of 4 weights of an IQ3 type; `signs` from bit 0 on.
void iq3_codes(uint32_t entry, uint32_t signs, const uint8_t values[8], int zero, uint8_t code[4]) {
  for (size_t i = 0; i < 4; ++i) {
    const int value = values[(entry >> (8 * i)) & 7u];
    code[i] = static_cast<uint8_t>((signs >> i) & 1u ? zero - value : zero + value);
  }
}

// The codes of 8 weights of an IQ1 type, and delta's sign.
void iq1_codes(uint32_t entry, bool below, int zero, uint8_t code[8]) {
  for (size_t i = 0; i < 8; ++i) {
    const int value = 8 * (static_cast<int>(code_of(entry, i)) - 1);
    code[i] = static_cast<uint8_t>(zero + value + (below ? -1 : 1));
  }
}

float odd(uint32_t scale) { return static_cast<float>(2 * scale + 1); }

uint8_t ternary_digit(uint8_t byte, uint32_t power) { return static_cast<uint8_t>(((byte * power & 255u) * 3u) >> 8); }

}  // namespace

void IQ2_XXS::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d) * 0.125f;
  for (size_t t = 0; t < 8; ++t) {
    const uint32_t bits = word(block.groups[t].signs_scale);
    out.scale[t] = d * odd(bits >> 28);
    for (size_t j = 0; j < 4; ++j) {
      const uint32_t signs = eight_signs((bits >> (7 * j)) & 127u);
      iq2_codes(kIq2XxsGrid[block.groups[t].grid[j]], signs, kZero, out.code + 32 * t + 8 * j);
    }
  }
}

void IQ2_XS::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d) * 0.125f;
  for (size_t g = 0; g < 16; ++g) out.scale[g] = d * odd(nibble(block.scales, g));
  for (size_t j = 0; j < 32; ++j) {
    iq2_codes(kIq2XsGrid[block.qs[j] & 511u], eight_signs(block.qs[j] >> 9), kZero, out.code + 8 * j);
  }
}

void IQ2_S::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d) * 0.125f;
  for (size_t g = 0; g < 16; ++g) out.scale[g] = d * odd(nibble(block.scales, g));
  for (size_t j = 0; j < 32; ++j) {
    const uint32_t high = (block.qh[j / 4] >> (2 * (j % 4))) & 3u;
    iq2_codes(kIq2SGrid[block.qs[j] | high << 8], block.signs[j], kZero, out.code + 8 * j);
  }
}

void IQ3_XXS::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d) * 0.25f;
  for (size_t t = 0; t < 8; ++t) {
    const uint32_t bits = word(block.signs_scale[t]);
    out.scale[t] = d * odd(bits >> 28);
    for (size_t v = 0; v < 8; ++v) {
      const uint32_t signs = eight_signs((bits >> (7 * (v / 2))) & 127u) >> (4 * (v % 2));
      iq3_codes(kIq3XxsGrid[block.qs[8 * t + v]], signs, kIq3XxsValues, kZero, out.code + 32 * t + 4 * v);
    }
  }
}

void IQ3_S::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d);
  for (size_t t = 0; t < 8; ++t) {
    out.scale[t] = d * odd(nibble(block.scales, t));
    for (size_t v = 0; v < 8; ++v) {
      const uint32_t index = block.qs[8 * t + v] | ((block.qh[t] >> v) & 1u) << 8;
      iq3_codes(kIq3SGrid[index], nibble(block.signs + 4 * t, v), kIq3SValues, kZero, out.code + 32 * t + 4 * v);
    }
  }
}

void IQ1_S::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d) * 0.125f;
  for (size_t t = 0; t < 8; ++t) {
    const uint32_t high = block.qh[t];
    out.scale[t] = d * odd((high >> 12) & 7u);
    for (size_t j = 0; j < 4; ++j) {
      const uint32_t index = block.qs[4 * t + j] | ((high >> (3 * j)) & 7u) << 8;
      iq1_codes(kIq1Grid[index], high >> 15, kZero, out.code + 32 * t + 8 * j);
    }
  }
}

void IQ1_M::decode(const Block& block, DecodedBlock& out) {
  uint32_t half = 0;
  for (size_t k = 0; k < 4; ++k) half |= (block.scales[k] >> 12u) << (4 * k);
  const float d = f16_to_f32(static_cast<uint16_t>(half)) * 0.125f;
  for (size_t g = 0; g < 16; ++g) out.scale[g] = d * odd((block.scales[g / 4] >> (3 * (g % 4))) & 7u);
  for (size_t j = 0; j < 32; ++j) {
    const uint32_t high = nibble(block.qh, j);
    iq1_codes(kIq1Grid[block.qs[j] | (high & 7u) << 8], high >> 3, kZero, out.code + 8 * j);
  }
}

void TQ1_0::decode(const Block& block, DecodedBlock& out) {
  constexpr uint32_t kPowers[5] = {1, 3, 9, 27, 81};
  for (size_t g = 0; g < 8; ++g) out.scale[g] = f16_to_f32(block.d);
  for (size_t n = 0; n < 5; ++n) {
    for (size_t b = 0; b < 32; ++b) out.code[32 * n + b] = ternary_digit(block.qs[b], kPowers[n]);
    for (size_t b = 0; b < 16; ++b) out.code[160 + 16 * n + b] = ternary_digit(block.qs[32 + b], kPowers[n]);
  }
  for (size_t n = 0; n < 4; ++n) {
    for (size_t b = 0; b < 4; ++b) out.code[240 + 4 * n + b] = ternary_digit(block.qh[b], kPowers[n]);
  }
}

void TQ2_0::decode(const Block& block, DecodedBlock& out) {
  for (size_t g = 0; g < 8; ++g) out.scale[g] = f16_to_f32(block.d);
  for (size_t i = 0; i < kBlock; ++i) {
    out.code[i] = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
  }
}

}  // namespace ridge::blocks
