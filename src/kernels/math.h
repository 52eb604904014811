// The elementary functions of a forward pass, our own: libm's results differ from one C library to the next, and with
// them every byte behind them (docs/numerics.md).
//
// exp_f32 and tanh_f32 are the scalar form of the vector code in simd/math.h: the same operations in the same order, so
// the same bytes. The double functions serve tables that are computed once per position (rope_table.h).
//
//   float p = exp_f32(score - max);
//   double theta = d_pow(10000.0, -2.0 * i / rot);
//
// Not for: speed outside of kernels; std::fma is a function call where the baseline has no such instruction.
#pragma once

namespace ridge {

// e^x within 1 ulp, 0 below −87, so that no result is denormal, inf above 88.73, NaN for NaN.
float exp_f32(float x);
// tanh(x) within 2 ulp; ±1 for large |x|, the sign of zero kept, NaN for NaN.
float tanh_f32(float x);
// x / (1 + e^−x): within 4 ulp where the result is normal; −0 for very negative x.
float silu_f32(float x);
// x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), computed as x / (1 + e^−2u), which keeps its relative accuracy where
// 1 + tanh cancels.
float gelu_tanh_f32(float x);
// x · Φ(x) with the normal distribution's Φ: what the tanh form approximates. Within 8 ulp for x > −1; below, e^−x²/2
// magnifies the rounding of x² by x². NaN for NaN and for infinities.
float gelu_f32(float x);

// Double precision, within about 1 ulp (2e-16 relative; sin and cos: absolute).
double d_exp(double x);
double d_log(double x);            // x > 0, normal
double d_pow(double x, double y);  // x > 0, normal; |y · log x| < 700
double d_sin(double x);            // |x| ≤ 1e9
double d_cos(double x);

}  // namespace ridge
