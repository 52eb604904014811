#include "analyze/image_structure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace ridge {
namespace {

constexpr double kC1 = (0.01 * 255) * (0.01 * 255), kC2 = (0.03 * 255) * (0.03 * 255);
constexpr std::array<double, 5> kScaleWeights = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
constexpr double kGradientConstant = 170;

const std::array<double, kSsimWindow>& gaussian() {
  static const std::array<double, kSsimWindow> weights = [] {
    std::array<double, kSsimWindow> w{};
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double x = static_cast<double>(i) - static_cast<double>(kSsimWindow / 2);
      sum += w[i] = std::exp(-x * x / (2 * 1.5 * 1.5));
    }
    for (double& weight : w) weight /= sum;
    return w;
  }();
  return weights;
}

// Weighted sums under the window of x, y, x², y² and xy.
struct Moments {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  void add(double weight, const Moments& m) {
    x += weight * m.x;
    y += weight * m.y;
    xx += weight * m.xx;
    yy += weight * m.yy;
    xy += weight * m.xy;
  }
};

struct Means {
  double ssim = 0, contrast_structure = 0;
};

// One row of windows at a time: a pass down, then one across.
Means ssim_means(const Plane& a, const Plane& b) {
  const auto& weights = gaussian();
  std::vector<Moments> column(a.width);
  Means sum;
  for (size_t y = 0; y + kSsimWindow <= a.height; ++y) {
    std::fill(column.begin(), column.end(), Moments());
    for (size_t k = 0; k < kSsimWindow; ++k) {
      const double* ra = a.row(y + k);
      const double* rb = b.row(y + k);
      for (size_t x = 0; x < a.width; ++x) {
        column[x].add(weights[k], {ra[x], rb[x], ra[x] * ra[x], rb[x] * rb[x], ra[x] * rb[x]});
      }
    }
    for (size_t x = 0; x + kSsimWindow <= a.width; ++x) {
      Moments m;
      for (size_t k = 0; k < kSsimWindow; ++k) m.add(weights[k], column[x + k]);
      const double variance_x = m.xx - m.x * m.x, variance_y = m.yy - m.y * m.y, covariance = m.xy - m.x * m.y;
      const double cs = (2 * covariance + kC2) / (variance_x + variance_y + kC2);
      sum.contrast_structure += cs;
      sum.ssim += cs * (2 * m.x * m.y + kC1) / (m.x * m.x + m.y * m.y + kC1);
    }
  }
  const auto windows = static_cast<double>((a.width - kSsimWindow + 1) * (a.height - kSsimWindow + 1));
  return {sum.ssim / windows, sum.contrast_structure / windows};
}

void check_pair(const Plane& a, const Plane& b, size_t least) {
  RIDGE_CHECK(a.width == b.width && a.height == b.height, "the pictures of a pair have one size");
  RIDGE_CHECK(std::min(a.width, a.height) >= least, "the picture holds at least one window");
}

Plane halved(const Plane& plane) {
  Plane half{plane.width / 2, plane.height / 2, {}};
  half.values.resize(half.width * half.height);
  for (size_t y = 0; y < half.height; ++y) {
    const double* upper = plane.row(2 * y);
    const double* lower = plane.row(2 * y + 1);
    for (size_t x = 0; x < half.width; ++x) {
      half.row(y)[x] = (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]) / 4;
    }
  }
  return half;
}

// As GMSD's reference does it: every second pixel of the mean of 2 × 2, where what lies outside counts as 0.
Plane halved_with_zeros(const Plane& plane) {
  auto at = [&](size_t x, size_t y) { return x < plane.width && y < plane.height ? plane.row(y)[x] : 0.0; };
  Plane half{(plane.width + 1) / 2, (plane.height + 1) / 2, {}};
  half.values.resize(half.width * half.height);
  for (size_t y = 0; y < half.height; ++y) {
    for (size_t x = 0; x < half.width; ++x) {
      half.row(y)[x] = (at(2 * x, 2 * y) + at(2 * x + 1, 2 * y) + at(2 * x, 2 * y + 1) + at(2 * x + 1, 2 * y + 1)) / 4;
    }
  }
  return half;
}

