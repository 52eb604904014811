#include "model/vae_run.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "model/attend.h"

namespace ridge {
namespace {

// Of Qwen-Image's and Wan 2.1's latents, by channel.
constexpr float kMean[] = {-0.7571f, -0.7089f, -0.9113f, 0.1075f,  -0.1745f, 0.9653f,  -0.1517f, 1.5508f,
                           0.4134f,  -0.0715f, 0.5517f,  -0.3632f, -0.1922f, -0.9497f, 0.2503f,  -0.2921f};
constexpr float kDeviation[] = {2.8184f, 1.4541f, 2.3275f, 2.6558f, 1.2196f, 1.7708f, 2.6052f, 2.0743f,
                                3.2687f, 2.1526f, 2.8652f, 1.5579f, 1.6382f, 1.1253f, 2.8251f, 1.9160f};
static_assert(std::size(kMean) == 16 && std::size(kDeviation) == 16);

// x / max(‖x‖, 1e-12) · √C · γ is RMSNorm: ‖x‖ / √C is the root of the mean square. As a term under the root 1e-12 is
// this; only pixels that are all zero can tell.
constexpr float kNormEps = 1e-24f;

constexpr size_t kLine = 16;  // floats: parts begin on a cache line

}  // namespace

VaeRun::VaeRun(const Vae& vae, LatentSize size, uint32_t bands, int threads)
    : d_(vae.decoder_), size_(size), bands_(bands), threads_(threads) {
  measure();
}

void VaeRun::reserve(const Plane& plane) {
  plane_floats_ = std::max(plane_floats_, static_cast<size_t>(plane.lines.count()) * plane.line_floats());
  zero_floats_ = std::max(zero_floats_, plane.line_floats());
}

// A worker keeps one line of products, one of a shortcut, and the three lines that a doubling reads.
void VaeRun::reserve_conv(const Conv& conv, size_t width, bool doubles) {
  scratch_floats_ = std::max(scratch_floats_, 2 * width * conv.outputs + (doubles ? 3 * (width + 2) * conv.inputs : 0));
}

void VaeRun::measure() {
  const int64_t height = size_.height;
  const size_t width = size_.width, channels = d_.first.outputs;
  const LineRange all{0, height};
  auto whole = [&](size_t c) { return Plane{nullptr, all, height, width, c}; };
  for (const Conv* c : {&d_.after_quant, &d_.first, &d_.middle_1.conv_1, &d_.middle_2.conv_1}) {
    reserve(whole(std::max(c->inputs, c->outputs)));
    reserve_conv(*c, width, false);
  }
  middle_floats_ = static_cast<size_t>(height) * whole(channels).line_floats();
  // Attention takes the three planes for its rows: normed and mixed, q k v, and what is packed.
  const size_t tokens = static_cast<size_t>(height) * width;
  plane_floats_ = std::max({plane_floats_, 3 * tokens * channels, packed_floats(tokens, channels)});
  for (uint32_t b = 0; b < bands_; ++b) {
    const LineRange picture{8 * height * b / bands_, 8 * height * (b + 1) / bands_};
    const std::vector<LineRange> lines = needed(picture);
    int64_t h = height;
    size_t w = width;
    for (size_t i = 0; i < d_.steps.size(); ++i) {
      const Vae::Step& s = d_.steps[i];
      reserve({nullptr, lines[i], h, w, std::max(s.inputs(), s.outputs())});
      if (s.doubling) {
        h *= 2;
        w *= 2;
      }
      reserve({nullptr, lines[i + 1], h, w, s.outputs()});
      reserve_conv(s.doubling ? *s.doubling : s.residual->conv_2, w, s.doubling.has_value());
      if (s.residual) reserve_conv(s.residual->conv_1, w, false);
    }
    reserve_conv(d_.last, w, false);
  }
  size_t at = 0;
  auto take = [&](size_t floats) {
    const size_t begin = at;
    at += round_up(floats, kLine);
    return begin;
  };
  plane_floats_ = round_up(plane_floats_, kLine);
  scratch_floats_ = round_up(scratch_floats_, kLine);
  attend_floats_ = ridge::attend_floats(static_cast<uint32_t>(channels), threads_);
  middle_ = take(middle_floats_);
  planes_ = take(3 * plane_floats_);
  zeros_ = take(zero_floats_);
  ones_ = take(zero_floats_);
  scratch_ = take(static_cast<size_t>(threads_) * scratch_floats_);
  attend_ = take(attend_floats_);
  total_ = at;
}

std::vector<LineRange> VaeRun::needed(LineRange picture) const {
  std::vector<LineRange> lines(d_.steps.size() + 1);
  int64_t height = size_.height;
  for (const Vae::Step& s : d_.steps) height *= s.doubling ? 2 : 1;
  lines.back() = picture.grown(1, height);
  for (size_t i = d_.steps.size(); i-- > 0;) {
    LineRange out = lines[i + 1];
    if (d_.steps[i].residual) {
      lines[i] = out.grown(2, height);  // two convolutions
      continue;
    }
    out = out.grown(1, height);
    height /= 2;
    lines[i] = {out.begin / 2, (out.end + 1) / 2};
  }
  return lines;
}

VaeRun::Plane VaeRun::plane(int which, LineRange lines, int64_t height, size_t width, size_t channels) const {
  float* data = base_ + planes_ + static_cast<size_t>((at_ + which) % 3) * plane_floats_;
  return {data, lines, height, width, channels};
}

// Each pixel over its channels; the pixels at the ends become zeros, as convolutions want them.
void VaeRun::normalise(const Plane& in, const std::vector<float>& gamma, const Plane& out, bool silu) const {
  const Kernels& k = *machine_.kernels;
  const size_t c = in.channels;
  machine_.pool->share(static_cast<size_t>(out.lines.count()), 1, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = out.lines.begin + static_cast<int64_t>(i);
      const float* from = in.pixels(y);
      float* to = out.pixels(y);
      for (size_t x = 0; x < in.width; ++x) k.rms_norm(from + x * c, gamma.data(), c, kNormEps, to + x * c);
      if (silu) k.swiglu(to, base_ + ones_, in.width * c, to);
      std::fill_n(out.line(y), c, 0.0f);
      std::fill_n(to + in.width * c, c, 0.0f);
    }
  });
}

