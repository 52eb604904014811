// Every stage of the image model against an independent implementation (golden/README.md): relative L2 ≤ 1e-5.
#include <cstring>

#include "engine/image_draw.h"
#include "engine/image_schedule.h"
#include "tests/engine/image_cases.h"
#include "text/image_prompt.h"
#include "text/tokenizer_file.h"

namespace ridge {
namespace {

using test::flat;
using test::floats;
using test::integers;
using test::relative_l2;

constexpr double kStage = 1e-5;

class TinyAnima : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = test::tiny_folder() + "/golden.safetensors";
    RIDGE_SKIP_WITHOUT(path, "needs ../shared");
    golden_ = std::make_unique<Safetensors>(Safetensors::open(path).value());
    job_ = {.height = 16,
            .width = 24,
            .prompts = {test::prompt_ids(*golden_, "cond"), test::prompt_ids(*golden_, "uncond")},
            .segments = {{0, 0}, {1, 0}},
            .sigmas = {}};
  }
  std::unique_ptr<ImageModel> open(std::vector<float> sigmas) {
    job_.sigmas = std::move(sigmas);
    auto model = ImageModel::open(test::tiny_options(), job_);
    EXPECT_TRUE(model.ok()) << model.error().message;
    auto prepared = model.value()->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    return std::move(model).value();
  }

  std::unique_ptr<Safetensors> golden_;
  ImageJob job_;
};

TEST_F(TinyAnima, TextIsEncoded) {
  auto model = open({1.0f});
  EXPECT_LE(relative_l2(flat(model->states(0)), floats(*golden_, "cond.qwen_hidden")), kStage);
  EXPECT_LE(relative_l2(flat(model->states(1)), floats(*golden_, "uncond.qwen_hidden")), kStage);
}

TEST_F(TinyAnima, ContextIsThatOfTheAdapterAndZeros) {
  auto model = open({1.0f});
  for (size_t p = 0; p < 2; ++p) {
    const std::vector<float> want = floats(*golden_, p == 0 ? "cond.context" : "uncond.context");
    std::vector<float> got = flat(model->context(p));
    EXPECT_EQ(got.size() % model->shape().context_width, 0u);
    got.resize(want.size(), 0.0f);
    EXPECT_LE(relative_l2(got, want), kStage);
  }
}

TEST_F(TinyAnima, VelocitiesAtThreeSigmas) {
  auto model = open({1.0f, 0.6f, 0.05f});
  std::vector<float> latents = floats(*golden_, "latents"), v(2 * latents.size());
  const Matrix<float> velocities(v.data(), 2, latents.size());
  constexpr const char* kNames[] = {"1.0", "0.6", "0.05"};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(model->evaluate(i, Matrix<const float>(latents.data(), 1, latents.size()), velocities).ok());
    const std::vector<float> want = floats(*golden_, std::string("velocity.cond.") + kNames[i]);
    EXPECT_LE(relative_l2(velocities.row_span(0), want), kStage) << kNames[i];
    if (i != 1) continue;
    EXPECT_LE(relative_l2(velocities.row_span(1), floats(*golden_, "velocity.uncond.0.6")), kStage);
  }
}

TEST_F(TinyAnima, EveryStepOfEulersMethod) {
  const std::vector<float> sigmas = floats(*golden_, "sigmas");
  const std::vector<float> own = flow_sigmas(8, 3);
  ASSERT_EQ(own.size(), sigmas.size());
  for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], sigmas[i], 6e-8) << i;
  auto model = open({sigmas.begin(), sigmas.end() - 1});
  auto steps = test::sample(*model, floats(*golden_, "latents"), sigmas, 4);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_LE(relative_l2(steps[i], floats(*golden_, "step." + std::to_string(i))), kStage) << i;
  }
}

TEST(TinyVae, DecodesThePicture) {
  const std::string path = test::tiny_folder() + "/golden.safetensors";
  RIDGE_SKIP_WITHOUT(path, "needs ../shared");
  const Safetensors golden = Safetensors::open(path).value();
  auto vae = Vae::open(test::tiny_folder() + "/vae-tiny.safetensors", VaeSide::decoder);
  ASSERT_TRUE(vae.ok()) << vae.error().message;
  const KernelChoice kernels = choose_kernels({}).value();
  ThreadPool pool({.threads = 2});
  ASSERT_TRUE(vae.value().load(kernels.kernels).ok());
  const LatentSize size{16, 24};
  const std::vector<float> latent = floats(golden, "vae.latents");
  std::vector<float> picture(3 * 128 * 192), again(picture.size());
  ASSERT_TRUE(vae.value().decode(latent, size, 1, {&kernels.kernels, &pool}, picture).ok());
  EXPECT_LE(relative_l2(picture, floats(golden, "vae.image")), kStage);
  uint64_t before = vae.value().workspace_bytes(size, 1, 2);
  for (uint32_t bands : {2u, 3u, 7u, Vae::most_bands(size)}) {
    ASSERT_TRUE(vae.value().decode(latent, size, bands, {&kernels.kernels, &pool}, again).ok());
    EXPECT_EQ(std::memcmp(again.data(), picture.data(), picture.size() * sizeof(float)), 0) << bands << " bands";
    EXPECT_LE(vae.value().workspace_bytes(size, bands, 2), before) << bands << " bands";
    before = vae.value().workspace_bytes(size, bands, 2);
  }
  for (const char* name : {"scalar", "avx2", "neon"}) {
    auto isa = parse_isa(name);
    if (!isa.ok() || !choose_kernels({.isa = isa.value()}).ok()) continue;
    const KernelChoice other = choose_kernels({.isa = isa.value()}).value();
    ThreadPool three({.threads = 3});
    ASSERT_TRUE(vae.value().decode(latent, size, 2, {&other.kernels, &three}, again).ok());
    EXPECT_EQ(std::memcmp(again.data(), picture.data(), picture.size() * sizeof(float)), 0) << name;
  }
}

