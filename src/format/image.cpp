#include "format/image.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ridge {
namespace {

// What one pixel of a line is made of: pixels from `begin` on, with weights that sum to one.
struct Mix {
  uint32_t begin = 0;
  std::vector<double> weights;
};

// `count` pixels of a line of `all`, the middle of it, each `step` pixels from the next.
std::vector<Mix> mixes(uint32_t all, uint32_t count, double step) {
  double start = (all - count * step) / 2;
  if (step == 1) start = std::floor(start);
  const double reach = std::max(1.0, step);
  std::vector<Mix> out(count);
  for (uint32_t i = 0; i < count; ++i) {
    const double centre = start + (i + 0.5) * step;
    const auto first = static_cast<uint32_t>(std::max(0.0, std::floor(centre - reach)));
    const auto end =
        static_cast<uint32_t>(std::clamp(std::ceil(centre + reach), first + 1.0, static_cast<double>(all)));
    out[i].begin = first;
    double sum = 0;
    for (uint32_t k = first; k < end; ++k) {
      out[i].weights.push_back(std::max(0.0, 1 - std::fabs(k + 0.5 - centre) / reach));
      sum += out[i].weights.back();
    }
    for (double& w : out[i].weights) w /= sum;
  }
  return out;
}

}  // namespace

Image make_image(uint32_t width, uint32_t height, uint32_t channels) {
  RIDGE_CHECK(channels >= 1 && channels <= 4, "a picture has one to four channels");
  return {width, height, channels, std::vector<uint8_t>(uint64_t{width} * height * channels)};
}

Image cover(const Image& image, uint32_t width, uint32_t height) {
  RIDGE_CHECK(image.width > 0 && image.height > 0 && width > 0 && height > 0 && !image.has_alpha(), "pixels to scale");
  constexpr uint32_t kOnlyCut = 16;
  const bool only_cut = image.width >= width && image.width - width < kOnlyCut && image.height >= height &&
                        image.height - height < kOnlyCut;
  const double step =
      only_cut ? 1 : std::min(static_cast<double>(image.width) / width, static_cast<double>(image.height) / height);
  const std::vector<Mix> columns = mixes(image.width, width, step), lines = mixes(image.height, height, step);
  const uint32_t channels = image.channels;
  Image out = make_image(width, height, channels);
  std::vector<double> line(image.row_bytes());
  for (uint32_t y = 0; y < height; ++y) {
    std::fill(line.begin(), line.end(), 0.0);
    for (size_t k = 0; k < lines[y].weights.size(); ++k) {
      const uint8_t* from = image.at(0, lines[y].begin + static_cast<uint32_t>(k));
      for (size_t i = 0; i < line.size(); ++i) line[i] += lines[y].weights[k] * from[i];
    }
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < channels; ++c) {
        double sum = 0.5;
        for (size_t k = 0; k < columns[x].weights.size(); ++k) {
          sum += columns[x].weights[k] * line[(columns[x].begin + k) * channels + c];
        }
        out.at(x, y)[c] = static_cast<uint8_t>(std::min(sum, 255.0));
      }
    }
  }
  return out;
}

Image to_rgb(Image image) {
  if (image.channels == 3) return image;
  Image rgb = make_image(image.width, image.height, 3);
  const uint32_t colours = image.channels <= 2 ? 1 : 3;
  const uint64_t pixels = uint64_t{image.width} * image.height;
  for (uint64_t i = 0; i < pixels; ++i) {
    const uint8_t* from = image.pixels.data() + i * image.channels;
    const uint32_t alpha = image.has_alpha() ? from[colours] : 255;
    for (uint32_t c = 0; c < 3; ++c) {
      const uint32_t colour = from[colours == 1 ? 0 : c];
      rgb.pixels[i * 3 + c] = static_cast<uint8_t>((colour * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  }
  return rgb;
}

}  // namespace ridge