// The line before, the line, and the line after; beyond the picture zeros.
std::array<const float*, 3> VaeRun::around(const Plane& in, int64_t y) const {
  std::array<const float*, 3> lines{};
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t at = y + i - 1;
    lines[static_cast<size_t>(i)] = at < 0 || at >= in.height ? base_ + zeros_ : in.line(at);
  }
  return lines;
}

void VaeRun::convolve(const Conv& conv, const Plane& in, const Plane& out) const {
  machine_.pool->share(static_cast<size_t>(out.lines.count()), 1, [&](size_t begin, size_t end, int worker) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = out.lines.begin + static_cast<int64_t>(i);
      conv.line(*machine_.kernels, around(in, y), in.width, scratch(worker), out.pixels(y));
    }
  });
}

// x becomes shortcut(x) + conv_2(act(conv_1(act(x)))), on these lines.
void VaeRun::residual(const Vae::Residual& r, LineRange lines) {
  const Kernels& k = *machine_.kernels;
  const int64_t height = x_.height;
  const size_t width = x_.width;
  const Plane a = plane(1, x_.lines, height, width, r.inputs());
  normalise(x_, r.norm_1, a, true);
  const Plane b = plane(2, lines.grown(1, height), height, width, r.conv_1.outputs);
  convolve(r.conv_1, a, b);
  const Plane a2 = plane(1, b.lines, height, width, r.conv_1.outputs);
  normalise(b, r.norm_2, a2, true);
  const Plane out = plane(2, lines, height, width, r.outputs());
  machine_.pool->share(static_cast<size_t>(lines.count()), 1, [&](size_t begin, size_t end, int worker) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = lines.begin + static_cast<int64_t>(i);
      r.conv_2.line(k, around(a2, y), width, scratch(worker), out.pixels(y));
      const float* own = x_.pixels(y);
      if (r.shortcut) {
        float* turned = scratch(worker) + width * r.outputs();
        r.shortcut->line(k, around(x_, y), width, scratch(worker), turned);
        own = turned;
      }
      k.add(own, width * r.outputs(), out.pixels(y));
    }
  });
  at_ = (at_ + 2) % 3;
  x_ = out;
}

// Each pixel becomes four, and a convolution goes over them; the doubled lines exist for one line of output at a time.
void VaeRun::doubling(const Conv& conv, LineRange lines) {
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
  at_ = (at_ + 2) % 3;
  x_ = out;
}

// The latent in the VAE's scale, through the first two convolutions and the middle; what comes out is kept for all
// bands.
void VaeRun::begin(std::span<const float> latent) {
  const int64_t height = size_.height;
  const size_t width = size_.width, channels = d_.after_quant.inputs;
  const LineRange all{0, height};
  const Plane z = plane(0, all, height, width, channels);
  for (int64_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      for (size_t c = 0; c < channels; ++c) {
        const float v = latent[(c * size_.height + static_cast<size_t>(y)) * width + x];
        z.pixels(y)[x * channels + c] = std::fma(v, kDeviation[c], kMean[c]);
      }
    }
  }
  const Plane a = plane(1, all, height, width, d_.after_quant.outputs);
  convolve(d_.after_quant, z, a);
  for (int64_t y = 0; y < height; ++y) {
    std::fill_n(a.line(y), a.channels, 0.0f);
    std::fill_n(a.pixels(y) + width * a.channels, a.channels, 0.0f);
  }
  x_ = plane(2, all, height, width, d_.first.outputs);
  convolve(d_.first, a, x_);
  at_ = (at_ + 2) % 3;
  residual(d_.middle_1, all);
  const size_t floats = static_cast<size_t>(height) * x_.line_floats();
  std::copy_n(x_.data, floats, base_ + middle_);
  attention();
  x_ = plane(0, all, height, width, x_.channels);
  std::copy_n(base_ + middle_, floats, x_.data);
  residual(d_.middle_2, all);
  std::copy_n(x_.data, floats, base_ + middle_);
}

