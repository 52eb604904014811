// 16 floats in one 512-bit register: the V of simd/. Its type lives in an unnamed namespace (see simd/math.h).
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

namespace ridge::avx512 {
namespace {

struct Vec {
  using F = __m512;
  using I = __m512i;
  static constexpr size_t kRegisters = 32;  // of F

  static __mmask16 mask(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }  // n ≤ 16

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const float* p, size_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }  // zeros behind n
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store(float* p, F x, size_t n) { _mm512_mask_storeu_ps(p, mask(n), x); }
  static F first(F x, size_t n) { return _mm512_maskz_mov_ps(mask(n), x); }

  static F load_half(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load_half(const uint16_t* p, size_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask(n), p)); }
  static void store_half(uint16_t* p, F x, size_t n) {
    _mm256_mask_storeu_epi16(p, mask(n), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static F set_half(const void* p) {  // one number, to every lane
    short half;
    __builtin_memcpy(&half, p, sizeof half);
    return _mm512_cvtph_ps(_mm256_set1_epi16(half));
  }
  static F widen_bf16(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
  static F load_bf16(const uint16_t* p) { return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F load_bf16(const uint16_t* p, size_t n) { return widen_bf16(_mm256_maskz_loadu_epi16(mask(n), p)); }
  static F load_int8(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }  // b where either is NaN
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fms(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
  static F abs(F x) { return _mm512_andnot_ps(set(-0.0f), x); }
  static F negate(F x) { return _mm512_xor_ps(set(-0.0f), x); }
  static F copy_sign(F magnitude, F sign) { return _mm512_or_ps(magnitude, _mm512_and_ps(set(-0.0f), sign)); }
  static F select_less(F a, F b, F yes, F no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
  }
  static F times_power_of_two(F x, F n) { return _mm512_scalef_ps(x, n); }
  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

  // The tree i+8, i+4, i+2, i+1.
  static float reduce_add(F x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float reduce_max(F x) { return _mm512_reduce_max_ps(x); }

  static I magnitude_bits(F x) { return _mm512_castps_si512(abs(x)); }
  static I max_int(I a, I b) { return _mm512_max_epi32(a, b); }
  static int reduce_max_int(I x) { return _mm512_reduce_max_epi32(x); }
  static int reduce_add_int(I x) { return _mm512_reduce_add_epi32(x); }
  static float bits_to_float(int bits) { return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits))); }
  static I round(F x) { return _mm512_cvtps_epi32(x); }  // ties to even
  static void store_bytes(int8_t* p, I x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x)); }
  static void store_zero_bytes(int8_t* p) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_setzero_si128()); }

  static F double_even(F x) { return _mm512_moveldup_ps(x); }
  static F double_odd(F x) { return _mm512_movehdup_ps(x); }
  static F swap_pairs(F x) { return _mm512_permute_ps(x, 0xb1); }
  static F fma_sub_even_add_odd(F a, F b, F c) { return _mm512_fmaddsub_ps(a, b, c); }
  static F even_of(F a, F b) {
    const I index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, index, b);
  }
  static F odd_of(F a, F b) {
    const I index = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, index, b);
  }

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
}  // namespace ridge::avx512