TEST(MiniAnima, FinalLatentsOfSixPrompts) {
  const Safetensors golden = Safetensors::open(test::mini_folder() + "/golden.safetensors").value();
  const std::vector<float> sigmas = flow_sigmas(20, 3);
  for (int n = 0; n < 6; ++n) {
    const std::string prefix = std::to_string(n);
    ImageJob job{.height = 16,
                 .width = 16,
                 .prompts = {test::prompt_ids(golden, prefix), {.qwen = {0}, .t5 = {1}}},
                 .segments = {{0, 0}, {1, 0}},
                 .sigmas = {sigmas.begin(), sigmas.end() - 1}};
    auto model = ImageModel::open({.model = test::mini_folder() + "/anima-mini.safetensors",
                                   .text_encoder = test::mini_folder() + "/qwen3-mini.safetensors",
                                   .vae = test::mini_folder() + "/vae-mini.safetensors",
                                   .threads = 2},
                                  job);
    ASSERT_TRUE(model.ok()) << model.error().message;
    ASSERT_TRUE(model.value()->prepare().ok());
    auto steps = test::sample(*model.value(), floats(golden, prefix + ".latents"), sigmas, 4);
    EXPECT_LE(relative_l2(steps.back(), floats(golden, prefix + ".final")), 1e-4) << n;
    std::vector<float> picture(model.value()->picture_floats());
    ASSERT_TRUE(model.value()->decode(steps.back(), picture).ok());
    const std::vector<float> want = floats(golden, prefix + ".image");
    size_t far = 0;  // of 8-bit values more than one apart
    for (size_t i = 0; i < want.size(); ++i) far += std::fabs(picture[i] - want[i]) > 2.0f / 255;
    EXPECT_LE(far, want.size() / 1000) << n;
  }
}

// The prompts of prompts.json, in its order.
constexpr const char* kMiniPrompts[] = {"red apple on a blue background", "cat on a yellow background",
                                        "rocket on a black background",   "slice of pizza on a green background",
                                        "panda on a purple background",   "lollipop on a red background"};

TEST(MiniAnima, SixPromptsFromTextToPicture) {
  const std::string folder = test::mini_folder();
  const Safetensors golden = Safetensors::open(folder + "/golden.safetensors").value();
  const auto qwen = open_tokenizer_file(folder + "/tokenizer.json").value();
  const auto t5 = open_tokenizer_file(folder + "/spiece.model").value();
  auto ids = [&](const char* prompt) {
    ImagePrompt p = encode_image_prompt(*qwen, *t5, prompt).value();
    return PromptIds{.qwen = p.qwen, .t5 = p.t5, .t5_weights = p.t5_weights};
  };
  EXPECT_EQ(ids("").qwen, std::vector<int32_t>{0});
  EXPECT_EQ(ids("").t5, std::vector<int32_t>{1});
  for (int n = 0; n < 6; ++n) {
    const std::string prefix = std::to_string(n);
    DrawRequest request{.prompt = ids(kMiniPrompts[n]), .negative = ids(""), .width = 128, .height = 128, .steps = 20};
    EXPECT_EQ(request.prompt.qwen, integers(golden, prefix + ".qwen_ids")) << n;
    EXPECT_EQ(request.prompt.t5, integers(golden, prefix + ".t5_ids")) << n;
    request.noise = floats(golden, prefix + ".latents");
    const ImageOptions options{.model = folder + "/anima-mini.safetensors",
                               .text_encoder = folder + "/qwen3-mini.safetensors",
                               .vae = folder + "/vae-mini.safetensors",
                               .threads = 2};
    auto drawn =
        draw_pictures(options, request, [](const SampleStep&, std::span<const float>) -> Result<void> { return {}; });
    ASSERT_TRUE(drawn.ok()) << drawn.error().message;
    EXPECT_LE(relative_l2(drawn.value().latents, floats(golden, prefix + ".final")), 1e-4) << n;
    const Image want = picture_of(floats(golden, prefix + ".image"), 128, 128).value();
    const Image& got = drawn.value().pictures.front();
    ASSERT_EQ(got.pixels.size(), want.pixels.size());
    size_t far = 0;
    for (size_t i = 0; i < want.pixels.size(); ++i) far += std::abs(got.pixels[i] - want.pixels[i]) > 1;
    EXPECT_LE(far, want.pixels.size() / 1000) << n;
  }
}

}  // namespace
}  // namespace ridge