// Of the plane in `middle_`, in place: every pixel sees every other, one head over all channels.
void VaeRun::attention() {
  const size_t width = size_.width, height = size_.height, tokens = width * height, c = d_.first.outputs;
  const Kernels& k = *machine_.kernels;
  ThreadPool& pool = *machine_.pool;
  float* planes = base_ + planes_;
  const Rows y(planes, tokens, c), qkv(planes + plane_floats_, tokens, 3 * c);
  Rows packed(planes + 2 * plane_floats_, 1, packed_floats(tokens, c));
  const Plane x{base_ + middle_, {0, size_.height}, size_.height, width, c};
  pool.share(height, 1, [&](size_t begin, size_t end, int) {
    for (size_t line = begin; line < end; ++line) {
      const float* from = x.pixels(static_cast<int64_t>(line));
      for (size_t i = 0; i < width; ++i) {
        k.rms_norm(from + i * c, d_.attention_norm.data(), c, kNormEps, y.row(line * width + i));
      }
      // A point convolution reads one pixel further than it begins: the line that it is given begins before.
      const float* in = y.row(line * width) - c;
      d_.to_qkv.line(k, {in, in, in}, width, nullptr, qkv.row(line * width));
    }
  });
  pack_rows(k, pool, qkv.slice_cols(c, c), qkv.slice_cols(2 * c, c), 1, packed);
  attend_rows(k, pool, {base_ + attend_, attend_floats_},
              {.heads = 1,
               .head_dim = static_cast<uint32_t>(c),
               .keys = static_cast<uint32_t>(tokens),
               .scale = 1.0f / std::sqrt(static_cast<float>(c)),
               .sink = {}},
              qkv.slice_cols(0, c), packed, y);
  pool.share(height, 1, [&](size_t begin, size_t end, int worker) {
    for (size_t line = begin; line < end; ++line) {
      const float* in = y.row(line * width) - c;
      d_.projection.line(k, {in, in, in}, width, nullptr, scratch(worker));
      k.add(scratch(worker), width * c, x.pixels(static_cast<int64_t>(line)));
    }
  });
}

void VaeRun::band(LineRange picture, std::span<float> out) {
  const std::vector<LineRange> lines = needed(picture);
  const Plane middle{base_ + middle_, {0, size_.height}, size_.height, size_.width, d_.first.outputs};
  x_ = plane(0, lines[0], middle.height, middle.width, middle.channels);
  std::copy_n(middle.line(lines[0].begin), static_cast<size_t>(lines[0].count()) * middle.line_floats(), x_.data);
  for (size_t i = 0; i < d_.steps.size(); ++i) {
    const Vae::Step& s = d_.steps[i];
    if (s.residual) {
      residual(*s.residual, lines[i + 1]);
    } else {
      doubling(*s.doubling, lines[i + 1]);
    }
  }
  finish(picture, out);
}

void VaeRun::finish(LineRange picture, std::span<float> out) const {
  const size_t width = x_.width, colours = d_.last.outputs, area = width * static_cast<size_t>(x_.height);
  const Plane a = plane(1, x_.lines, x_.height, width, x_.channels);
  normalise(x_, d_.last_norm, a, true);
  machine_.pool->share(static_cast<size_t>(picture.count()), 1, [&](size_t begin, size_t end, int worker) {
    float* line = scratch(worker) + width * colours;
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = picture.begin + static_cast<int64_t>(i);
      d_.last.line(*machine_.kernels, around(a, y), width, scratch(worker), line);
      for (size_t x = 0; x < width; ++x) {
        for (size_t c = 0; c < colours; ++c) {
          const float v = line[x * colours + c];
          out[c * area + static_cast<size_t>(y) * width + x] = v < -1 ? -1 : v > 1 ? 1 : v;  // NaN stays visible
        }
      }
    }
  });
}

void VaeRun::decode(std::span<const float> latent, const VaeMachine& machine, std::span<float> workspace,
                    std::span<float> picture) {
  RIDGE_CHECK(workspace.size() >= total_ && machine.pool->size() <= threads_, "a workspace as bytes() says");
  machine_ = machine;
  base_ = workspace.data();
  std::fill_n(base_ + zeros_, zero_floats_, 0.0f);
  std::fill_n(base_ + ones_, zero_floats_, 1.0f);
  begin(latent);
  const int64_t height = Vae::kScale * int64_t{size_.height};
  for (uint32_t b = 0; b < bands_; ++b) band({height * b / bands_, height * (b + 1) / bands_}, picture);
}

}  // namespace ridge
