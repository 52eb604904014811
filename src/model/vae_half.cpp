#include "model/vae_half.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "memory/slab.h"

namespace ridge {
namespace {

constexpr uint32_t kMostSteps = 64;

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

Result<void> expect_channels(const Safetensors& file, const std::string& name, uint32_t outputs, uint32_t expected) {
  if (outputs == expected) return {};
  return bad_input(fmt::format("{}: '{}' gives {} channels, expected {}", file.where(), name, outputs, expected));
}

Result<VaeResidual> describe_residual(const Safetensors& file, const std::string& name, uint32_t inputs) {
  VaeResidual r{.name = name,
                .conv_1 = RIDGE_TRY(Conv::describe(file, name + ".residual.2", inputs, ConvKind::square)),
                .conv_2 = {},
                .shortcut = {}};
  const uint32_t outputs = r.conv_1.outputs;
  r.conv_2 = RIDGE_TRY(Conv::describe(file, name + ".residual.6", outputs, ConvKind::square));
  RIDGE_TRY(expect_channels(file, r.conv_2.name, r.conv_2.outputs, outputs));
  RIDGE_TRY(check_norm(file, name + ".residual.0", inputs));
  RIDGE_TRY(check_norm(file, name + ".residual.3", outputs));
  if (inputs == outputs) return r;
  r.shortcut = RIDGE_TRY(Conv::describe(file, name + ".shortcut", inputs, ConvKind::point));
  RIDGE_TRY(expect_channels(file, r.shortcut->name, r.shortcut->outputs, outputs));
  return r;
}

Result<VaeMiddle> describe_middle(const Safetensors& file, const std::string& name, uint32_t channels) {
  VaeMiddle m{.first = RIDGE_TRY(describe_residual(file, name + ".0", channels)),
              .second = {},
              .to_qkv = RIDGE_TRY(Conv::describe(file, name + ".1.to_qkv", channels, ConvKind::point)),
              .projection = RIDGE_TRY(Conv::describe(file, name + ".1.proj", channels, ConvKind::point)),
              .norm_name = name + ".1.norm"};
  m.second = RIDGE_TRY(describe_residual(file, name + ".2", channels));
  RIDGE_TRY(check_norm(file, m.norm_name, channels));
  RIDGE_TRY(expect_channels(file, m.to_qkv.name, m.to_qkv.outputs, 3 * channels));
  RIDGE_TRY(expect_channels(file, m.projection.name, m.projection.outputs, channels));
  RIDGE_TRY(expect_channels(file, m.first.name, m.first.outputs(), channels));
  RIDGE_TRY(expect_channels(file, m.second.name, m.second.outputs(), channels));
  return m;
}

// "decoder.upsamples" or "encoder.downsamples", one after the other; together they change the size eight times.
Result<std::vector<VaeStep>> describe_steps(const Safetensors& file, VaeSide side, const std::string& list,
                                            uint32_t channels) {
  std::vector<VaeStep> steps;
  uint32_t scale = 1;
  for (uint32_t i = 0; i < kMostSteps; ++i) {
    const std::string name = fmt::format("{}.{}", list, i);
    VaeStep step;
    if (file.find(name + ".resample.1.weight") != nullptr) {
      step.resample = RIDGE_TRY(Conv::describe(file, name + ".resample.1", channels, ConvKind::square));
      if (side == VaeSide::encoder) step.resample->stride = 2;
      scale *= 2;
    } else if (file.find(name + ".residual.2.weight") != nullptr) {
      step.residual = RIDGE_TRY(describe_residual(file, name, channels));
    } else {
      break;
    }
    channels = step.outputs();
    steps.push_back(std::move(step));
  }
  if (scale == kVaeScale && !steps.empty()) return steps;
  return bad_input(fmt::format("{}: its {} {} times, expected {}: this is no VAE of Wan's", file.where(),
                               side == VaeSide::decoder ? "decoder enlarges" : "encoder shrinks", scale, kVaeScale));
}

Result<VaeHalf> describe_decoder(const Safetensors& file) {
  VaeHalf d{.quant = RIDGE_TRY(Conv::describe(file, "conv2", kVaeChannels, ConvKind::point)),
            .first = RIDGE_TRY(Conv::describe(file, "decoder.conv1", kVaeChannels, ConvKind::square)),
            .last = {},
            .middle = {},
            .steps = {},
            .last_norm_name = "decoder.head.0"};
  RIDGE_TRY(expect_channels(file, d.quant.name, d.quant.outputs, kVaeChannels));
  d.middle = RIDGE_TRY(describe_middle(file, "decoder.middle", d.first.outputs));
  d.steps = RIDGE_TRY(describe_steps(file, VaeSide::decoder, "decoder.upsamples", d.first.outputs));
  const uint32_t channels = d.steps.back().outputs();
  RIDGE_TRY(check_norm(file, d.last_norm_name, channels));
  d.last = RIDGE_TRY(Conv::describe(file, "decoder.head.2", channels, ConvKind::square));
  RIDGE_TRY(expect_channels(file, d.last.name, d.last.outputs, 3));
  return d;
}

Result<VaeHalf> describe_encoder(const Safetensors& file) {
  if (file.find("encoder.conv1.weight") == nullptr) {
    return bad_input(
        fmt::format("{}: this VAE has no encoder (tensor 'encoder.conv1.weight' is missing), so that no "
                    "picture can be drawn from: give a VAE with both halves",
                    file.where()));
  }
  VaeHalf e{.quant = {},
            .first = RIDGE_TRY(Conv::describe(file, "encoder.conv1", 3, ConvKind::square)),
            .last = {},
            .middle = {},
            .steps = {},
            .last_norm_name = "encoder.head.0"};
  e.steps = RIDGE_TRY(describe_steps(file, VaeSide::encoder, "encoder.downsamples", e.first.outputs));
  const uint32_t channels = e.steps.back().outputs();
  e.middle = RIDGE_TRY(describe_middle(file, "encoder.middle", channels));
  RIDGE_TRY(check_norm(file, e.last_norm_name, channels));
  e.last = RIDGE_TRY(Conv::describe(file, "encoder.head.2", channels, ConvKind::square));
  RIDGE_TRY(expect_channels(file, e.last.name, e.last.outputs, 2 * kVaeChannels));
  e.quant = RIDGE_TRY(Conv::describe(file, "conv1", 2 * kVaeChannels, ConvKind::point));
  RIDGE_TRY(expect_channels(file, e.quant.name, e.quant.outputs, 2 * kVaeChannels));
  return e;
}

template <class Half, class F>
void for_each_residual(Half& h, const F& f) {
  f(h.middle.first);
  f(h.middle.second);
  for (auto& s : h.steps) {
    if (s.residual) f(*s.residual);
  }
}

template <class Half, class F>
void for_each_conv(Half& h, const F& f) {
  for (auto* c : {&h.quant, &h.first, &h.middle.to_qkv, &h.middle.projection, &h.last}) f(*c);
  for_each_residual(h, [&](auto& r) {
    f(r.conv_1);
    f(r.conv_2);
    if (r.shortcut) f(*r.shortcut);
  });
  for (auto& s : h.steps) {
    if (s.resample) f(*s.resample);
  }
}

// f(values, name, channels)
template <class F>
void for_each_norm(VaeHalf& h, const F& f) {
  for_each_residual(h, [&](VaeResidual& r) {
    f(r.norm_1, r.name + ".residual.0", r.inputs());
    f(r.norm_2, r.name + ".residual.3", r.outputs());
  });
  f(h.middle.norm, h.middle.norm_name, h.middle.to_qkv.inputs);
  f(h.last_norm, h.last_norm_name, h.last.inputs);
}

}  // namespace

Result<VaeHalf> VaeHalf::describe(const Safetensors& file, VaeSide side) {
  return side == VaeSide::decoder ? describe_decoder(file) : describe_encoder(file);
}

uint64_t VaeHalf::weight_bytes(const Safetensors& file) const {
  uint64_t bytes = 0, largest = 0;
  for_each_conv(*this, [&](const Conv& c) {
    bytes += Slab::charge(c.lines() * c.matrix_bytes()) + c.outputs * sizeof(float);
    largest = std::max(largest, file.find(c.name + ".weight")->bytes);
  });
  constexpr uint64_t kBuffers = kMiB;  // of reading, and the rows of a panel
  return bytes + largest + kBuffers;
}

Result<void> VaeHalf::load(const Safetensors& file, const Kernels& kernels) {
  std::optional<Error> error;
  for_each_conv(*this, [&](Conv& c) {
    if (error) return;
    auto done = c.load(file, kernels);
    if (!done.ok()) error = done.error();
  });
  for_each_norm(*this, [&](std::vector<float>& values, const std::string& name, uint32_t channels) {
    if (error) return;
    auto read = read_norm(file, name, channels);
    if (read.ok()) {
      values = std::move(read).value();
    } else {
      error = read.error();
    }
  });
  if (error) return *error;
  return {};
}

}  // namespace ridge
