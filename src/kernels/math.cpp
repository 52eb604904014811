#include "kernels/math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ridge {
namespace {

// ---- float ----------------------------------------------------------------------------------------------------------

// 1.5 · 2^23: adding it rounds a small float to the nearest integer, ties to even, in any ISA.
constexpr float kRound = 12582912.0f;

float power_of_two(int exponent) { return std::bit_cast<float>((exponent + 127) << 23); }

// ---- double ---------------------------------------------------------------------------------------------------------

constexpr double kRoundDouble = 6755399441055744.0;  // 1.5 · 2^52
constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;

// An unevaluated sum whose low part is below half a unit of the high one.
struct DoubleDouble {
  double high, low;
};

DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

double power_of_two_double(int64_t exponent) { return std::bit_cast<double>((exponent + 1023) << 52); }

// e^(x + low) by reduction to |r| ≤ ln 2 / 2 and the Taylor series to r^13 (the next term is below 5e-18).
double exp_sum_of(double x, double low) {
  if (x != x) return x;
  if (x > 710) return HUGE_VAL;
  if (x < -746) return 0;
  const double n = (x * 0x1.71547652b82fep+0 + kRoundDouble) - kRoundDouble;
  const double r = std::fma(n, -kLn2High, x) + std::fma(n, -kLn2Low, low);
  double p = 1.0 / 6227020800.0;
  double factorial = 6227020800.0;  // 13!
  for (int k = 13; k > 0; --k) {
    factorial /= k;
    p = std::fma(p, r, 1.0 / factorial);
  }
  const int64_t exponent = static_cast<int64_t>(n), half = exponent / 2;
  return p * power_of_two_double(half) * power_of_two_double(exponent - half);
}

// log x = k ln 2 + 2 atanh((m − 1) / (m + 1)) with m in [√½, √2); the quotient is carried with its remainder.
DoubleDouble log_of(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>((bits >> 52) & 2047) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++exponent;
  }
  const double above = m - 1, below = m + 1, below_low = m - (below - 1);
  const double s = above / below;
  const double s_low = (std::fma(-s, below, above) - s * below_low) / below;
  const double z = s * s;
  double p = 0;
  for (int k = 25; k >= 3; k -= 2) p = std::fma(p, z, 2.0 / k);
  const double k = static_cast<double>(exponent);
  const double product = k * kLn2High;
  const DoubleDouble sum = two_sum(product, 2 * s);
  const double low = sum.low + (std::fma(k, kLn2High, -product) + k * kLn2Low) + (2 * s_low + s * z * p);
  return two_sum(sum.high, low);
}

struct Reduced {
  double high, low;  // x − quadrant · π/2, |high| ≤ π/4
  int64_t quadrant;
};

Reduced reduce_angle(double x) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  const double n = (x * 0x1.45f306dc9c883p-1 + kRoundDouble) - kRoundDouble;
  const double t = std::fma(-n, kHalfPi, x);  // exact: a multiple of 2^-53 below 1
  const double high = std::fma(-n, kHalfPiLow, t);
  return {high, std::fma(-n, kHalfPiLow, t - high), static_cast<int64_t>(n)};
}

// 1/first!, 1/(first+2)!, …: factorials up to 18! are exact.
template <int first, int terms>
constexpr std::array<double, terms> reciprocal_factorials() {
  static_assert(first + 2 * (terms - 1) <= 18);
  std::array<double, terms> out{};
  double factorial = 1;
  for (int k = 2; k <= first + 2 * (terms - 1); ++k) {
    factorial *= k;
    if (k >= first && (k - first) % 2 == 0) out[static_cast<size_t>(k - first) / 2] = 1.0 / factorial;
  }
  return out;
}

// sum of (−z)^i / (first + 2i)! over `terms` terms.
template <int first, int terms>
double alternating_series(double z) {
  constexpr std::array<double, terms> kFactors = reciprocal_factorials<first, terms>();
  double p = 0;
  for (size_t i = terms; i > 0; --i) p = std::fma(p, -z, kFactors[i - 1]);
  return p;
}

double sin_reduced(const Reduced& a) {
  const double r = a.high, z = r * r;
  // r − r³ (1/3! − …) with the first-order effect of the low part; terms to r^17.
  const double cubic = -(r * z) * alternating_series<3, 8>(z);
  return r + (cubic + a.low * std::fma(-0.5, z, 1.0));
}

