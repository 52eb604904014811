// 16 floats in four 128-bit registers: the V of simd/. Its type lives in an unnamed namespace (see simd/math.h).
// NEON is what every 64-bit Arm CPU has; nothing here needs more than Armv8.0.
#pragma once

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RIDGE_INLINE inline __attribute__((always_inline))

namespace ridge::neon {
namespace {

struct Vec {
  using R = float32x4_t;
  // Members rather than an array: the compiler keeps them in registers wherever they go.
  struct F {
    R a, b, c, d;
  };
  struct I {
    int32x4_t a, b, c, d;
  };
  static constexpr size_t kRegisters = 8;  // of F: 32, four each

  // f for each of the four registers.
  template <class Function>
  static RIDGE_INLINE F each(F x, Function f) {
    return {f(x.a), f(x.b), f(x.c), f(x.d)};
  }
  template <class Function>
  static RIDGE_INLINE F each(F x, F y, Function f) {
    return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
  }
  template <class Function>
  static RIDGE_INLINE F each(F x, F y, F z, Function f) {
    return {f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d)};
  }

  static RIDGE_INLINE F zero() { return set(0); }
  static RIDGE_INLINE F set(float x) {
    const R v = vdupq_n_f32(x);
    return {v, v, v, v};
  }
  static RIDGE_INLINE F load(const float* p) {
    return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
  }
  static RIDGE_INLINE F load(const float* p, size_t n) {  // zeros behind n
    if (n == 16) return load(p);
    float whole[16] = {};
    memcpy(whole, p, n * sizeof(float));
    return load(whole);
  }
  static RIDGE_INLINE void store(float* p, F x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
  }
  static RIDGE_INLINE void store(float* p, F x, size_t n) {
    if (n == 16) return store(p, x);
    float whole[16];
    store(whole, x);
    memcpy(p, whole, n * sizeof(float));
  }
  static RIDGE_INLINE F first(F x, size_t n) {
    float whole[16];
    store(whole, x);
    return load(whole, n);
  }

  static RIDGE_INLINE R widen_half(uint16x4_t x) { return vcvt_f32_f16(vreinterpret_f16_u16(x)); }
  static RIDGE_INLINE F load_half(const uint16_t* p) {
    const uint16x8_t low = vld1q_u16(p), high = vld1q_u16(p + 8);
    return {widen_half(vget_low_u16(low)), widen_half(vget_high_u16(low)), widen_half(vget_low_u16(high)),
            widen_half(vget_high_u16(high))};
  }
  static RIDGE_INLINE F load_half(const uint16_t* p, size_t n) {
    uint16_t whole[16] = {};
    memcpy(whole, p, n * sizeof(uint16_t));
    return load_half(whole);
  }
  static RIDGE_INLINE uint16x4_t narrow_half(R x) { return vreinterpret_u16_f16(vcvt_f16_f32(x)); }
  static RIDGE_INLINE void store_half(uint16_t* p, F x, size_t n) {
    uint16_t whole[16];
    vst1q_u16(whole, vcombine_u16(narrow_half(x.a), narrow_half(x.b)));
    vst1q_u16(whole + 8, vcombine_u16(narrow_half(x.c), narrow_half(x.d)));
    memcpy(p, whole, n * sizeof(uint16_t));
  }

