// Figures of picture quality against published values, other implementations and closed forms.
#include "analyze/image_quality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyze/ciede2000.h"
#include "analyze/image_structure.h"

namespace ridge {
namespace {

struct Pair {
  Lab a, b;
  double difference;
};

// Table 1 of Sharma, Wu and Dalal 2005, all 34 pairs: each has a reason to be there.
TEST(Ciede2000, PublishedPairs) {
  const Pair pairs[] = {
      {{50, 2.6772, -79.7751}, {50, 0, -82.7485}, 2.0425},
      {{50, 3.1571, -77.2803}, {50, 0, -82.7485}, 2.8615},
      {{50, 2.8361, -74.0200}, {50, 0, -82.7485}, 3.4412},
      {{50, -1.3802, -84.2814}, {50, 0, -82.7485}, 1.0000},
      {{50, -1.1848, -84.8006}, {50, 0, -82.7485}, 1.0000},
      {{50, -0.9009, -85.5211}, {50, 0, -82.7485}, 1.0000},
      {{50, 0, 0}, {50, -1, 2}, 2.3669},
      {{50, -1, 2}, {50, 0, 0}, 2.3669},
      {{50, 2.4900, -0.0010}, {50, -2.4900, 0.0009}, 7.1792},
      {{50, 2.4900, -0.0010}, {50, -2.4900, 0.0010}, 7.1792},
      {{50, 2.4900, -0.0010}, {50, -2.4900, 0.0011}, 7.2195},
      {{50, 2.4900, -0.0010}, {50, -2.4900, 0.0012}, 7.2195},
      {{50, -0.0010, 2.4900}, {50, 0.0009, -2.4900}, 4.8045},
      {{50, -0.0010, 2.4900}, {50, 0.0010, -2.4900}, 4.8045},
      {{50, -0.0010, 2.4900}, {50, 0.0011, -2.4900}, 4.7461},
      {{50, 2.5, 0}, {50, 0, -2.5}, 4.3065},
      {{50, 2.5, 0}, {73, 25, -18}, 27.1492},
      {{50, 2.5, 0}, {61, -5, 29}, 22.8977},
      {{50, 2.5, 0}, {56, -27, -3}, 31.9030},
      {{50, 2.5, 0}, {58, 24, 15}, 19.4535},
      {{50, 2.5, 0}, {50, 3.1736, 0.5854}, 1.0000},
      {{50, 2.5, 0}, {50, 3.2972, 0}, 1.0000},
      {{50, 2.5, 0}, {50, 1.8634, 0.5757}, 1.0000},
      {{50, 2.5, 0}, {50, 3.2592, 0.3350}, 1.0000},
      {{60.2574, -34.0099, 36.2677}, {60.4626, -34.1751, 39.4387}, 1.2644},
      {{63.0109, -31.0961, -5.8663}, {62.8187, -29.7946, -4.0864}, 1.2630},
      {{61.2901, 3.7196, -5.3901}, {61.4292, 2.2480, -4.9620}, 1.8731},
      {{35.0831, -44.1164, 3.7933}, {35.0232, -40.0716, 1.5901}, 1.8645},
      {{22.7233, 20.0904, -46.6940}, {23.0331, 14.9730, -42.5619}, 2.0373},
      {{36.4612, 47.8580, 18.3852}, {36.2715, 50.5065, 21.2231}, 1.4146},
      {{90.8027, -2.0831, 1.4410}, {91.1528, -1.6435, 0.0447}, 1.4441},
      {{90.9257, -0.5406, -0.9208}, {88.6381, -0.8985, -0.7239}, 1.5381},
      {{6.7747, -0.2908, -2.4247}, {5.8714, -0.0985, -2.2286}, 0.6377},
      {{2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}, 0.9082},
  };
  for (const Pair& p : pairs) {
    EXPECT_NEAR(ciede2000(p.a, p.b), p.difference, 5e-5) << p.a.l << " " << p.a.a << " " << p.a.b;
    EXPECT_NEAR(ciede2000(p.b, p.a), p.difference, 5e-5);
  }
}

TEST(Ciede2000, LabOfSrgb) {
  // Of scikit-image.
  const Lab red = lab_of_srgb(255, 0, 0), some = lab_of_srgb(12, 200, 77);
  EXPECT_NEAR(red.l, 53.2406, 2e-3);
  EXPECT_NEAR(red.a, 80.0923, 5e-3);
  EXPECT_NEAR(red.b, 67.2028, 5e-3);
  EXPECT_NEAR(some.l, 70.8157, 2e-3);
  EXPECT_NEAR(some.a, -66.5435, 1e-2);
  EXPECT_NEAR(some.b, 48.8732, 1e-2);
  for (int v = 0; v < 256; ++v) {
    const auto byte = static_cast<uint8_t>(v);
    EXPECT_NEAR(std::hypot(lab_of_srgb(byte, byte, byte).a, lab_of_srgb(byte, byte, byte).b), 0, 1e-4);
  }
  EXPECT_NEAR(lab_of_srgb(255, 255, 255).l, 100, 1e-5);
}

// The pictures that the figures below were computed of.
struct Pictures {
  Image a = make_image(64, 48, 3), b = make_image(64, 48, 3);
  Pictures() {
    for (uint32_t y = 0; y < 48; ++y) {
      for (uint32_t x = 0; x < 64; ++x) {
        a.at(x, y)[0] = static_cast<uint8_t>(x * 5);
        a.at(x, y)[1] = static_cast<uint8_t>(y * 7);
        a.at(x, y)[2] = static_cast<uint8_t>(x * y);
      }
    }
    for (uint64_t i = 0; i < a.pixels.size(); ++i) {
      const int noise = static_cast<int>((i * 2654435761u >> 7) % 9) - 4;
      b.pixels[i] = static_cast<uint8_t>(std::clamp(int{a.pixels[i]} + noise, 0, 255));
    }
  }
};

// By scikit-image (PSNR, SSIM, CIEDE2000) and NumPy (the others), from the papers' formulas.
TEST(ImageQuality, FiguresOfOtherImplementations) {
  const Pictures p;
  const Result<ImageQuality> compared = compare_images(p.a, p.b);
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  const ImageQuality& q = compared.value();
  EXPECT_NEAR(q.psnr_db, 39.97665775701, 1e-9);
  EXPECT_NEAR(q.ssim, 0.99433763961809, 1e-12);
  EXPECT_NEAR(q.ms_ssim, 0.99904687788799, 1e-12);
  EXPECT_EQ(q.ms_ssim_scales, 3);
  EXPECT_NEAR(q.gmsd, 0.000353060116314, 1e-13);
  EXPECT_NEAR(q.delta_e_mean, 1.18667, 1e-3);  // another white and matrix, by a few 1e-5
  EXPECT_NEAR(q.delta_e_p95, 2.67298, 2e-3);
  EXPECT_NEAR(q.brightness_shift, 7.513403799e-05, 1e-12);
  EXPECT_NEAR(q.contrast_shift, -5.742367109e-05, 1e-12);
  EXPECT_NEAR(q.saturation_shift, 0.00078763276, 1e-10);
  EXPECT_NEAR(q.high_frequency_ratio, 1.01816221298, 1e-10);
  EXPECT_EQ(q.largest_difference, 4u);
  EXPECT_NEAR(q.within_one, 0.001953125, 1e-12);
}

TEST(ImageQuality, EqualPictures) {
  const Pictures p;
  const ImageQuality q = compare_images(p.a, p.a).value();
  EXPECT_TRUE(std::isinf(q.psnr_db));
  EXPECT_NEAR(q.ssim, 1, 1e-12);
  EXPECT_NEAR(q.ms_ssim, 1, 1e-12);
  EXPECT_NEAR(q.gmsd, 0, 1e-12);
  EXPECT_EQ(q.delta_e_mean, 0);
  EXPECT_EQ(q.high_frequency_ratio, 1);
  EXPECT_EQ(q.within_one, 1);
  EXPECT_EQ(q.largest_difference, 0u);
}

Image flat(uint8_t r, uint8_t g, uint8_t b) {
  Image image = make_image(16, 16, 3);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = r;
    image.pixels[i + 1] = g;
    image.pixels[i + 2] = b;
  }
  return image;
}

// Flat pictures have closed forms.
TEST(ImageQuality, FlatPictures) {
  const ImageQuality q = compare_images(flat(100, 100, 100), flat(110, 110, 110)).value();
  EXPECT_NEAR(q.psnr_db, 20 * std::log10(255.0 / 10), 1e-12);
  const double c1 = 2.55 * 2.55;
  EXPECT_NEAR(q.ssim, (2 * 100 * 110 + c1) / (100 * 100 + 110 * 110 + c1), 1e-9);
  EXPECT_NEAR(q.brightness_shift, 10.0 / 255, 1e-12);
  EXPECT_NEAR(q.contrast_shift, 0, 1e-12);
  EXPECT_EQ(q.saturation_shift, 0);
  EXPECT_EQ(q.largest_difference, 10u);
  EXPECT_EQ(q.within_one, 0);
  EXPECT_NEAR(q.delta_e_mean, q.delta_e_p95, 1e-5);
  EXPECT_EQ(compare_images(flat(9, 9, 9), flat(9, 9, 29)).value().saturation_shift, 20.0 / 255);
  EXPECT_EQ(compare_images(flat(9, 9, 9), flat(10, 8, 9)).value().within_one, 1);
}

// One row in twenty differs: the 95th percentile by nearest rank is still that of the equal ones.
TEST(ImageQuality, Percentile) {
  Image a = make_image(20, 20, 3), b = a;
  for (uint32_t x = 0; x < 20; ++x) b.at(x, 3)[0] = 200;
  EXPECT_EQ(compare_images(a, b).value().delta_e_p95, 0);
  b.at(0, 4)[0] = 200;
  EXPECT_GT(compare_images(a, b).value().delta_e_p95, 20);
}

TEST(ImageQuality, BlurAndNoiseShowInTheHighFrequencies) {
  Image sharp = make_image(32, 32, 3), blurred = sharp, grey = flat(0, 0, 0);
  for (uint32_t y = 0; y < 32; ++y) {
    for (uint32_t x = 0; x < 32; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        sharp.at(x, y)[c] = (x + y) % 2 == 0 ? 255 : 0;
        blurred.at(x, y)[c] = (x + y) % 2 == 0 ? 191 : 64;
      }
    }
  }
  EXPECT_NEAR(compare_images(sharp, blurred).value().high_frequency_ratio, 127.0 * 127 / (255 * 255), 1e-9);
  Image noisy = grey;
  noisy.at(5, 5)[0] = 10;
  EXPECT_TRUE(std::isinf(compare_images(grey, noisy).value().high_frequency_ratio));
}

