// Storing keys and values as bf16 and q8_0 (f16 and f32 are in vector.h); KvType in kernels.h has the formats, and
// simd/math.h says what V is and why only templates may stand here.
//
//   {Op::store_key_q8_0, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::KvStores<Vec>::store_key_q8_0), "…"}
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "tensor/half.h"

namespace ridge::simd {

template <class V>
struct KvStores {
  using F = typename V::F;
  using I = typename V::I;
  static constexpr size_t kBlock = 32, kRowBytes = 34, kPanelBytes = 16 * kRowBytes, kCodes = 32;

  // The scale of up to 32 numbers, and their 32 codes. Magnitudes compare as integers: a NaN or an infinity wins.
  static inline uint16_t quantize(const float* x, size_t n, int8_t* codes) {
    const F a = V::load(x, n < 16 ? n : 16), b = n > 16 ? V::load(x + 16, n - 16) : V::zero();
    const I largest = V::max_int(V::magnitude_bits(a), V::magnitude_bits(b));
    const uint16_t half = f32_to_f16(V::bits_to_float(V::reduce_max_int(largest)) / 127.0f);
    const float d = f16_to_f32(half);
    if (!(d > 0 && d <= __FLT_MAX__)) {
      V::store_zero_bytes(codes);
      V::store_zero_bytes(codes + 16);
      return half;
    }
    const F scale = V::set(d), low = V::set(-127.0f), high = V::set(127.0f);
    V::store_bytes(codes, V::round(V::min(high, V::max(low, V::div(a, scale)))));
    V::store_bytes(codes + 16, V::round(V::min(high, V::max(low, V::div(b, scale)))));
    return half;
  }

  static void store_key_q8_0(const float* k, size_t key_dim, void* panels, size_t slot) {
    uint8_t* block = static_cast<uint8_t*>(panels) + slot / 16 * 16 * kv_bytes(KvType::q8_0, key_dim);
    for (size_t from = 0; from < key_dim; from += kBlock, block += kPanelBytes) {
      int8_t codes[kBlock];
      const uint16_t d = quantize(k + from, key_dim - from < kBlock ? key_dim - from : kBlock, codes);
      __builtin_memcpy(block + 2 * (slot % 16), &d, sizeof d);
      for (size_t i = 0; i < kBlock; ++i) block[kCodes + 16 * i + slot % 16] = static_cast<uint8_t>(codes[i]);
    }
  }

  static void store_value_q8_0(const float* v, size_t value_dim, void* rows, size_t slot) {
    uint8_t* block = static_cast<uint8_t*>(rows) + slot * kv_bytes(KvType::q8_0, value_dim);
    for (size_t from = 0; from < value_dim; from += kBlock, block += kRowBytes) {
      int8_t codes[kBlock];
      const uint16_t d = quantize(v + from, value_dim - from < kBlock ? value_dim - from : kBlock, codes);
      __builtin_memcpy(block, &d, sizeof d);
      __builtin_memcpy(block + sizeof d, codes, sizeof codes);
    }
  }

  static void store_key_bf16(const float* k, size_t key_dim, void* panels, size_t slot) {
    uint16_t* out = static_cast<uint16_t*>(panels) + slot / 16 * 16 * key_dim + slot % 16;
    for (size_t i = 0; i < key_dim; ++i) out[16 * i] = f32_to_bf16(k[i]);
  }

  static void store_value_bf16(const float* v, size_t value_dim, void* rows, size_t slot) {
    uint16_t* out = static_cast<uint16_t*>(rows) + slot * value_dim;
    for (size_t i = 0; i < value_dim; ++i) out[i] = f32_to_bf16(v[i]);
  }
};

}  // namespace ridge::simd
