#include "model/vae_planes.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "model/attend.h"

namespace ridge {
namespace {

// x / max(‖x‖, 1e-12) · √C · γ is RMSNorm: ‖x‖ / √C is the root of the mean square. As a term under the root 1e-12 is
// this; only pixels that are all zero can tell.
constexpr float kNormEps = 1e-24f;

constexpr size_t kLine = 16;  // floats: parts begin on a cache line

}  // namespace

void VaePlanes::reserve(const Plane& plane) {
  plane_floats_ = std::max(plane_floats_, static_cast<size_t>(plane.lines.count()) * plane.line_floats());
  zero_floats_ = std::max(zero_floats_, plane.line_floats());
}

// A worker keeps one line of products, one of a shortcut, and the three lines that a doubling reads.
void VaePlanes::reserve_conv(const Conv& conv, size_t width, bool doubles) {
  scratch_floats_ = std::max(scratch_floats_, 2 * width * conv.outputs + (doubles ? 3 * (width + 2) * conv.inputs : 0));
}

void VaePlanes::reserve_step(const VaeStep& step, size_t width, bool doubles) {
  reserve_conv(step.resample ? *step.resample : step.residual->conv_2, width, doubles);
  if (step.residual) reserve_conv(step.residual->conv_1, width, false);
}

// What the layers at the latent's size take: conv_1 of the residual blocks, and attention, which uses the three planes
// for its rows: normed and mixed, q k v, and what is packed.
void VaePlanes::reserve_middle(std::initializer_list<const Conv*> others) {
  const int64_t height = size_.height;
  const size_t width = size_.width, channels = half_.middle.to_qkv.inputs;
  auto whole = [&](size_t c) { return Plane{nullptr, {0, height}, height, width, c}; };
  auto conv = [&](const Conv* c) {
    reserve(whole(std::max(c->inputs, c->outputs)));
    reserve_conv(*c, width, false);
  };
  for (const Conv* c : others) conv(c);
  conv(&half_.middle.first.conv_1);
  conv(&half_.middle.second.conv_1);
  middle_floats_ = static_cast<size_t>(height) * whole(channels).line_floats();
  const size_t tokens = static_cast<size_t>(height) * width;
  plane_floats_ = std::max({plane_floats_, 3 * tokens * channels, packed_floats(tokens, channels)});
  attend_floats_ = ridge::attend_floats(static_cast<uint32_t>(channels), threads_);
}

// The other parts, when all planes are reserved.
void VaePlanes::lay_out() {
  size_t at = 0;
  auto take = [&](size_t floats) {
    const size_t begin = at;
    at += round_up(floats, kLine);
    return begin;
  };
  plane_floats_ = round_up(plane_floats_, kLine);
  scratch_floats_ = round_up(scratch_floats_, kLine);
  middle_ = take(middle_floats_);
  planes_ = take(3 * plane_floats_);
  zeros_ = take(zero_floats_);
  ones_ = take(zero_floats_);
  scratch_ = take(static_cast<size_t>(threads_) * scratch_floats_);
  attend_ = take(attend_floats_);
  total_ = at;
}

void VaePlanes::start(const VaeMachine& machine, std::span<float> workspace) {
  RIDGE_CHECK(workspace.size() >= total_ && machine.pool->size() <= threads_, "a workspace as bytes() says");
  machine_ = machine;
  base_ = workspace.data();
  std::fill_n(base_ + zeros_, zero_floats_, 0.0f);
  std::fill_n(base_ + ones_, zero_floats_, 1.0f);
}

Result<void> VaePlanes::go_on() const {
  if (machine_.interrupted != nullptr && *machine_.interrupted) return io_error("stopped by Ctrl-C");
  return {};
}

VaePlanes::Plane VaePlanes::plane(int which, LineRange lines, int64_t height, size_t width, size_t channels) const {
  float* data = base_ + planes_ + static_cast<size_t>((at_ + which) % 3) * plane_floats_;
  return {data, lines, height, width, channels};
}

// Each pixel over its channels; the pixels at the ends become zeros, as convolutions want them.
void VaePlanes::normalise(const Plane& in, const std::vector<float>& gamma, const Plane& out, bool silu) const {
  const Kernels& k = *machine_.kernels;
  const size_t c = in.channels;
  machine_.pool->share(static_cast<size_t>(out.lines.count()), 1, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = out.lines.begin + static_cast<int64_t>(i);
      const float* from = in.pixels(y);
      float* to = out.pixels(y);
      for (size_t x = 0; x < in.width; ++x) k.rms_norm(from + x * c, gamma.data(), c, kNormEps, to + x * c);
      if (silu) k.swiglu(to, base_ + ones_, in.width * c, to);
      clear_ends(out, y);
    }
  });
}

