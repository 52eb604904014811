#include "analyze/image_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/ciede2000.h"
#include "analyze/image_structure.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void compare_channels(const Image& a, const Image& b, ImageQuality& q) {
  uint64_t squares = 0, close = 0;
  for (size_t i = 0; i < a.pixels.size(); i += 3) {
    uint32_t largest = 0;
    for (size_t c = i; c < i + 3; ++c) {
      const int difference = int{a.pixels[c]} - int{b.pixels[c]};
      squares += static_cast<uint64_t>(difference * difference);
      largest = std::max(largest, static_cast<uint32_t>(std::abs(difference)));
    }
    q.largest_difference = std::max(q.largest_difference, largest);
    close += largest <= 1;
  }
  const auto values = static_cast<double>(a.pixels.size());
  q.within_one = static_cast<double>(close) / (values / 3);
  q.psnr_db = squares == 0 ? kInfinity : 10 * std::log10(255.0 * 255.0 * values / static_cast<double>(squares));
}

void compare_colours(const Image& a, const Image& b, ImageQuality& q) {
  std::vector<float> differences;
  differences.reserve(a.pixels.size() / 3);
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); i += 3) {
    const uint8_t* x = a.pixels.data() + i;
    const uint8_t* y = b.pixels.data() + i;
    const bool equal = std::equal(x, x + 3, y);  // most pixels of close pictures: spares the roots
    const double d = equal ? 0 : ciede2000(lab_of_srgb(x[0], x[1], x[2]), lab_of_srgb(y[0], y[1], y[2]));
    sum += d;
    differences.push_back(static_cast<float>(d));
  }
  q.delta_e_mean = sum / static_cast<double>(differences.size());
  const auto rank = static_cast<size_t>(std::ceil(0.95 * static_cast<double>(differences.size()))) - 1;
  const auto place = differences.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(differences.begin(), place, differences.end());
  q.delta_e_p95 = *place;
}

struct Tone {
  double mean = 0, deviation = 0;
};
Tone tone_of(const Plane& luma) {
  double sum = 0, squares = 0;
  for (double v : luma.values) sum += v;
  const auto n = static_cast<double>(luma.values.size());
  const double mean = sum / n;
  for (double v : luma.values) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / n)};
}

double mean_saturation(const Image& rgb) {
  uint64_t sum = 0;
  for (size_t i = 0; i < rgb.pixels.size(); i += 3) {
    const auto [low, high] = std::minmax({rgb.pixels[i], rgb.pixels[i + 1], rgb.pixels[i + 2]});
    sum += static_cast<uint64_t>(high - low);
  }
  return static_cast<double>(sum) / (static_cast<double>(rgb.pixels.size()) / 3);
}

}  // namespace

Result<ImageQuality> compare_images(const Image& reference, const Image& picture) {
  if (reference.width != picture.width || reference.height != picture.height) {
    return bad_input(
        fmt::format("the pictures have {} × {} and {} × {} pixels, expected one size: these figures "
                    "compare pixel with pixel",
                    reference.width, reference.height, picture.width, picture.height));
  }
  if (std::min(reference.width, reference.height) < kSsimWindow) {
    return bad_input(fmt::format("the pictures have {} × {} pixels; a window of SSIM alone takes {} × {}",
                                 reference.width, reference.height, kSsimWindow, kSsimWindow));
  }
  ImageQuality q{.width = reference.width, .height = reference.height};
  const Image a = to_rgb(reference), b = to_rgb(picture);
  compare_channels(a, b, q);
  compare_colours(a, b, q);
  q.saturation_shift = (mean_saturation(b) - mean_saturation(a)) / 255;

  const Plane x = luma_of(a), y = luma_of(b);
  const Tone tone_x = tone_of(x), tone_y = tone_of(y);
  q.brightness_shift = (tone_y.mean - tone_x.mean) / 255;
  q.contrast_shift = (tone_y.deviation - tone_x.deviation) / 255;
  q.ssim = ssim(x, y);
  const MultiScale scales = ms_ssim(x, y);
  q.ms_ssim = scales.value;
  q.ms_ssim_scales = scales.scales;
  q.gmsd = gmsd(x, y);
  const double energy_x = laplacian_energy(x), energy_y = laplacian_energy(y);
  q.high_frequency_ratio = energy_x > 0 ? energy_y / energy_x : energy_y > 0 ? kInfinity : 1;
  return q;
}

}  // namespace ridge
