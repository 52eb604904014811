#include "tensor/blocks.h"

#include <cstring>

#include "base/check.h"
#include "tensor/half.h"
#include "tensor/low_bit_blocks.h"

namespace ridge {
namespace blocks {
namespace {

uint8_t low(uint8_t byte) { return byte & 15; }
uint8_t high(uint8_t byte) { return byte >> 4; }

// 16 bytes of nibbles in halves: element j low, element j + 16 high.
void nibble_halves(const uint8_t qs[16], uint8_t code[32]) {
  for (size_t j = 0; j < 16; ++j) {
    code[j] = low(qs[j]);
    code[j + 16] = high(qs[j]);
  }
}

void add_fifth_bits(const uint8_t qh[4], uint8_t code[32]) {
  for (size_t j = 0; j < 32; ++j) {
    const uint32_t bit = (qh[j / 8] >> (j % 8)) & 1u;
    code[j] = static_cast<uint8_t>(code[j] | bit << 4);
  }
}

void look_up(const int8_t table[16], int zero, uint8_t* code, size_t count) {
  for (size_t j = 0; j < count; ++j) code[j] = static_cast<uint8_t>(table[code[j]] + zero);
}

// The 6-bit scales and minima of Q4_K and Q5_K.
void scales_and_minima(uint16_t d_half, uint16_t dmin_half, const uint8_t scales[12], DecodedBlock& out) {
  const float d = f16_to_f32(d_half);
  const float dmin = f16_to_f32(dmin_half);
  for (size_t g = 0; g < 8; ++g) {
    int scale, min;
    if (g < 4) {
      scale = scales[g] & 63;
      min = scales[g + 4] & 63;
    } else {
      scale = low(scales[g + 4]) | (scales[g - 4] >> 6) << 4;
      min = high(scales[g + 4]) | (scales[g] >> 6) << 4;
    }
    out.scale[g] = d * static_cast<float>(scale);
    out.min[g] = -(dmin * static_cast<float>(min));
  }
}

// Per 64 elements 32 bytes: the first 32 elements in the low nibbles, the others in the high ones.
void nibble_groups(const uint8_t qs[128], uint8_t code[256]) {
  for (size_t g = 0; g < 8; ++g) {
    for (size_t l = 0; l < 32; ++l) {
      const uint8_t byte = qs[32 * (g / 2) + l];
      code[32 * g + l] = g % 2 == 0 ? low(byte) : high(byte);
    }
  }
}

}  // namespace

void Q4_0::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  nibble_halves(block.qs, out.code);
}

void Q4_1::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  out.min[0] = f16_to_f32(block.m);
  nibble_halves(block.qs, out.code);
}

void Q5_0::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  nibble_halves(block.qs, out.code);
  add_fifth_bits(block.qh, out.code);
}

void Q5_1::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  out.min[0] = f16_to_f32(block.m);
  nibble_halves(block.qs, out.code);
  add_fifth_bits(block.qh, out.code);
}

void Q8_0::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  for (size_t j = 0; j < kBlock; ++j) out.code[j] = static_cast<uint8_t>(block.qs[j] + kZero);
}

void IQ4_NL::decode(const Block& block, DecodedBlock& out) {
  out.scale[0] = f16_to_f32(block.d);
  nibble_halves(block.qs, out.code);
  look_up(kIq4Table, kZero, out.code, kBlock);
}

void MXFP4::decode(const Block& block, DecodedBlock& out) {
  // 2^(e - 128): below e = 2 the exponent field is 0 and the fraction carries the power.
  const uint32_t bits = block.e < 2 ? 0x00200000u << block.e : static_cast<uint32_t>(block.e - 1) << 23;
  out.scale[0] = __builtin_bit_cast(float, bits);
  nibble_halves(block.qs, out.code);
  look_up(kMxfp4DoubledTable, kZero, out.code, kBlock);
}

