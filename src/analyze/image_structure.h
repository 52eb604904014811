// How alike the structure of two grey pictures is: SSIM (Wang, Bovik, Sheikh and Simoncelli 2004), MS-SSIM (Wang,
// Simoncelli and Bovik 2003) and GMSD (Xue, Zhang, Mou and Bovik 2014), with the constants of these papers.
//
// Not for colour (ciede2000.h). The pictures of a pair have one size.
//
//   Plane a = luma_of(first), b = luma_of(second);
//   double s = ssim(a, b);             // 1: equal
#pragma once

#include <cstddef>
#include <vector>

#include "format/image.h"

namespace ridge {

struct Plane {
  size_t width = 0, height = 0;
  std::vector<double> values;  // [height, width]
  const double* row(size_t y) const { return values.data() + y * width; }
  double* row(size_t y) { return values.data() + y * width; }
};

// 0.299 R + 0.587 G + 0.114 B, 0 … 255, not rounded. `rgb` has three channels.
Plane luma_of(const Image& rgb);

inline constexpr size_t kSsimWindow = 11;

// Mean of the SSIM map over all windows that lie inside: Gaussian of 11 × 11, σ 1.5, K₁ 0.01, K₂ 0.03. In 0 … 1 for
// most pairs, below 0 for opposite ones. Both sides at least 11.
double ssim(const Plane& a, const Plane& b);

// Five scales, each half the one before (mean of 2 × 2, an odd row or column left out). A small picture has fewer, and
// their weights are scaled to sum to one: then figures compare with those of pictures of the same size alone.
struct MultiScale {
  double value = 0;
  int scales = 0;  // 5 from 176 pixels on the shorter side; at least 1
};
MultiScale ms_ssim(const Plane& a, const Plane& b);

// Standard deviation of the similarity of gradients (Prewitt, at half the size, T = 170): 0 for equal pictures. Both
// sides at least 3.
double gmsd(const Plane& a, const Plane& b);

// Energy of the Laplacian (four neighbours) over all inner pixels: what blur takes away and noise adds.
double laplacian_energy(const Plane& plane);

}  // namespace ridge