double cos_reduced(const Reduced& a) {
  const double r = a.high, z = r * r;
  const double half = 0.5 * z, w = 1 - half;
  const double rest = z * z * alternating_series<4, 8>(z) - r * a.low;  // terms to r^18
  return w + (((1 - w) - half) + rest);
}

}  // namespace

float exp_f32(float x) {
  if (x != x) return x + x;
  x = x < -87.0f ? -104.0f : x;  // e^-104 is 0: no denormal results
  x = x > 89.0f ? 89.0f : x;
  const float n = std::fma(x, 0x1.715476p+0f, kRound) - kRound;  // x / ln 2
  float r = std::fma(n, -0x1.62e43p-1f, x);
  r = std::fma(n, 0x1.05c61p-29f, r);
  float p = 0x1.6a23d0p-10f;  // minimax of (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2; error 3.1e-9
  p = std::fma(p, r, 0x1.123a20p-7f);
  p = std::fma(p, r, 0x1.5558f2p-5f);
  p = std::fma(p, r, 0x1.555492p-3f);
  p = std::fma(p, r, 0x1.fffffcp-2f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const int exponent = static_cast<int>(n), half = exponent >> 1;  // two steps: the first is exact, the second rounds
  return p * power_of_two(half) * power_of_two(exponent - half);
}

float tanh_f32(float x) {
  const float a = std::fabs(x);
  float y;
  if (a < 0.625f) {  // minimax of (tanh(a)/a − 1) / a² in a²; error 4.4e-9
    const float t = a * a;
    float p = -0x1.75e1ccp-8f;
    p = std::fma(p, t, 0x1.52269cp-6f);
    p = std::fma(p, t, -0x1.b83c5ap-5f);
    p = std::fma(p, t, 0x1.110726p-3f);
    p = std::fma(p, t, -0x1.555532p-2f);
    y = std::fma(a * t, p, a);
  } else {
    y = 1.0f - 2.0f / (exp_f32(a + a) + 1.0f);
  }
  return std::copysign(y, x);
}

float silu_f32(float x) { return x / (1.0f + exp_f32(-x)); }

float gelu_tanh_f32(float x) {
  // −2u = x · (c1 + c3 x²), c1 = −2 √(2/π), c3 = 0.044715 c1
  const float w = std::fma(x * x, -0x1.2444f2p-4f, -0x1.988454p+0f);
  return x / (1.0f + exp_f32(x * w));
}

float gelu_f32(float x) {
  // Φ(−|x|) = erfc(z) / 2, z = |x| / √2. With t = 1 / (1 + z / 2): erfc(z) = t · e^(p(t) − z²), where p is a minimax
  // fit of degree 9 over z < 9.8 (error of erfc 2.4e-7, relative); beyond, the result is 0.
  const float z = std::fabs(x) * 0x1.6a09e6p-1f;
  const float t = 1.0f / std::fma(z, 0.5f, 1.0f);
  float p = 0x1.1f6b46p-3f;
  p = std::fma(p, t, -0x1.4fcef8p-1f);
  p = std::fma(p, t, 0x1.192230p+0f);
  p = std::fma(p, t, -0x1.3cbe6ap-1f);
  p = std::fma(p, t, -0x1.271acap-3f);
  p = std::fma(p, t, 0x1.1de826p-5f);
  p = std::fma(p, t, 0x1.7d747ap-6f);
  p = std::fma(p, t, 0x1.8e505cp-2f);
  p = std::fma(p, t, 0x1.ff29acp-1f);
  p = std::fma(p, t, -0x1.43f38cp+0f);
  const float tail = x * 0.5f * (t * exp_f32(std::fma(-z, z, p)));
  return x < 0 ? tail : x - tail;
}

double d_exp(double x) { return exp_sum_of(x, 0); }

double d_log(double x) {
  const DoubleDouble l = log_of(x);
  return l.high;
}

double d_pow(double x, double y) {
  const DoubleDouble l = log_of(x);
  const double product = y * l.high;
  return exp_sum_of(product, std::fma(y, l.high, -product) + y * l.low);
}

double d_sin(double x) {
  const Reduced a = reduce_angle(x);
  const double value = (a.quadrant & 1) != 0 ? cos_reduced(a) : sin_reduced(a);
  return (a.quadrant & 2) != 0 ? -value : value;
}

double d_cos(double x) {
  const Reduced a = reduce_angle(x);
  const double value = (a.quadrant & 1) != 0 ? sin_reduced(a) : cos_reduced(a);
  return ((a.quadrant + 1) & 2) != 0 ? -value : value;
}

}  // namespace ridge
