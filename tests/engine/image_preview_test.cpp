// The linear map from latents to colours: exact where the VAE is linear, and on a trained VAE near the picture that it
// decodes.
#include "engine/image_preview.h"

#include <algorithm>
#include <cmath>

#include "kernels/choose.h"
#include "tests/engine/image_cases.h"

namespace ridge {
namespace {

constexpr size_t kPixels = size_t{kPreviewProbe.height} * kPreviewProbe.width;

// A "VAE" that is linear: the map is found as it is.
TEST(LatentColours, FindALinearVae) {
  LatentColours want;
  for (size_t i = 0; i < want.factors.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) want.factors[i][c] = 0.02 * static_cast<double>((7 * i + 3 * c) % 11) - 0.1;
  }
  auto decode = [&](std::span<const float> latent, std::span<float> picture) -> Result<void> {
    const uint32_t across = kPreviewProbe.width * Vae::kScale;
    for (size_t at = 0; at < picture.size() / 3; ++at) {
      const size_t from = at / across / Vae::kScale * kPreviewProbe.width + at % across / Vae::kScale;
      for (size_t c = 0; c < 3; ++c) {
        double v = want.factors.back()[c];
        for (size_t k = 0; k < kPreviewChannels; ++k) {
          v += want.factors[k][c] * static_cast<double>(latent[k * kPixels + from]);
        }
        picture[c * picture.size() / 3 + at] = static_cast<float>(v);
      }
    }
    return {};
  };
  const auto got = fit_latent_colours(decode);
  ASSERT_TRUE(got.ok()) << got.error().message;
  for (size_t i = 0; i < want.factors.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(got.value().factors[i][c], want.factors[i][c], 1e-4) << i << ", " << c;
  }
  // One pixel of a latent is 8 × 8 of the preview; the first channel is 1 in the second pixel alone.
  std::vector<float> latent(kPreviewChannels * 2);
  latent[1] = 1;
  const Image image = preview_of(got.value(), latent, {1, 2});
  ASSERT_EQ(image.width, 16u);
  ASSERT_EQ(image.height, 8u);
  for (size_t c = 0; c < 3; ++c) {
    const double bias = want.factors.back()[c], factor = want.factors[0][c];
    EXPECT_NEAR(image.pixels[3 * 7 + c], bias * 127.5 + 128, 1.01);
    EXPECT_NEAR(image.pixels[3 * (7 * 16 + 8) + c], (bias + factor) * 127.5 + 128, 1.01);
  }
}

TEST(LatentColours, WhatIsNoNumberIsRefusedOrBlack) {
  auto broken = [](std::span<const float>, std::span<float> picture) -> Result<void> {
    std::fill(picture.begin(), picture.end(), NAN);
    return {};
  };
  const auto got = fit_latent_colours(broken);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ErrorCode::bad_input);
  const std::vector<float> latent(kPreviewChannels, NAN);
  EXPECT_EQ(preview_of({}, latent, {1, 1}).pixels, std::vector<uint8_t>(3 * 64, 0));
}

// Its VAE decodes the latents of the golden pictures: the previews are nearer to these, in colours of 8 × 8 pixels,
// than one grey for all of them would be, by far.
TEST(LatentColours, OfATrainedVaeComeNearItsPictures) {
  const std::string folder = test::mini_folder();
  const Safetensors golden = Safetensors::open(folder + "/golden.safetensors").value();
  Vae vae = Vae::open(folder + "/vae-mini.safetensors", VaeSide::decoder).value();
  const KernelChoice kernels = choose_kernels({}).value();
  ThreadPool pool({.threads = 2});
  ASSERT_TRUE(vae.load(kernels.kernels).ok());
  const auto colours = fit_latent_colours([&](std::span<const float> latent, std::span<float> picture) {
    return vae.decode(latent, kPreviewProbe, 1, {&kernels.kernels, &pool}, picture);
  });
  ASSERT_TRUE(colours.ok()) << colours.error().message;
  double error = 0, spread = 0;
  for (const char* name : {"0", "1", "2"}) {
    const std::vector<float> latent = test::floats(golden, std::string(name) + ".final");
    const std::vector<float> image = test::floats(golden, std::string(name) + ".image");
    const Image preview = preview_of(colours.value(), latent, {16, 16});
    double mean = 0;
    for (float v : image) mean += static_cast<double>(v) / static_cast<double>(image.size());
    for (size_t c = 0; c < 3; ++c) {
      for (size_t block = 0; block < 256; ++block) {
        double want = 0;
        const size_t top = block / 16 * 8, left = block % 16 * 8;
        for (size_t i = 0; i < 64; ++i) {
          want += static_cast<double>(image[c * 128 * 128 + (top + i / 8) * 128 + left + i % 8]) / 64;
        }
        const double got = (preview.pixels[3 * (top * 128 + left) + c] - 127.5) / 127.5;
        error += (got - want) * (got - want);
        spread += (want - mean) * (want - mean);
      }
    }
  }
  EXPECT_LT(error / spread, 0.25) << "of the variance of the colours";
}

}  // namespace
}  // namespace ridge