// Element 128 h + 32 k + l has its 2 bits in qs[32 h + l] at 2 k.
void Q2_K::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (size_t g = 0; g < 16; ++g) {
    out.scale[g] = d * static_cast<float>(low(block.scales[g]));
    out.min[g] = -(dmin * static_cast<float>(high(block.scales[g])));
  }
  for (size_t i = 0; i < kBlock; ++i) {
    out.code[i] = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
  }
}

void Q3_K::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d);
  for (size_t g = 0; g < 16; ++g) {
    const int low_bits = g < 8 ? low(block.scales[g]) : high(block.scales[g - 8]);
    const int high_bits = (block.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
    out.scale[g] = d * static_cast<float>((low_bits | high_bits << 4) - 32);
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const int low_bits = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
    const int high_bit = (block.hmask[i % 32] >> (i / 32)) & 1;
    out.code[i] = static_cast<uint8_t>(low_bits | high_bit << 2);
  }
}

void Q4_K::decode(const Block& block, DecodedBlock& out) {
  scales_and_minima(block.d, block.dmin, block.scales, out);
  nibble_groups(block.qs, out.code);
}

void Q5_K::decode(const Block& block, DecodedBlock& out) {
  scales_and_minima(block.d, block.dmin, block.scales, out);
  nibble_groups(block.qs, out.code);
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t bit = (block.qh[i % 32] >> (i / 32)) & 1u;
    out.code[i] = static_cast<uint8_t>(out.code[i] | bit << 4);
  }
}

// Element 128 h + 32 k + l: low nibble (k < 2) or high nibble of ql[64 h + 32 (k & 1) + l], and 2 bits of qh[32 h + l].
void Q6_K::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d);
  for (size_t g = 0; g < 16; ++g) out.scale[g] = d * static_cast<float>(block.scales[g]);
  for (size_t i = 0; i < kBlock; ++i) {
    const size_t h = i / 128, k = i / 32 % 4, l = i % 32;
    const uint8_t byte = block.ql[64 * h + 32 * (k & 1) + l];
    const int high_bits = (block.qh[32 * h + l] >> (2 * k)) & 3;
    out.code[i] = static_cast<uint8_t>((k < 2 ? low(byte) : high(byte)) | high_bits << 4);
  }
}

void IQ4_XS::decode(const Block& block, DecodedBlock& out) {
  const float d = f16_to_f32(block.d);
  for (size_t g = 0; g < 8; ++g) {
    const uint8_t byte = block.scales_l[g / 2];
    const int scale = (g % 2 == 0 ? low(byte) : high(byte)) | ((block.scales_h >> (2 * g)) & 3) << 4;
    out.scale[g] = d * static_cast<float>(scale - 32);
    nibble_halves(block.qs + 16 * g, out.code + 32 * g);
  }
  look_up(kIq4Table, kZero, out.code, kBlock);
}

}  // namespace blocks

namespace {

template <class Format>
void decode_bytes(const uint8_t* bytes, DecodedBlock& out) {
  typename Format::Block block;
  std::memcpy(&block, bytes, sizeof block);
  Format::decode(block, out);
}

template <class Format>
constexpr BlockInfo info() {
  return {Format::kBlock,  sizeof(typename Format::Block), Format::kGroup, Format::kZero,
          Format::kHasMin, &decode_bytes<Format>};
}

}  // namespace

