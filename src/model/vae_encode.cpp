#include "model/vae_encode.h"

#include <algorithm>

namespace ridge {

VaeEncode::VaeEncode(const VaeHalf& half, LatentSize size, uint32_t bands, int threads)
    : VaePlanes(half, size, bands, threads) {
  reserve_middle({&half_.last, &half_.quant});
  for (uint32_t b = 0; b < bands_; ++b) {
    const std::vector<LineRange> lines = needed(band_of(b, size_.height));
    int64_t h = int64_t{kVaeScale} * size_.height;
    size_t w = size_t{kVaeScale} * size_.width;
    reserve({nullptr, lines[0].grown(1, h), h, w, half_.first.inputs});
    reserve_conv(half_.first, w, false);
    for (size_t i = 0; i < half_.steps.size(); ++i) {
      const VaeStep& s = half_.steps[i];
      reserve({nullptr, lines[i], h, w, std::max(s.inputs(), s.outputs())});
      reserve_step(s, w, false);
      if (!s.resample) continue;
      h /= 2;
      w /= 2;
    }
    reserve({nullptr, lines.back(), h, w, half_.steps.back().outputs()});
  }
  lay_out();
}

std::vector<LineRange> VaeEncode::needed(LineRange latent) const {
  std::vector<LineRange> lines(half_.steps.size() + 1);
  int64_t height = size_.height;
  lines.back() = latent;
  for (size_t i = half_.steps.size(); i-- > 0;) {
    const LineRange out = lines[i + 1];
    if (half_.steps[i].residual) {
      lines[i] = out.grown(2, height);  // two convolutions
      continue;
    }
    height *= 2;
    lines[i] = {2 * out.begin, std::min(2 * out.end + 1, height)};
  }
  return lines;
}

// Bytes from −1 to 1, and the first convolution.
void VaeEncode::begin(const Image& picture, LineRange lines) {
  const int64_t height = picture.height;
  const size_t width = picture.width;
  const Plane in = plane(1, lines.grown(1, height), height, width, half_.first.inputs);
  machine_.pool->share(static_cast<size_t>(in.lines.count()), 1, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = in.lines.begin + static_cast<int64_t>(i);
      const uint8_t* bytes = picture.at(0, static_cast<uint32_t>(y));
      float* to = in.pixels(y);
      for (size_t k = 0; k < width * in.channels; ++k) to[k] = static_cast<float>(bytes[k]) / 127.5f - 1;
      clear_ends(in, y);
    }
  });
  x_ = plane(2, lines, height, width, half_.first.outputs);
  convolve(half_.first, in, x_);
  turn();
}

// A 3 × 3 kernel at every other pixel of every other line, with zeros at the right and below alone: it begins at the
// pixel, not before it.
void VaeEncode::halving(const Conv& conv, LineRange lines) {
  for (int64_t y = x_.lines.begin; y < x_.lines.end; ++y) clear_ends(x_, y);
  const Plane out = plane(2, lines, x_.height / 2, x_.width / 2, conv.outputs);
  machine_.pool->share(static_cast<size_t>(lines.count()), 1, [&](size_t begin, size_t end, int worker) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = lines.begin + static_cast<int64_t>(i);
      const float* below = 2 * y + 2 < x_.height ? x_.pixels(2 * y + 2) : zeros();
      conv.line(*machine_.kernels, {x_.pixels(2 * y), x_.pixels(2 * y + 1), below}, out.width, scratch(worker),
                out.pixels(y));
    }
  });
  turn();
  x_ = out;
}

Result<void> VaeEncode::band(const Image& picture, LineRange latent) {
  const std::vector<LineRange> lines = needed(latent);
  RIDGE_TRY(go_on());
  begin(picture, lines[0]);
  RIDGE_TRY(run_steps(lines, [&](const Conv& conv, LineRange range) { halving(conv, range); }));
  std::copy_n(x_.data, static_cast<size_t>(latent.count()) * x_.line_floats(), kept_plane().line(latent.begin));
  return {};
}

// Of the channels the first half is the mean, the other the logarithm of the variance, which nobody needs.
void VaeEncode::finish(std::span<float> latent) {
  const int64_t height = size_.height;
  const size_t width = size_.width;
  const Plane a = plane(1, x_.lines, height, width, x_.channels);
  normalise(x_, half_.last_norm, a, true);
  const Plane b = plane(2, x_.lines, height, width, half_.last.outputs);
  convolve(half_.last, a, b);
  const Plane z = plane(0, x_.lines, height, width, half_.quant.outputs);
  convolve(half_.quant, b, z);
  for (int64_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      for (size_t c = 0; c < kVaeChannels; ++c) {
        const float mean = z.pixels(y)[x * z.channels + c];
        latent[(c * size_.height + static_cast<size_t>(y)) * width + x] = (mean - kVaeMean[c]) / kVaeDeviation[c];
      }
    }
  }
}

Result<void> VaeEncode::encode(const Image& picture, const VaeMachine& machine, std::span<float> workspace,
                               std::span<float> latent) {
  start(machine, workspace);
  for (uint32_t b = 0; b < bands_; ++b) RIDGE_TRY(band(picture, band_of(b, size_.height)));
  const Plane kept = kept_plane();
  x_ = plane(0, kept.lines, kept.height, kept.width, kept.channels);
  std::copy_n(kept.data, static_cast<size_t>(kept.height) * kept.line_floats(), x_.data);
  RIDGE_TRY(middle());
  finish(latent);
  return {};
}

}  // namespace ridge
