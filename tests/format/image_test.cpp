// Pictures brought to another size: what stays, what is cut, and means.
#include "format/image.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

Image ramp_picture(uint32_t width, uint32_t height) {
  Image picture = make_image(width, height, 3);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      picture.at(x, y)[0] = static_cast<uint8_t>(2 * x);
      picture.at(x, y)[1] = static_cast<uint8_t>(3 * y);
      picture.at(x, y)[2] = 77;
    }
  }
  return picture;
}

TEST(Cover, KeepsPixelsThatFit) {
  const Image picture = ramp_picture(40, 30);
  EXPECT_EQ(cover(picture, 40, 30).pixels, picture.pixels);
}

TEST(Cover, OnlyCutsWhatIsALittleLarger) {
  const Image picture = ramp_picture(45, 30);
  const Image cut = cover(picture, 32, 16);
  for (uint32_t y = 0; y < 16; ++y) {
    for (uint32_t x = 0; x < 32; ++x) {
      for (uint32_t c = 0; c < 3; ++c) EXPECT_EQ(cut.at(x, y)[c], picture.at(x + 6, y + 7)[c]) << x << ' ' << y;
    }
  }
}

TEST(Cover, ShrinksByMeansAndCutsTheMiddle) {
  const Image small = cover(ramp_picture(80, 40), 16, 16);  // 2.5 to 1; the middle 40 of 80 columns
  for (uint32_t y = 2; y < 14; ++y) {
    for (uint32_t x = 0; x < 16; ++x) {
      EXPECT_NEAR(small.at(x, y)[0], 2 * (20 + 2.5 * (x + 0.5) - 0.5), 0.6) << x;
      EXPECT_NEAR(small.at(x, y)[1], 3 * (2.5 * (y + 0.5) - 0.5), 0.6) << y;
      EXPECT_EQ(small.at(x, y)[2], 77);
    }
  }
}

TEST(Cover, EnlargesInStraightLines) {
  Image two = make_image(2, 2, 1);
  two.pixels = {0, 200, 0, 200};
  EXPECT_EQ(cover(two, 8, 2).pixels,
            (std::vector<uint8_t>{0, 0, 25, 75, 125, 175, 200, 200, 0, 0, 25, 75, 125, 175, 200, 200}));
  Image one = make_image(1, 1, 3);
  one.pixels = {9, 8, 7};
  for (uint32_t i = 0; i < 48 * 32; ++i) EXPECT_EQ(cover(one, 48, 32).pixels[3 * i + 1], 8) << i;
}

}  // namespace
}  // namespace ridge
