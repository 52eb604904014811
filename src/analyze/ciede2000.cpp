#include "analyze/ciede2000.h"

#include <array>
#include <cmath>
#include <numbers>

namespace ridge {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

double linear_of_srgb(uint8_t value) {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> linear{};
    for (size_t i = 0; i < linear.size(); ++i) {
      const double v = static_cast<double>(i) / 255;
      linear[i] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    }
    return linear;
  }();
  return table[value];
}

double lab_curve(double t) {
  constexpr double kDelta = 6.0 / 29;
  return t > kDelta * kDelta * kDelta ? std::cbrt(t) : t / (3 * kDelta * kDelta) + 4.0 / 29;
}

// In degrees, 0 … 360; 0 for grey.
double hue(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double angle = std::atan2(b, a) / kDegree;
  return angle < 0 ? angle + 360 : angle;
}

double cos_degrees(double angle) { return std::cos(angle * kDegree); }

// Equations 10 and 14 of the paper: the difference and the mean of two hues on the circle.
struct Hues {
  double difference, mean;
};
Hues compare_hues(double x, double y, bool one_is_grey) {
  if (one_is_grey) return {0, x + y};
  const double d = y - x, sum = x + y;
  if (std::fabs(d) <= 180) return {d, sum / 2};
  return {d > 180 ? d - 360 : d + 360, sum < 360 ? (sum + 360) / 2 : (sum - 360) / 2};
}

double square(double x) { return x * x; }

// √(C⁷ / (C⁷ + 25⁷))
double chroma_weight(double chroma) {
  const double c7 = std::pow(chroma, 7);
  return std::sqrt(c7 / (c7 + 6103515625.0));
}

}  // namespace

Lab lab_of_srgb(uint8_t red, uint8_t green, uint8_t blue) {
  const double r = linear_of_srgb(red), g = linear_of_srgb(green), b = linear_of_srgb(blue);
  // The white is the sum of each row, so that grey has no colour at all.
  const double x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047;
  const double y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b;
  const double z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883;
  const double fx = lab_curve(x), fy = lab_curve(y), fz = lab_curve(z);
  return {116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)};
}

double ciede2000(const Lab& x, const Lab& y) {
  const double mean_chroma = (std::hypot(x.a, x.b) + std::hypot(y.a, y.b)) / 2;
  const double stretch = 1 + 0.5 * (1 - chroma_weight(mean_chroma));
  const double ax = stretch * x.a, ay = stretch * y.a;
  const double cx = std::hypot(ax, x.b), cy = std::hypot(ay, y.b);
  const Hues hues = compare_hues(hue(ax, x.b), hue(ay, y.b), cx * cy == 0);

  const double dl = y.l - x.l, dc = cy - cx;
  const double dh = 2 * std::sqrt(cx * cy) * std::sin(hues.difference / 2 * kDegree);

  const double l = (x.l + y.l) / 2, c = (cx + cy) / 2, h = hues.mean;
  const double t = 1 - 0.17 * cos_degrees(h - 30) + 0.24 * cos_degrees(2 * h) + 0.32 * cos_degrees(3 * h + 6) -
                   0.20 * cos_degrees(4 * h - 63);
  const double rotation = 30 * std::exp(-square((h - 275) / 25));
  const double sl = 1 + 0.015 * square(l - 50) / std::sqrt(20 + square(l - 50));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double rt = -std::sin(2 * rotation * kDegree) * 2 * chroma_weight(c);
  return std::sqrt(square(dl / sl) + square(dc / sc) + square(dh / sh) + rt * (dc / sc) * (dh / sh));
}

}  // namespace ridge
