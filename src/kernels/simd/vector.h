// Quantising, norms, activations, rope and cache stores for vectors of 16 floats; see kernels.h for what they compute
// and simd/math.h for what V is and why only templates may stand here.
//
//   {Op::rms_norm, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Vector<Vec>::rms_norm), "…"}
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/math.h"

namespace ridge::simd {

template <class V>
struct Vector {
  using F = typename V::F;
  using I = typename V::I;
  using M = Math<V>;

  // One block: 32 values in, 32 bytes, one scale, two sums out.
  static inline void quantize_block(F a, F b, int8_t* q, float* d, int32_t* sums) {
    // Magnitudes compare as integers: a NaN or an infinity wins and becomes the scale.
    const I largest = V::max_int(V::magnitude_bits(a), V::magnitude_bits(b));
    *d = V::bits_to_float(V::reduce_max_int(largest)) / 127.0f;
    if (!(*d > 0 && *d <= __FLT_MAX__)) {
      V::store_zero_bytes(q);
      V::store_zero_bytes(q + 16);
      sums[0] = sums[1] = 0;
      return;
    }
    const F scale = V::set(*d), low = V::set(-127.0f), high = V::set(127.0f);
    const I qa = V::round(V::min(high, V::max(low, V::div(a, scale))));
    const I qb = V::round(V::min(high, V::max(low, V::div(b, scale))));
    V::store_bytes(q, qa);
    V::store_bytes(q + 16, qb);
    sums[0] = V::reduce_add_int(qa);
    sums[1] = V::reduce_add_int(qb);
  }

