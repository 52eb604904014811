// 16 floats in two 256-bit registers: the V of simd/. Its type lives in an unnamed namespace (see simd/math.h).
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace ridge::avx2 {
namespace {

struct Vec {
  struct F {
    __m256 low, high;
  };
  struct I {
    __m256i low, high;
  };
  static constexpr size_t kRegisters = 8;  // of F: 16, two each

  // All ones in the first n of 8 lanes; n ≤ 8.
  static __m256i mask8(size_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }
  static I mask(size_t n) { return {mask8(n < 8 ? n : 8), mask8(n > 8 ? n - 8 : 0)}; }

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static F load(const float* p, size_t n) {  // zeros behind n
    const I m = mask(n);
    return {_mm256_maskload_ps(p, m.low), _mm256_maskload_ps(p + 8, m.high)};
  }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  static void store(float* p, F x, size_t n) {
    const I m = mask(n);
    _mm256_maskstore_ps(p, m.low, x.low);
    _mm256_maskstore_ps(p + 8, m.high, x.high);
  }
  static F first(F x, size_t n) {
    const I m = mask(n);
    return {_mm256_and_ps(x.low, _mm256_castsi256_ps(m.low)), _mm256_and_ps(x.high, _mm256_castsi256_ps(m.high))};
  }

  static F load_half(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static F load_half(const uint16_t* p, size_t n) {
    uint16_t whole[16] = {};
    memcpy(whole, p, n * sizeof(uint16_t));
    return load_half(whole);
  }
  static void store_half(uint16_t* p, F x, size_t n) {
    uint16_t whole[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(whole), _mm256_cvtps_ph(x.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(whole + 8), _mm256_cvtps_ph(x.high, _MM_FROUND_TO_NEAREST_INT));
    memcpy(p, whole, n * sizeof(uint16_t));
  }

  static F set_half(const void* p) {  // one number, to every lane
    short half;
    memcpy(&half, p, sizeof half);
    const __m256 all = _mm256_cvtph_ps(_mm_set1_epi16(half));
    return {all, all};
  }
  static __m256 widen_bf16(__m128i x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)); }
  static F load_bf16(const uint16_t* p) {
    return {widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static F load_bf16(const uint16_t* p, size_t n) {
    uint16_t whole[16] = {};
    memcpy(whole, p, n * sizeof(uint16_t));
    return load_bf16(whole);
  }
  static F load_int8(const int8_t* p) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(codes, codes)))};
  }

  static F add(F a, F b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static F sub(F a, F b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static F mul(F a, F b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static F div(F a, F b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static F min(F a, F b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }  // b where either is NaN
  static F max(F a, F b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static F fma(F a, F b, F c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static F fms(F a, F b, F c) {
    return {_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high)};
  }
  static F abs(F x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
  }
  static F negate(F x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(sign, x.low), _mm256_xor_ps(sign, x.high)};
  }
  static F copy_sign(F magnitude, F from) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_or_ps(magnitude.low, _mm256_and_ps(sign, from.low)),
            _mm256_or_ps(magnitude.high, _mm256_and_ps(sign, from.high))};
  }
  static F select_less(F a, F b, F yes, F no) {
    return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }

  // x · 2^n for whole n and x near 1, in two steps of half the exponent: the first is exact, the second rounds.
  static __m256 times_power_of_two8(__m256 x, __m256 n) {
    const __m256i exponent = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(exponent, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
  }
  static F times_power_of_two(F x, F n) {
    return {times_power_of_two8(x.low, n.low), times_power_of_two8(x.high, n.high)};
  }
  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

  // The tree i+8, i+4, i+2, i+1.
  static float reduce_add(F x) {
    const __m256 eight = _mm256_add_ps(x.low, x.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float reduce_max(F x) {
    const __m256 eight = _mm256_max_ps(x.low, x.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static I magnitude_bits(F x) {
    const F a = abs(x);
    return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
  }
  static I max_int(I a, I b) { return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)}; }
  static int reduce_max_int(I x) {
    const __m256i eight = _mm256_max_epi32(x.low, x.high);
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  static int reduce_add_int(I x) {
    const __m256i eight = _mm256_add_epi32(x.low, x.high);
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  static float bits_to_float(int bits) { return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits))); }
  static I round(F x) { return {_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)}; }  // ties to even
  static void store_bytes(int8_t* p, I x) {                                                // each −127 … 127
    const __m128i a = _mm_packs_epi32(_mm256_castsi256_si128(x.low), _mm256_extracti128_si256(x.low, 1));
    const __m128i b = _mm_packs_epi32(_mm256_castsi256_si128(x.high), _mm256_extracti128_si256(x.high, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(a, b));
  }
  static void store_zero_bytes(int8_t* p) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_setzero_si128()); }

  static F double_even(F x) { return {_mm256_moveldup_ps(x.low), _mm256_moveldup_ps(x.high)}; }
  static F double_odd(F x) { return {_mm256_movehdup_ps(x.low), _mm256_movehdup_ps(x.high)}; }
  static F swap_pairs(F x) { return {_mm256_permute_ps(x.low, 0xb1), _mm256_permute_ps(x.high, 0xb1)}; }
  static F fma_sub_even_add_odd(F a, F b, F c) {
    return {_mm256_fmaddsub_ps(a.low, b.low, c.low), _mm256_fmaddsub_ps(a.high, b.high, c.high)};
  }
  // Every second element of a and b; `Pick` is 0x88 for the even and 0xdd for the odd ones.
  template <int Pick>
  static __m256 every_second(__m256 a, __m256 b) {
    const __m256 mixed = _mm256_shuffle_ps(a, b, Pick);  // a0 a2 b0 b2 | a4 a6 b4 b6
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
  }
  static F even_of(F a, F b) { return {every_second<0x88>(a.low, a.high), every_second<0x88>(b.low, b.high)}; }
  static F odd_of(F a, F b) { return {every_second<0xdd>(a.low, a.high), every_second<0xdd>(b.low, b.high)}; }

  // 4 × 4: out[i][j] = in[j][i], rows `in_stride` and `out_stride` floats apart.
  static void transpose4(const float* in, size_t in_stride, float* out, size_t out_stride) {
    __m128 a = _mm_loadu_ps(in), b = _mm_loadu_ps(in + in_stride), c = _mm_loadu_ps(in + 2 * in_stride),
           d = _mm_loadu_ps(in + 3 * in_stride);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(out, a);
    _mm_storeu_ps(out + out_stride, b);
    _mm_storeu_ps(out + 2 * out_stride, c);
    _mm_storeu_ps(out + 3 * out_stride, d);
  }
};

}  // namespace
}  // namespace ridge::avx2