const BlockInfo* block_info(Type type) {
  static constexpr BlockInfo q4_0 = info<blocks::Q4_0>(), q4_1 = info<blocks::Q4_1>(), q5_0 = info<blocks::Q5_0>(),
                             q5_1 = info<blocks::Q5_1>(), q8_0 = info<blocks::Q8_0>(), q2_k = info<blocks::Q2_K>(),
                             q3_k = info<blocks::Q3_K>(), q4_k = info<blocks::Q4_K>(), q5_k = info<blocks::Q5_K>(),
                             q6_k = info<blocks::Q6_K>(), iq4_nl = info<blocks::IQ4_NL>(),
                             iq4_xs = info<blocks::IQ4_XS>(), mxfp4 = info<blocks::MXFP4>(),
                             iq1_s = info<blocks::IQ1_S>(), iq1_m = info<blocks::IQ1_M>(),
                             iq2_xxs = info<blocks::IQ2_XXS>(), iq2_xs = info<blocks::IQ2_XS>(),
                             iq2_s = info<blocks::IQ2_S>(), iq3_xxs = info<blocks::IQ3_XXS>(),
                             iq3_s = info<blocks::IQ3_S>(), tq1_0 = info<blocks::TQ1_0>(),
                             tq2_0 = info<blocks::TQ2_0>();
  switch (type) {
    case Type::Q4_0:
      return &q4_0;
    case Type::Q4_1:
      return &q4_1;
    case Type::Q5_0:
      return &q5_0;
    case Type::Q5_1:
      return &q5_1;
    case Type::Q8_0:
      return &q8_0;
    case Type::Q2_K:
      return &q2_k;
    case Type::Q3_K:
      return &q3_k;
    case Type::Q4_K:
      return &q4_k;
    case Type::Q5_K:
      return &q5_k;
    case Type::Q6_K:
      return &q6_k;
    case Type::IQ4_NL:
      return &iq4_nl;
    case Type::IQ4_XS:
      return &iq4_xs;
    case Type::MXFP4:
      return &mxfp4;
    case Type::IQ1_S:
      return &iq1_s;
    case Type::IQ1_M:
      return &iq1_m;
    case Type::IQ2_XXS:
      return &iq2_xxs;
    case Type::IQ2_XS:
      return &iq2_xs;
    case Type::IQ2_S:
      return &iq2_s;
    case Type::IQ3_XXS:
      return &iq3_xxs;
    case Type::IQ3_S:
      return &iq3_s;
    case Type::TQ1_0:
      return &tq1_0;
    case Type::TQ2_0:
      return &tq2_0;
    case Type::F32:
    case Type::F16:
    case Type::BF16:
      return nullptr;
  }
  return nullptr;
}

template <class Format>
void dequantize_blocks(const uint8_t* bytes, float* out, size_t count) {
  RIDGE_CHECK(count % Format::kBlock == 0, "a count of elements is a multiple of the type's block");
  DecodedBlock values;
  for (size_t begin = 0; begin < count; begin += Format::kBlock, bytes += sizeof(typename Format::Block)) {
    decode_bytes<Format>(bytes, values);
    for (size_t i = 0; i < Format::kBlock; ++i) {
      const size_t g = i / Format::kGroup;
      const float product = static_cast<float>(values.code[i] - Format::kZero) * values.scale[g];
      out[begin + i] = Format::kHasMin ? product + values.min[g] : product;
    }
  }
}

template void dequantize_blocks<blocks::Q4_0>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q4_1>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q5_0>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q5_1>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q8_0>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q2_K>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q3_K>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q4_K>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q5_K>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::Q6_K>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ4_NL>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ4_XS>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::MXFP4>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ1_S>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ1_M>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ2_XXS>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ2_XS>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ2_S>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ3_XXS>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::IQ3_S>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::TQ1_0>(const uint8_t*, float*, size_t);
template void dequantize_blocks<blocks::TQ2_0>(const uint8_t*, float*, size_t);

void dequantize_f32(const uint8_t* bytes, float* out, size_t count) { std::memcpy(out, bytes, 4 * count); }

void dequantize_f16(const uint8_t* bytes, float* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, bytes + 2 * i, 2);
    out[i] = f16_to_f32(h);
  }
}

void dequantize_bf16(const uint8_t* bytes, float* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, bytes + 2 * i, 2);
    out[i] = bf16_to_f32(h);
  }
}

}  // namespace ridge
