#include "tensor/encode_blocks.h"

#include <cstring>

#include "base/check.h"

namespace ridge {
namespace {

uint8_t byte(int value) { return static_cast<uint8_t>(value); }

void put_nibbles(const uint8_t* code, uint8_t qs[16]) {
  for (size_t j = 0; j < 16; ++j) qs[j] = byte((code[j] & 15) | (code[j + 16] & 15) << 4);
}

void put_fifth_bits(const uint8_t* code, uint8_t qh[4]) {
  for (size_t j = 0; j < 32; ++j) qh[j / 8] = byte(qh[j / 8] | (code[j] >> 4) << (j % 8));
}

blocks::Q4_0::Block encode(const RawBlock& raw, blocks::Q4_0) {
  blocks::Q4_0::Block b{};
  b.d = raw.d;
  put_nibbles(raw.code, b.qs);
  return b;
}

blocks::Q4_1::Block encode(const RawBlock& raw, blocks::Q4_1) {
  blocks::Q4_1::Block b{};
  b.d = raw.d;
  b.m = raw.dmin;
  put_nibbles(raw.code, b.qs);
  return b;
}

blocks::Q5_0::Block encode(const RawBlock& raw, blocks::Q5_0) {
  blocks::Q5_0::Block b{};
  b.d = raw.d;
  put_fifth_bits(raw.code, b.qh);
  put_nibbles(raw.code, b.qs);
  return b;
}

blocks::Q5_1::Block encode(const RawBlock& raw, blocks::Q5_1) {
  blocks::Q5_1::Block b{};
  b.d = raw.d;
  b.m = raw.dmin;
  put_fifth_bits(raw.code, b.qh);
  put_nibbles(raw.code, b.qs);
  return b;
}

blocks::Q8_0::Block encode(const RawBlock& raw, blocks::Q8_0) {
  blocks::Q8_0::Block b{};
  b.d = raw.d;
  for (size_t j = 0; j < 32; ++j) b.qs[j] = static_cast<int8_t>(raw.code[j] - blocks::Q8_0::kZero);
  return b;
}

// Element 128 h + 32 k + l has its 2 low bits in qs[32 h + l] at 2 k.
void put_pairs(const uint8_t* code, uint8_t qs[64]) {
  for (size_t i = 0; i < 256; ++i) {
    uint8_t& q = qs[32 * (i / 128) + i % 32];
    q = byte(q | (code[i] & 3) << (2 * (i / 32 % 4)));
  }
}

blocks::Q2_K::Block encode(const RawBlock& raw, blocks::Q2_K) {
  blocks::Q2_K::Block b{};
  b.d = raw.d;
  b.dmin = raw.dmin;
  for (size_t g = 0; g < 16; ++g) b.scales[g] = byte(raw.scale[g] | raw.min[g] << 4);
  put_pairs(raw.code, b.qs);
  return b;
}

blocks::Q3_K::Block encode(const RawBlock& raw, blocks::Q3_K) {
  blocks::Q3_K::Block b{};
  b.d = raw.d;
  for (size_t g = 0; g < 16; ++g) {
    const int scale = raw.scale[g] + 32;
    b.scales[g % 8] = byte(b.scales[g % 8] | (scale & 15) << (g < 8 ? 0 : 4));
    b.scales[8 + g % 4] = byte(b.scales[8 + g % 4] | (scale >> 4) << (2 * (g / 4)));
  }
  put_pairs(raw.code, b.qs);
  for (size_t i = 0; i < 256; ++i) b.hmask[i % 32] = byte(b.hmask[i % 32] | (raw.code[i] >> 2) << (i / 32));
  return b;
}

// The 6-bit scales and minima of Q4_K and Q5_K.
void put_scales_and_minima(const RawBlock& raw, uint8_t scales[12]) {
  for (size_t g = 0; g < 4; ++g) {
    scales[g] = byte(raw.scale[g] | (raw.scale[g + 4] >> 4) << 6);
    scales[g + 4] = byte(raw.min[g] | (raw.min[g + 4] >> 4) << 6);
    scales[g + 8] = byte((raw.scale[g + 4] & 15) | (raw.min[g + 4] & 15) << 4);
  }
}

void put_nibble_groups(const uint8_t* code, uint8_t qs[128]) {
  for (size_t i = 0; i < 256; ++i) {
    uint8_t& q = qs[32 * (i / 64) + i % 32];
    q = byte(q | (code[i] & 15) << (i / 32 % 2 == 0 ? 0 : 4));
  }
}

blocks::Q4_K::Block encode(const RawBlock& raw, blocks::Q4_K) {
  blocks::Q4_K::Block b{};
  b.d = raw.d;
  b.dmin = raw.dmin;
  put_scales_and_minima(raw, b.scales);
  put_nibble_groups(raw.code, b.qs);
  return b;
}

blocks::Q5_K::Block encode(const RawBlock& raw, blocks::Q5_K) {
  blocks::Q5_K::Block b{};
  b.d = raw.d;
  b.dmin = raw.dmin;
  put_scales_and_minima(raw, b.scales);
  put_nibble_groups(raw.code, b.qs);
  for (size_t i = 0; i < 256; ++i) b.qh[i % 32] = byte(b.qh[i % 32] | (raw.code[i] >> 4) << (i / 32));
  return b;
}

blocks::Q6_K::Block encode(const RawBlock& raw, blocks::Q6_K) {
  blocks::Q6_K::Block b{};
  b.d = raw.d;
  for (size_t g = 0; g < 16; ++g) b.scales[g] = static_cast<int8_t>(raw.scale[g]);
  for (size_t i = 0; i < 256; ++i) {
    const size_t h = i / 128, k = i / 32 % 4, l = i % 32;
    uint8_t& low = b.ql[64 * h + 32 * (k & 1) + l];
    low = byte(low | (raw.code[i] & 15) << (k < 2 ? 0 : 4));
    uint8_t& high = b.qh[32 * h + l];
    high = byte(high | (raw.code[i] >> 4) << (2 * k));
  }
  return b;
}

// Blocks in a file have no alignment.
template <class Format>
void put(const RawBlock& raw, uint8_t* out) {
  const typename Format::Block b = encode(raw, Format{});
  std::memcpy(out, &b, sizeof b);
}

}  // namespace

void encode_block(Type type, const RawBlock& raw, uint8_t* out) {
  switch (type) {
    case Type::Q4_0:
      return put<blocks::Q4_0>(raw, out);
    case Type::Q4_1:
      return put<blocks::Q4_1>(raw, out);
    case Type::Q5_0:
      return put<blocks::Q5_0>(raw, out);
    case Type::Q5_1:
      return put<blocks::Q5_1>(raw, out);
    case Type::Q8_0:
      return put<blocks::Q8_0>(raw, out);
    case Type::Q2_K:
      return put<blocks::Q2_K>(raw, out);
    case Type::Q3_K:
      return put<blocks::Q3_K>(raw, out);
    case Type::Q4_K:
      return put<blocks::Q4_K>(raw, out);
    case Type::Q5_K:
      return put<blocks::Q5_K>(raw, out);
    case Type::Q6_K:
      return put<blocks::Q6_K>(raw, out);
    default:
      RIDGE_CHECK(false, "encode_block() is for types that have an encoder");
  }
}

}  // namespace ridge
