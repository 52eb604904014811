// A picture in memory: 8 bits per channel, row after row from the top.
//
// Not for latents and other tensors.
//
//   Image picture = make_image(128, 64, 3);
//   picture.at(x, y)[0] = 255;             // red
#pragma once

#include <cstdint>
#include <vector>

namespace ridge {

struct Image {
  uint32_t width = 0, height = 0;
  uint32_t channels = 0;        // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<uint8_t> pixels;  // [height, width, channels]

  uint64_t row_bytes() const { return uint64_t{width} * channels; }
  uint8_t* at(uint32_t x, uint32_t y) { return pixels.data() + y * row_bytes() + uint64_t{x} * channels; }
  const uint8_t* at(uint32_t x, uint32_t y) const { return pixels.data() + y * row_bytes() + uint64_t{x} * channels; }
  bool has_alpha() const { return channels == 2 || channels == 4; }
};

// All zero.
Image make_image(uint32_t width, uint32_t height, uint32_t channels);

// Of a picture of 1 or 3 channels: made larger or smaller, in proportion, until it just covers width × height, and cut
// around the middle. Each pixel is the mean of those it covers by a triangle as wide as two of its own, or of the
// picture's where these are larger (bilinear, without aliasing). A picture that is less than 16 pixels wider and higher
// is only cut: its pixels stay as they are.
Image cover(const Image& image, uint32_t width, uint32_t height);

// Three channels: grey three times; what is transparent lies on white, rounded to nearest.
Image to_rgb(Image image);

}  // namespace ridge