// The pixels beyond both ends of a line, which convolutions read, become zeros.
void VaePlanes::clear_ends(const Plane& plane, int64_t y) {
  std::fill_n(plane.line(y), plane.channels, 0.0f);
  std::fill_n(plane.pixels(y) + plane.width * plane.channels, plane.channels, 0.0f);
}

// The line before, the line, and the line after; beyond the picture zeros.
std::array<const float*, 3> VaePlanes::around(const Plane& in, int64_t y) const {
  std::array<const float*, 3> lines{};
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t at = y + i - 1;
    lines[static_cast<size_t>(i)] = at < 0 || at >= in.height ? base_ + zeros_ : in.line(at);
  }
  return lines;
}

void VaePlanes::convolve(const Conv& conv, const Plane& in, const Plane& out) const {
  machine_.pool->share(static_cast<size_t>(out.lines.count()), 1, [&](size_t begin, size_t end, int worker) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t y = out.lines.begin + static_cast<int64_t>(i);
      conv.line(*machine_.kernels, around(in, y), in.width, scratch(worker), out.pixels(y));
    }
  });
}

// x becomes shortcut(x) + conv_2(act(conv_1(act(x)))), on these lines.
void VaePlanes::residual(const VaeResidual& r, LineRange lines) {
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
  turn();
  x_ = out;
}

Result<void> VaePlanes::run_steps(std::span<const LineRange> lines,
                                  FunctionRef<void(const Conv&, LineRange)> resample) {
  for (size_t i = 0; i < half_.steps.size(); ++i) {
    const VaeStep& s = half_.steps[i];
    RIDGE_TRY(go_on());
    if (s.residual) {
      residual(*s.residual, lines[i + 1]);
    } else {
      resample(*s.resample, lines[i + 1]);
    }
  }
  return {};
}

// Of the whole x_, at the size of the latent.
Result<void> VaePlanes::middle() {
  const LineRange all{0, size_.height};
  RIDGE_TRY(go_on());
  residual(half_.middle.first, all);
  const size_t floats = static_cast<size_t>(size_.height) * x_.line_floats();
  std::copy_n(x_.data, floats, base_ + middle_);
  RIDGE_TRY(go_on());
  attention();
  x_ = plane(0, all, size_.height, size_.width, x_.channels);
  std::copy_n(base_ + middle_, floats, x_.data);
  RIDGE_TRY(go_on());
  residual(half_.middle.second, all);
  return {};
}

VaePlanes::Plane VaePlanes::kept_plane() const {
  return {base_ + middle_, {0, size_.height}, size_.height, size_.width, half_.middle.to_qkv.inputs};
}

// Of the plane in `middle_`, in place: every pixel sees every other, one head over all channels.
void VaePlanes::attention() {
  const size_t width = size_.width, height = size_.height, tokens = width * height, c = half_.middle.to_qkv.inputs;
  const Kernels& k = *machine_.kernels;
  ThreadPool& pool = *machine_.pool;
  float* planes = base_ + planes_;
  const Rows y(planes, tokens, c), qkv(planes + plane_floats_, tokens, 3 * c);
  Rows packed(planes + 2 * plane_floats_, 1, packed_floats(tokens, c));
  const Plane x = kept_plane();
  pool.share(height, 1, [&](size_t begin, size_t end, int) {
    for (size_t line = begin; line < end; ++line) {
      const float* from = x.pixels(static_cast<int64_t>(line));
      for (size_t i = 0; i < width; ++i) {
        k.rms_norm(from + i * c, half_.middle.norm.data(), c, kNormEps, y.row(line * width + i));
      }
      // A point convolution reads one pixel further than it begins: the line that it is given begins before.
      const float* in = y.row(line * width) - c;
      half_.middle.to_qkv.line(k, {in, in, in}, width, nullptr, qkv.row(line * width));
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
      half_.middle.projection.line(k, {in, in, in}, width, nullptr, scratch(worker));
      k.add(scratch(worker), width * c, x.pixels(static_cast<int64_t>(line)));
    }
  });
}

}  // namespace ridge
