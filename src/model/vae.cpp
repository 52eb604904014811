#include "model/vae.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "model/vae_run.h"

namespace ridge {
namespace {

constexpr uint32_t kLatentChannels = 16, kMostSteps = 64;
// Lines of a picture that a band should have at least: below, most of its work is done for its neighbours as well.
constexpr uint32_t kFewestLines = 16;

Result<std::vector<float>> read_norm(const Safetensors& file, const std::string& name, uint32_t channels) {
  const SafeTensor* t = file.find(name + ".gamma");
  if (t == nullptr || t->elements() != channels) {
    return bad_input(fmt::format("{}: tensor '{}.gamma' of {} values is missing", file.where(), name, channels));
  }
  return read_floats(file, *t, channels);
}

Result<void> check_norm(const Safetensors& file, const std::string& name, uint32_t channels) {
  const SafeTensor* t = file.find(name + ".gamma");
  if (t != nullptr && t->elements() == channels) return {};
  return bad_input(fmt::format("{}: tensor '{}.gamma' of {} values is missing: this is no VAE of Wan's", file.where(),
                               name, channels));
}

Result<void> expect_channels(const Safetensors& file, const Conv& conv, uint32_t outputs) {
  if (conv.outputs == outputs) return {};
  return bad_input(
      fmt::format("{}: '{}' gives {} channels, expected {}", file.where(), conv.name, conv.outputs, outputs));
}

}  // namespace

Result<Vae::Residual> Vae::describe_residual(const Safetensors& file, const std::string& name, uint32_t inputs) {
  Residual r{.name = name,
             .conv_1 = RIDGE_TRY(Conv::describe(file, name + ".residual.2", inputs, ConvKind::square)),
             .conv_2 = {},
             .shortcut = {}};
  const uint32_t outputs = r.conv_1.outputs;
  r.conv_2 = RIDGE_TRY(Conv::describe(file, name + ".residual.6", outputs, ConvKind::square));
  RIDGE_TRY(expect_channels(file, r.conv_2, outputs));
  RIDGE_TRY(check_norm(file, name + ".residual.0", inputs));
  RIDGE_TRY(check_norm(file, name + ".residual.3", outputs));
  if (inputs == outputs) return r;
  r.shortcut = RIDGE_TRY(Conv::describe(file, name + ".shortcut", inputs, ConvKind::point));
  RIDGE_TRY(expect_channels(file, *r.shortcut, outputs));
  return r;
}

Result<Vae::Decoder> Vae::describe(const Safetensors& file) {
  Decoder d{.after_quant = RIDGE_TRY(Conv::describe(file, "conv2", kLatentChannels, ConvKind::point)),
            .first = RIDGE_TRY(Conv::describe(file, "decoder.conv1", kLatentChannels, ConvKind::square)),
            .to_qkv = {},
            .projection = {},
            .last = {},
            .middle_1 = {},
            .middle_2 = {},
            .steps = {}};
  RIDGE_TRY(expect_channels(file, d.after_quant, kLatentChannels));
  const uint32_t middle = d.first.outputs;
  d.middle_1 = RIDGE_TRY(describe_residual(file, "decoder.middle.0", middle));
  d.to_qkv = RIDGE_TRY(Conv::describe(file, "decoder.middle.1.to_qkv", middle, ConvKind::point));
  d.projection = RIDGE_TRY(Conv::describe(file, "decoder.middle.1.proj", middle, ConvKind::point));
  d.middle_2 = RIDGE_TRY(describe_residual(file, "decoder.middle.2", middle));
  RIDGE_TRY(check_norm(file, "decoder.middle.1.norm", middle));
  RIDGE_TRY(expect_channels(file, d.to_qkv, 3 * middle));
  RIDGE_TRY(expect_channels(file, d.projection, middle));
  RIDGE_TRY(expect_channels(file, {.name = d.middle_1.name, .outputs = d.middle_1.outputs()}, middle));
  RIDGE_TRY(expect_channels(file, {.name = d.middle_2.name, .outputs = d.middle_2.outputs()}, middle));
  uint32_t channels = middle, scale = 1;
  for (uint32_t i = 0; i < kMostSteps; ++i) {
    const std::string name = fmt::format("decoder.upsamples.{}", i);
    Step step;
    if (file.find(name + ".resample.1.weight") != nullptr) {
      step.doubling = RIDGE_TRY(Conv::describe(file, name + ".resample.1", channels, ConvKind::square));
      scale *= 2;
    } else if (file.find(name + ".residual.2.weight") != nullptr) {
      step.residual = RIDGE_TRY(describe_residual(file, name, channels));
    } else {
      break;
    }
    channels = step.outputs();
    d.steps.push_back(std::move(step));
  }
  if (scale != kScale) {
    return bad_input(fmt::format("{}: its decoder enlarges {} times, expected {}: this is no VAE of Wan's",
                                 file.where(), scale, kScale));
  }
  RIDGE_TRY(check_norm(file, "decoder.head.0", channels));
  d.last = RIDGE_TRY(Conv::describe(file, "decoder.head.2", channels, ConvKind::square));
  RIDGE_TRY(expect_channels(file, d.last, 3));
  return d;
}

Result<Vae> Vae::open(const std::string& path) {
  Safetensors file = RIDGE_TRY(Safetensors::open(path));
  Decoder decoder = RIDGE_TRY(describe(file));
  return Vae(std::move(file), std::move(decoder));
}

template <class D, class F>
void Vae::for_each_conv(D& d, const F& f) {
  auto residual = [&](auto& r) {
    f(r.conv_1);
    f(r.conv_2);
    if (r.shortcut) f(*r.shortcut);
  };
  for (auto* c : {&d.after_quant, &d.first, &d.to_qkv, &d.projection, &d.last}) f(*c);
  residual(d.middle_1);
  residual(d.middle_2);
  for (auto& s : d.steps) {
    if (s.residual) residual(*s.residual);
    if (s.doubling) f(*s.doubling);
  }
}

// f(values, name, channels)
template <class F>
void Vae::for_each_norm(const F& f) {
  Decoder& d = decoder_;
  auto residual = [&](Residual& r) {
    f(r.norm_1, r.name + ".residual.0", r.inputs());
    f(r.norm_2, r.name + ".residual.3", r.outputs());
  };
  residual(d.middle_1);
  residual(d.middle_2);
  for (Step& s : d.steps) {
    if (s.residual) residual(*s.residual);
  }
  f(d.attention_norm, std::string("decoder.middle.1.norm"), d.first.outputs);
  f(d.last_norm, std::string("decoder.head.0"), d.last.inputs);
}

uint64_t Vae::weight_bytes() const {
  uint64_t bytes = 0, largest = 0;
  for_each_conv(decoder_, [&](const Conv& c) {
    bytes += Slab::charge(c.lines() * c.matrix_bytes()) + c.outputs * sizeof(float);
    largest = std::max(largest, file_.find(c.name + ".weight")->bytes);
  });
  constexpr uint64_t kBuffers = kMiB;  // of reading, and the rows of a panel
  return bytes + largest + kBuffers;
}

uint64_t Vae::workspace_bytes(LatentSize size, uint32_t bands, int threads) const {
  return Slab::charge(VaeRun(*this, size, bands, threads).bytes());
}

uint32_t Vae::most_bands(LatentSize size) { return std::max<uint32_t>(1, kScale * size.height / kFewestLines); }

std::optional<uint32_t> Vae::bands_within(uint64_t bytes, LatentSize size, int threads) const {
  const uint32_t most = most_bands(size);
  for (uint32_t bands = 1; bands <= most; ++bands) {
    if (workspace_bytes(size, bands, threads) <= bytes) return bands;
  }
  return std::nullopt;
}

Result<void> Vae::load(const Kernels& kernels) {
  std::optional<Error> error;
  for_each_conv(decoder_, [&](Conv& c) {
    if (error) return;
    auto done = c.load(file_, kernels);
    if (!done.ok()) error = done.error();
  });
  for_each_norm([&](std::vector<float>& values, const std::string& name, uint32_t channels) {
    if (error) return;
    auto read = read_norm(file_, name, channels);
    if (read.ok()) {
      values = std::move(read).value();
    } else {
      error = read.error();
    }
  });
  if (error) return *error;
  return {};
}

Result<void> Vae::decode(std::span<const float> latent, LatentSize size, uint32_t bands, const VaeMachine& machine,
                         std::span<float> picture) const {
  const size_t pixels = size_t{size.height} * size.width;
  RIDGE_CHECK(latent.size() == latent_channels() * pixels && picture.size() == 3 * kScale * kScale * pixels,
              "a latent and the picture of it");
  RIDGE_CHECK(!decoder_.last_norm.empty(), "load() comes before decode()");
  VaeRun run(*this, size, bands, machine.pool->size());
  Slab slab = RIDGE_TRY(Slab::allocate(run.bytes(), {.what = "the planes of the VAE"}));
  run.decode(latent, machine, {reinterpret_cast<float*>(slab.data()), slab.bytes() / sizeof(float)}, picture);
  return {};
}

}  // namespace ridge
