#include "format/image.h"

#include "base/check.h"

namespace ridge {

Image make_image(uint32_t width, uint32_t height, uint32_t channels) {
  RIDGE_CHECK(channels >= 1 && channels <= 4, "a picture has one to four channels");
  return {width, height, channels, std::vector<uint8_t>(uint64_t{width} * height * channels)};
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