// Length of the gradient by Prewitt's operator / 3, 0 outside of the plane.
double gradient_at(const Plane& plane, size_t x, size_t y) {
  auto at = [&](size_t dx, size_t dy) {  // 0, 1, 2: before, here, after
    const size_t px = x + dx, py = y + dy;
    return px == 0 || py == 0 || px > plane.width || py > plane.height ? 0.0 : plane.row(py - 1)[px - 1];
  };
  double across = 0, down = 0;
  for (size_t k = 0; k < 3; ++k) {
    across += at(2, k) - at(0, k);
    down += at(k, 2) - at(k, 0);
  }
  return std::hypot(across / 3, down / 3);
}

}  // namespace

Plane luma_of(const Image& rgb) {
  RIDGE_CHECK(rgb.channels == 3, "three channels: to_rgb() first");
  Plane luma{rgb.width, rgb.height, {}};
  luma.values.reserve(luma.width * luma.height);
  for (size_t i = 0; i < rgb.pixels.size(); i += 3) {
    luma.values.push_back(0.299 * rgb.pixels[i] + 0.587 * rgb.pixels[i + 1] + 0.114 * rgb.pixels[i + 2]);
  }
  return luma;
}

double ssim(const Plane& a, const Plane& b) {
  check_pair(a, b, kSsimWindow);
  return ssim_means(a, b).ssim;
}

MultiScale ms_ssim(const Plane& a, const Plane& b) {
  check_pair(a, b, kSsimWindow);
  MultiScale result;
  const size_t side = std::min(a.width, a.height);
  while (result.scales < 5 && (side >> result.scales) >= kSsimWindow) ++result.scales;
  double weight_sum = 0;
  for (int i = 0; i < result.scales; ++i) weight_sum += kScaleWeights[static_cast<size_t>(i)];

  result.value = 1;
  Plane x = a, y = b;
  for (int i = 0; i < result.scales; ++i) {
    const Means means = ssim_means(x, y);
    // Luminance counts at the coarsest scale alone. A negative mean has no root: as 0 it makes the whole 0.
    const double factor = i + 1 == result.scales ? means.ssim : means.contrast_structure;
    result.value *= std::pow(std::max(factor, 0.0), kScaleWeights[static_cast<size_t>(i)] / weight_sum);
    if (i + 1 == result.scales) break;
    x = halved(x);
    y = halved(y);
  }
  return result;
}

double gmsd(const Plane& a, const Plane& b) {
  check_pair(a, b, 3);
  const Plane x = halved_with_zeros(a), y = halved_with_zeros(b);
  std::vector<double> similarity;
  similarity.reserve(x.values.size());
  double mean = 0;
  for (size_t row = 0; row < x.height; ++row) {
    for (size_t col = 0; col < x.width; ++col) {
      const double gx = gradient_at(x, col, row), gy = gradient_at(y, col, row);
      similarity.push_back((2 * gx * gy + kGradientConstant) / (gx * gx + gy * gy + kGradientConstant));
      mean += similarity.back();
    }
  }
  mean /= static_cast<double>(similarity.size());
  double squares = 0;
  for (double s : similarity) squares += (s - mean) * (s - mean);
  return std::sqrt(squares / static_cast<double>(similarity.size() - 1));
}

double laplacian_energy(const Plane& plane) {
  double energy = 0;
  for (size_t y = 1; y + 1 < plane.height; ++y) {
    const double* up = plane.row(y - 1);
    const double* here = plane.row(y);
    const double* down = plane.row(y + 1);
    for (size_t x = 1; x + 1 < plane.width; ++x) {
      const double l = up[x] + down[x] + here[x - 1] + here[x + 1] - 4 * here[x];
      energy += l * l;
    }
  }
  return energy;
}

}  // namespace ridge