TEST(ImageQuality, ScalesGrowWithThePicture) {
  for (auto [side, scales] : {std::pair{11u, 1}, {21u, 1}, {22u, 2}, {128u, 4}, {176u, 5}, {300u, 5}}) {
    const Image image = make_image(side, side + 3, 3);
    EXPECT_EQ(compare_images(image, image).value().ms_ssim_scales, scales) << side;
  }
}

TEST(ImageQuality, OppositePicturesHaveNoMsSsim) {
  const Pictures p;
  Image negative = p.a;
  for (uint8_t& v : negative.pixels) v = static_cast<uint8_t>(255 - v);
  const ImageQuality q = compare_images(p.a, negative).value();
  EXPECT_LT(q.ssim, 0);
  EXPECT_EQ(q.ms_ssim, 0);
}

TEST(ImageQuality, RefusesWhatCannotBeCompared) {
  for (auto [width, height] : {std::pair{64u, 47u}, {48u, 64u}}) {
    const Result<ImageQuality> q = compare_images(Pictures().a, make_image(width, height, 3));
    ASSERT_FALSE(q.ok());
    EXPECT_EQ(q.error().code, ErrorCode::bad_input);
  }
  EXPECT_FALSE(compare_images(make_image(10, 50, 3), make_image(10, 50, 3)).ok());
  EXPECT_TRUE(compare_images(make_image(16, 16, 1), make_image(16, 16, 4)).ok());  // forms may differ
}

}  // namespace
}  // namespace ridge