  static RIDGE_INLINE F set_half(const void* p) {  // one number, to every lane
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const R all = widen_half(vdup_n_u16(half));
    return {all, all, all, all};
  }
  static RIDGE_INLINE F load_bf16(const uint16_t* p) {
    const uint16x8_t low = vld1q_u16(p), high = vld1q_u16(p + 8);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(low, 16)),
            vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(high, 16))};
  }
  static RIDGE_INLINE F load_bf16(const uint16_t* p, size_t n) {
    uint16_t whole[16] = {};
    memcpy(whole, p, n * sizeof(uint16_t));
    return load_bf16(whole);
  }
  static RIDGE_INLINE F load_int8(const int8_t* p) {
    const int8x16_t codes = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
  }

  static RIDGE_INLINE F add(F a, F b) {
    return each(a, b, [](R x, R y) { return x + y; });
  }
  static RIDGE_INLINE F sub(F a, F b) {
    return each(a, b, [](R x, R y) { return x - y; });
  }
  static RIDGE_INLINE F mul(F a, F b) {
    return each(a, b, [](R x, R y) { return x * y; });
  }
  static RIDGE_INLINE F div(F a, F b) {
    return each(a, b, [](R x, R y) { return x / y; });
  }
  // b where either is NaN, as the contract of simd/ wants it: FMIN and FMAX would return the NaN.
  static RIDGE_INLINE R max4(R x, R y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
  static RIDGE_INLINE F min(F a, F b) {
    return each(a, b, [](R x, R y) { return vbslq_f32(vcltq_f32(x, y), x, y); });
  }
  static RIDGE_INLINE F max(F a, F b) {
    return each(a, b, [](R x, R y) { return max4(x, y); });
  }
  static RIDGE_INLINE F fma(F a, F b, F c) {
    return each(a, b, c, [](R x, R y, R z) { return vfmaq_f32(z, x, y); });
  }
  static RIDGE_INLINE F fms(F a, F b, F c) { return fma(a, b, negate(c)); }
  static RIDGE_INLINE F abs(F x) {
    return each(x, [](R v) { return vabsq_f32(v); });
  }
  static RIDGE_INLINE F negate(F x) {
    return each(x, [](R v) { return vnegq_f32(v); });
  }
  static RIDGE_INLINE F copy_sign(F magnitude, F from) {
    return each(magnitude, from, [](R m, R f) { return vbslq_f32(vdupq_n_u32(0x80000000u), f, m); });
  }
  static RIDGE_INLINE F select_less(F a, F b, F yes, F no) {
    return {vbslq_f32(vcltq_f32(a.a, b.a), yes.a, no.a), vbslq_f32(vcltq_f32(a.b, b.b), yes.b, no.b),
            vbslq_f32(vcltq_f32(a.c, b.c), yes.c, no.c), vbslq_f32(vcltq_f32(a.d, b.d), yes.d, no.d)};
  }

  // x · 2^n for whole n and x near 1, in two steps of half the exponent: the first is exact, the second rounds.
  static RIDGE_INLINE F times_power_of_two(F x, F n) {
    return each(x, n, [](R value, R power) {
      const int32x4_t exponent = vcvtnq_s32_f32(power), half = vshrq_n_s32(exponent, 1), bias = vdupq_n_s32(127);
      const int32x4_t low = vshlq_n_s32(vaddq_s32(half, bias), 23);
      const int32x4_t high = vshlq_n_s32(vaddq_s32(vsubq_s32(exponent, half), bias), 23);
      return vmulq_f32(vmulq_f32(value, vreinterpretq_f32_s32(low)), vreinterpretq_f32_s32(high));
    });
  }
  static RIDGE_INLINE float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

  // The tree i+8, i+4, i+2, i+1. ADDV and FADDP pair neighbours: another tree, other bytes.
  static RIDGE_INLINE float reduce_add(F x) {
    const R four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static RIDGE_INLINE float reduce_max(F x) {
    const R four = max4(max4(x.a, x.c), max4(x.b, x.d));
    const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
    const float first = vget_lane_f32(two, 0), second = vget_lane_f32(two, 1);
    return first > second ? first : second;
  }

  static RIDGE_INLINE I magnitude_bits(F x) {
    const F m = abs(x);
    return {vreinterpretq_s32_f32(m.a), vreinterpretq_s32_f32(m.b), vreinterpretq_s32_f32(m.c),
            vreinterpretq_s32_f32(m.d)};
  }
  static RIDGE_INLINE I max_int(I x, I y) {
    return {vmaxq_s32(x.a, y.a), vmaxq_s32(x.b, y.b), vmaxq_s32(x.c, y.c), vmaxq_s32(x.d, y.d)};
  }
  static RIDGE_INLINE int reduce_max_int(I x) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.a, x.b), vmaxq_s32(x.c, x.d)));
  }
  static RIDGE_INLINE int reduce_add_int(I x) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d)));
  }
  static RIDGE_INLINE float bits_to_float(int bits) { return vget_lane_f32(vreinterpret_f32_s32(vdup_n_s32(bits)), 0); }
  static RIDGE_INLINE I round(F x) {  // ties to even
    return {vcvtnq_s32_f32(x.a), vcvtnq_s32_f32(x.b), vcvtnq_s32_f32(x.c), vcvtnq_s32_f32(x.d)};
  }
  static RIDGE_INLINE void store_bytes(int8_t* p, I x) {  // each −127 … 127
    const int16x8_t low = vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b));
    const int16x8_t high = vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  }
  static RIDGE_INLINE void store_zero_bytes(int8_t* p) { vst1q_s8(p, vdupq_n_s8(0)); }

  static RIDGE_INLINE F double_even(F x) {
    return each(x, [](R v) { return vtrn1q_f32(v, v); });
  }
  static RIDGE_INLINE F double_odd(F x) {
    return each(x, [](R v) { return vtrn2q_f32(v, v); });
  }
  static RIDGE_INLINE F swap_pairs(F x) {
    return each(x, [](R v) { return vrev64q_f32(v); });
  }
  static RIDGE_INLINE F fma_sub_even_add_odd(F a, F b, F c) {
    return each(a, b, c, [](R x, R y, R z) {
      const uint32x4_t even_sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
      return vfmaq_f32(vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(z), even_sign)), x, y);
    });
  }
  static RIDGE_INLINE F even_of(F x, F y) {
    return {vuzp1q_f32(x.a, x.b), vuzp1q_f32(x.c, x.d), vuzp1q_f32(y.a, y.b), vuzp1q_f32(y.c, y.d)};
  }
  static RIDGE_INLINE F odd_of(F x, F y) {
    return {vuzp2q_f32(x.a, x.b), vuzp2q_f32(x.c, x.d), vuzp2q_f32(y.a, y.b), vuzp2q_f32(y.c, y.d)};
  }

  // 4 × 4: out[i][j] = in[j][i], rows `in_stride` and `out_stride` floats apart.
  static RIDGE_INLINE void transpose4(const float* in, size_t in_stride, float* out, size_t out_stride) {
    const R w = vld1q_f32(in), x = vld1q_f32(in + in_stride), y = vld1q_f32(in + 2 * in_stride),
            z = vld1q_f32(in + 3 * in_stride);
    const R even_low = vzip1q_f32(w, y), even_high = vzip2q_f32(w, y);  // w0 y0 w1 y1 | w2 y2 w3 y3
    const R odd_low = vzip1q_f32(x, z), odd_high = vzip2q_f32(x, z);
    vst1q_f32(out, vzip1q_f32(even_low, odd_low));
    vst1q_f32(out + out_stride, vzip2q_f32(even_low, odd_low));
    vst1q_f32(out + 2 * out_stride, vzip1q_f32(even_high, odd_high));
    vst1q_f32(out + 3 * out_stride, vzip2q_f32(even_high, odd_high));
  }
};

}  // namespace
}  // namespace ridge::neon