  static void quantize(const float* x, size_t n, int8_t* q, float* d, int32_t* sums) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) quantize_block(V::load(x + i), V::load(x + i + 16), q + i, d + i / 32, sums + i / 16);
    if (i == n) return;
    const size_t rest = n - i;
    const F a = V::load(x + i, rest < 16 ? rest : 16);
    const F b = rest > 16 ? V::load(x + i + 16, rest - 16) : V::zero();
    quantize_block(a, b, q + i, d + i / 32, sums + i / 16);
  }

  static void rms_norm(const float* x, const float* w, size_t n, float eps, float* out) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    F squares = V::zero();
    for (size_t i = 0; i < whole; i += 16) {
      const F v = V::load(x + i);
      squares = V::fma(v, v, squares);
    }
    if (rest > 0) {
      const F v = V::load(x + whole, rest);  // the lanes beyond add +0, which changes no sum of squares
      squares = V::fma(v, v, squares);
    }
    const F inverse = V::set(1.0f / V::square_root(V::reduce_add(squares) / static_cast<float>(n) + eps));
    if (w == nullptr) {
      map(x, n, out, [=](F v) { return V::mul(v, inverse); });
    } else {
      map2(x, w, n, out, [=](F v, F weight) { return V::mul(V::mul(v, inverse), weight); });
    }
  }

  static void layer_norm(const float* x, const float* scale, const float* shift, size_t n, float eps, float* out) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    const float count = static_cast<float>(n);
    F sum = V::zero();
    for (size_t i = 0; i < whole; i += 16) sum = V::add(sum, V::load(x + i));
    if (rest > 0) sum = V::add(sum, V::load(x + whole, rest));
    const F mean = V::set(V::reduce_add(sum) / count);
    F squares = V::zero();
    for (size_t i = 0; i < whole; i += 16) {
      const F d = V::sub(V::load(x + i), mean);
      squares = V::fma(d, d, squares);
    }
    if (rest > 0) {
      const F d = V::first(V::sub(V::load(x + whole, rest), mean), rest);
      squares = V::fma(d, d, squares);
    }
    const F inverse = V::set(1.0f / V::square_root(V::reduce_add(squares) / count + eps));
    const auto one = [=](F v, F factor, F term) { return V::fma(V::mul(V::sub(v, mean), inverse), factor, term); };
    for (size_t i = 0; i < whole; i += 16) {
      V::store(out + i, one(V::load(x + i), V::load(scale + i), V::load(shift + i)));
    }
    if (rest == 0) return;
    const F v = one(V::load(x + whole, rest), V::load(scale + whole, rest), V::load(shift + whole, rest));
    V::store(out + whole, v, rest);
  }

  static void gelu(size_t n, float* inout) {
    map(inout, n, inout, [](F x) { return M::gelu(x); });
  }

  static void add_scaled(const float* factors, const float* x, size_t n, float* inout) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    for (size_t i = 0; i < whole; i += 16) {
      V::store(inout + i, V::fma(V::load(factors + i), V::load(x + i), V::load(inout + i)));
    }
    if (rest == 0) return;
    const F v = V::fma(V::load(factors + whole, rest), V::load(x + whole, rest), V::load(inout + whole, rest));
    V::store(inout + whole, v, rest);
  }

  static void add(const float* a, size_t n, float* inout) {
    map2(inout, a, n, inout, [](F x, F y) { return V::add(x, y); });
  }

  static void scale(float factor, size_t n, float* inout) {
    const F f = V::set(factor);
    map(inout, n, inout, [=](F x) { return V::mul(x, f); });
  }

  static void swiglu(const float* gate, const float* up, size_t n, float* out) {
    map2(gate, up, n, out, [](F g, F u) { return V::mul(M::silu(g), u); });
  }

  static void geglu(const float* gate, const float* up, size_t n, float* out) {
    map2(gate, up, n, out, [](F g, F u) { return V::mul(M::gelu_tanh(g), u); });
  }

  static void softcap(float cap, size_t n, float* inout) {
    const F c = V::set(cap);
    map(inout, n, inout, [=](F x) { return V::mul(c, M::tanh(V::div(x, c))); });
  }

  // x · cos ∓ swapped x · sin, minus in the even places.
  static void rope_norm(float* head, size_t rot, const float* cos_sin) {
    map2(head, cos_sin, rot, head, [](F x, F cs) {
      return V::fma_sub_even_add_odd(x, V::double_even(cs), V::mul(V::swap_pairs(x), V::double_odd(cs)));
    });
  }

  static void rope_neox(float* head, size_t rot, const float* cos_sin) {
    const size_t half = rot / 2;
    size_t i = 0;
    for (; i + 16 <= half; i += 16) {
      const F c0 = V::load(cos_sin + 2 * i), c1 = V::load(cos_sin + 2 * i + 16);
      const F a = V::load(head + i), b = V::load(head + half + i);
      const F cos = V::even_of(c0, c1), sin = V::odd_of(c0, c1);
      V::store(head + i, V::fms(a, cos, V::mul(b, sin)));
      V::store(head + half + i, V::fma(b, cos, V::mul(a, sin)));
    }
    if (i == half) return;
    const size_t rest = half - i, entries = 2 * rest;
    const F c0 = V::load(cos_sin + 2 * i, entries < 16 ? entries : 16);
    const F c1 = entries > 16 ? V::load(cos_sin + 2 * i + 16, entries - 16) : V::zero();
    const F a = V::load(head + i, rest), b = V::load(head + half + i, rest);
    const F cos = V::even_of(c0, c1), sin = V::odd_of(c0, c1);
    V::store(head + i, V::fms(a, cos, V::mul(b, sin)), rest);
    V::store(head + half + i, V::fma(b, cos, V::mul(a, sin)), rest);
  }

  // The keys of 16 consecutive slots are interleaved: dimension i of a slot lies 16 elements after dimension i − 1.
  static void store_key_f16(const float* k, size_t key_dim, void* panels, size_t slot) {
    uint16_t* out = static_cast<uint16_t*>(panels) + slot / 16 * 16 * key_dim + slot % 16;
    uint16_t halves[16];
    for (size_t i = 0; i < key_dim; i += 16) {
      const size_t count = key_dim - i < 16 ? key_dim - i : 16;
      V::store_half(halves, V::load(k + i, count), 16);
      for (size_t j = 0; j < count; ++j) out[16 * (i + j)] = halves[j];
    }
  }

  static void store_key_f32(const float* k, size_t key_dim, void* panels, size_t slot) {
    float* out = static_cast<float*>(panels) + slot / 16 * 16 * key_dim + slot % 16;
    for (size_t i = 0; i < key_dim; ++i) out[16 * i] = k[i];
  }

  static void store_value_f16(const float* v, size_t value_dim, void* rows, size_t slot) {
    uint16_t* out = static_cast<uint16_t*>(rows) + slot * value_dim;
    for (size_t i = 0; i < value_dim; i += 16) {
      const size_t count = value_dim - i < 16 ? value_dim - i : 16;
      V::store_half(out + i, V::load(v + i, count), count);
    }
  }

  static void store_value_f32(const float* v, size_t value_dim, void* rows, size_t slot) {
    map(v, value_dim, static_cast<float*>(rows) + slot * value_dim, [](F x) { return x; });
  }

 private:
  template <class Body>
  static inline void map(const float* x, size_t n, float* out, Body body) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    for (size_t i = 0; i < whole; i += 16) V::store(out + i, body(V::load(x + i)));
    if (rest > 0) V::store(out + whole, body(V::load(x + whole, rest)), rest);
  }

  template <class Body>
  static inline void map2(const float* x, const float* y, size_t n, float* out, Body body) {
    const size_t whole = n / 16 * 16, rest = n % 16;
    for (size_t i = 0; i < whole; i += 16) V::store(out + i, body(V::load(x + i), V::load(y + i)));
    if (rest > 0) V::store(out + whole, body(V::load(x + whole, rest), V::load(y + whole, rest)), rest);
  }
};

}  // namespace ridge::simd
