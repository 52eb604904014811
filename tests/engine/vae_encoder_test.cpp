// The VAE's encoder against an implementation of its own (make_encoder_fixture.py), and the same bytes for all ways.
#include <cstring>

#include "tests/engine/image_cases.h"

namespace ridge {
namespace {

constexpr LatentSize kEncoded{6, 10};

// As make_encoder_fixture.py makes it.
Image encoder_picture() {
  Image picture = make_image(8 * kEncoded.width, 8 * kEncoded.height, 3);
  for (uint32_t y = 0; y < picture.height; ++y) {
    for (uint32_t x = 0; x < picture.width; ++x) {
      const bool square = x >= 20 && x < 50 && y >= 10 && y < 30;
      uint8_t* p = picture.at(x, y);
      p[0] = static_cast<uint8_t>(square ? 250 : (3 * x + y) % 256);
      p[1] = static_cast<uint8_t>(square ? 30 : 255 - (5 * y + x) % 256);
      p[2] = (x / 4 + y / 4) % 2 == 0 ? 40 : 200;
    }
  }
  return picture;
}

std::vector<float> encoded(Vae& vae, const char* isa, int threads, uint32_t bands) {
  const KernelChoice kernels =
      choose_kernels({.isa = isa == nullptr ? std::nullopt : std::optional(parse_isa(isa).value())}).value();
  ThreadPool pool({.threads = threads});
  std::vector<float> latent(16 * kEncoded.height * kEncoded.width);
  auto done = vae.encode(encoder_picture(), kEncoded, bands, {&kernels.kernels, &pool}, latent);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return latent;
}

Vae mini_encoder() {
  auto vae = Vae::open(test::mini_folder() + "/vae-mini.safetensors", VaeSide::encoder);
  EXPECT_TRUE(vae.ok()) << vae.error().message;
  const KernelChoice kernels = choose_kernels({}).value();
  EXPECT_TRUE(vae.value().load(kernels.kernels).ok());
  return std::move(vae).value();
}

TEST(VaeEncoder, GivesTheLatentOfAnIndependentImplementation) {
  Vae vae = mini_encoder();
  const std::vector<float> got = encoded(vae, nullptr, 2, 1);
  std::vector<float> want(got.size());
  FILE* file = std::fopen(RIDGE_TEST_DATA "/vae_encoder.f32", "rb");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(std::fread(want.data(), sizeof(float), want.size(), file), want.size());
  std::fclose(file);
  EXPECT_LE(test::relative_l2(got, want), 1e-5);
}

TEST(VaeEncoder, GivesTheSameBytesInAnyBandsThreadsAndInstructions) {
  Vae vae = mini_encoder();
  const std::vector<float> want = encoded(vae, nullptr, 2, 1);
  auto expect_same = [&](const std::vector<float>& got, const std::string& what) {
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << what;
  };
  ASSERT_EQ(Vae::most_bands(kEncoded), 3u);
  for (uint32_t bands : {2u, 3u, 6u}) expect_same(encoded(vae, nullptr, 2, bands), std::to_string(bands) + " bands");
  expect_same(encoded(vae, nullptr, 1, 2), "one thread");
  expect_same(encoded(vae, "scalar", 2, 1), "scalar");
  // Halos of a picture as small as this are most of it; a larger one shows what bands save.
  const LatentSize large{64, 64};
  EXPECT_LT(vae.workspace_bytes(large, Vae::most_bands(large), 2), vae.workspace_bytes(large, 1, 2) / 2);
}

TEST(VaeEncoder, StopsBetweenLayers) {
  Vae vae = mini_encoder();
  const KernelChoice kernels = choose_kernels({}).value();
  ThreadPool pool({.threads = 1});
  const std::atomic<bool> interrupted{true};
  std::vector<float> latent(16 * kEncoded.height * kEncoded.width);
  auto done = vae.encode(encoder_picture(), kEncoded, 1, {&kernels.kernels, &pool, &interrupted}, latent);
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("Ctrl-C"), std::string::npos);
}

}  // namespace
}  // namespace ridge
