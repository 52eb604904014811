#include "model/vae_decode.h"

#include <algorithm>
#include <cmath>

namespace ridge {

VaeDecode::VaeDecode(const VaeHalf& half, LatentSize size, uint32_t bands, int threads)
    : VaePlanes(half, size, bands, threads) {
  reserve_middle({&half_.quant, &half_.first});
  const int64_t height = size_.height;
  for (uint32_t b = 0; b < bands_; ++b) {
    const std::vector<LineRange> lines = needed(band_of(b, kVaeScale * height));
    int64_t h = height;
    size_t w = size_.width;
    for (size_t i = 0; i < half_.steps.size(); ++i) {
      const VaeStep& s = half_.steps[i];
      reserve({nullptr, lines[i], h, w, std::max(s.inputs(), s.outputs())});
      if (s.resample) {
        h *= 2;
        w *= 2;
      }
      reserve({nullptr, lines[i + 1], h, w, s.outputs()});
      reserve_step(s, w, s.resample.has_value());
    }
    reserve_conv(half_.last, w, false);
  }
  lay_out();
}

std::vector<LineRange> VaeDecode::needed(LineRange picture) const {
  std::vector<LineRange> lines(half_.steps.size() + 1);
  int64_t height = int64_t{kVaeScale} * size_.height;
  lines.back() = picture.grown(1, height);
  for (size_t i = half_.steps.size(); i-- > 0;) {
    LineRange out = lines[i + 1];
    if (half_.steps[i].residual) {
      lines[i] = out.grown(2, height);  // two convolutions
      continue;
    }
    out = out.grown(1, height);
    height /= 2;
    lines[i] = {out.begin / 2, (out.end + 1) / 2};
  }
  return lines;
}

// Each pixel becomes four, and a convolution goes over them; the doubled lines exist for one line of output at a time.
void VaeDecode::doubling(const Conv& conv, LineRange lines) {
  const size_t c = conv.inputs, width = 2 * x_.width;
  const int64_t height = 2 * x_.height;
  const Plane out = plane(2, lines, height, width, conv.outputs);
  machine_.pool->share(static_cast<size_t>(lines.count()), 1, [&](size_t begin, size_t end, int worker) {
    float* doubled = scratch(worker) + 2 * width * conv.outputs;
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = lines.begin + static_cast<int64_t>(i);
      std::array<const float*, 3> in{};
      for (int64_t n = 0; n < 3; ++n) {
        const int64_t at = y + n - 1;
        float* line = doubled + static_cast<size_t>(n) * (width + 2) * c;
        in[static_cast<size_t>(n)] = line;
        std::fill_n(line, c, 0.0f);
        std::fill_n(line + (width + 1) * c, c, 0.0f);
        for (size_t x = 0; x < width; ++x) {
          if (at < 0 || at >= height) {
            std::fill_n(line + (x + 1) * c, c, 0.0f);
          } else {
            std::copy_n(x_.pixels(at / 2) + x / 2 * c, c, line + (x + 1) * c);
          }
        }
      }
      conv.line(*machine_.kernels, in, width, scratch(worker), out.pixels(y));
    }
  });
  turn();
  x_ = out;
}

// The latent in the VAE's scale, through the first two convolutions and the middle; what comes out is kept for all
// bands.
Result<void> VaeDecode::begin(std::span<const float> latent) {
  const int64_t height = size_.height;
  const size_t width = size_.width, channels = half_.quant.inputs;
  const LineRange all{0, height};
  const Plane z = plane(0, all, height, width, channels);
  for (int64_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      for (size_t c = 0; c < channels; ++c) {
        const float v = latent[(c * size_.height + static_cast<size_t>(y)) * width + x];
        z.pixels(y)[x * channels + c] = std::fma(v, kVaeDeviation[c], kVaeMean[c]);
      }
    }
  }
  const Plane a = plane(1, all, height, width, half_.quant.outputs);
  convolve(half_.quant, z, a);
  for (int64_t y = 0; y < height; ++y) clear_ends(a, y);
  x_ = plane(2, all, height, width, half_.first.outputs);
  convolve(half_.first, a, x_);
  turn();
  RIDGE_TRY(middle());
  std::copy_n(x_.data, static_cast<size_t>(height) * x_.line_floats(), kept_plane().data);
  return {};
}

Result<void> VaeDecode::band(LineRange picture, std::span<float> out) {
  const std::vector<LineRange> lines = needed(picture);
  const Plane kept = kept_plane();
  x_ = plane(0, lines[0], kept.height, kept.width, kept.channels);
  std::copy_n(kept.line(lines[0].begin), static_cast<size_t>(lines[0].count()) * kept.line_floats(), x_.data);
  RIDGE_TRY(run_steps(lines, [&](const Conv& conv, LineRange range) { doubling(conv, range); }));
  finish(picture, out);
  return {};
}

void VaeDecode::finish(LineRange picture, std::span<float> out) const {
  const size_t width = x_.width, colours = half_.last.outputs, area = width * static_cast<size_t>(x_.height);
  const Plane a = plane(1, x_.lines, x_.height, width, x_.channels);
  normalise(x_, half_.last_norm, a, true);
  machine_.pool->share(static_cast<size_t>(picture.count()), 1, [&](size_t begin, size_t end, int worker) {
    float* line = scratch(worker) + width * colours;
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = picture.begin + static_cast<int64_t>(i);
      half_.last.line(*machine_.kernels, around(a, y), width, scratch(worker), line);
      for (size_t x = 0; x < width; ++x) {
        for (size_t c = 0; c < colours; ++c) {
          const float v = line[x * colours + c];
          out[c * area + static_cast<size_t>(y) * width + x] = v < -1 ? -1 : v > 1 ? 1 : v;  // NaN stays visible
        }
      }
    }
  });
}

Result<void> VaeDecode::decode(std::span<const float> latent, const VaeMachine& machine, std::span<float> workspace,
                               std::span<float> picture) {
  start(machine, workspace);
  RIDGE_TRY(begin(latent));
  const int64_t height = kVaeScale * int64_t{size_.height};
  for (uint32_t b = 0; b < bands_; ++b) RIDGE_TRY(band(band_of(b, height), picture));
  return {};
}

}  // namespace ridge
