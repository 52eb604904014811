#include "tensor/quantize_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tensor/encode_blocks.h"
#include "tensor/half.h"

namespace ridge {
namespace {

// What a type can express: value = scale · (code − zero) + min.
struct Widths {
  Type type;
  int least, most;  // codes
  int zero;
  int least_scale, most_scale;  // integer scales of groups; both 1: the group's scale is the f16 one
  int most_min;                 // integer minima of groups, subtracted; 0: none
  bool free_min = false;        // an f16 minimum of either sign is added
};

constexpr Widths kWidths[] = {
    {Type::Q4_0, 0, 15, 8, 1, 1, 0},       {Type::Q4_1, 0, 15, 0, 1, 1, 0, true}, {Type::Q5_0, 0, 31, 16, 1, 1, 0},
    {Type::Q5_1, 0, 31, 0, 1, 1, 0, true}, {Type::Q8_0, 1, 255, 128, 1, 1, 0},    {Type::Q2_K, 0, 3, 0, 0, 15, 15},
    {Type::Q3_K, 0, 7, 4, -32, 31, 0},     {Type::Q4_K, 0, 15, 0, 0, 63, 63},     {Type::Q5_K, 0, 31, 0, 0, 63, 63},
    {Type::Q6_K, 0, 63, 32, -128, 127, 0},
};

const Widths* widths_of(Type type) {
  const auto at = std::find_if(std::begin(kWidths), std::end(kWidths), [&](const Widths& w) { return w.type == type; });
  return at == std::end(kWidths) ? nullptr : &*at;
}

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// The values of a group and their weights.
struct Part {
  const float* x;
  const float* w;
  size_t size;
};

struct Line {
  float scale = 0, min = 0;
};

bool has_min(const Widths& t) { return t.free_min || t.most_min > 0; }

// The nearest codes on a line; returns their weighted squared error.
float set_codes(const Widths& t, Part p, Line line, uint8_t* code) {
  constexpr size_t kLanes = 8;
  const float reciprocal = 1.0f / line.scale;
  const bool flat = !(std::fabs(reciprocal) <= std::numeric_limits<float>::max());  // a scale of 0, or nearly
  const float inverse = flat ? 0.0f : reciprocal, scale = flat ? 0.0f : line.scale;
  const auto zero = static_cast<float>(t.zero), least = static_cast<float>(t.least), most = static_cast<float>(t.most);
  float lanes[kLanes] = {};
  for (size_t i = 0; i < p.size; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const float x = p.x[i + k];
      const float at = std::min(most, std::max(least, (x - line.min) * inverse + zero)) + 0.5f;
      const int q = static_cast<int>(at);
      code[i + k] = static_cast<uint8_t>(q);
      const float off = x - (static_cast<float>(q - t.zero) * scale + line.min);
      lanes[k] += p.w[i + k] * off * off;
    }
  }
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum == sum ? sum : kInfinite;
}

// The line with the least error for these codes; the old one where there is none.
Line fit_line(const Widths& t, Part p, const uint8_t* code, Line old) {
  double w = 0, wq = 0, wqq = 0, wx = 0, wqx = 0;
  for (size_t i = 0; i < p.size; ++i) {
    const auto weight = static_cast<double>(p.w[i]), q = static_cast<double>(code[i] - t.zero);
    const auto x = static_cast<double>(p.x[i]);
    w += weight;
    wq += weight * q;
    wqq += weight * q * q;
    wx += weight * x;
    wqx += weight * q * x;
  }
  if (!(wqq > 0)) return old;
  const Line through_zero{.scale = static_cast<float>(wqx / wqq), .min = 0};
  if (!has_min(t)) return through_zero;
  const double det = w * wqq - wq * wq;
  if (!(det > 1e-9 * w * wqq)) return old;
  const Line line{.scale = static_cast<float>((w * wqx - wq * wx) / det),
                  .min = static_cast<float>((wqq * wx - wq * wqx) / det)};
  const Line& best = line.min > 0 && !t.free_min ? through_zero : line;
  return best.scale > 0 ? best : old;
}

// The extreme values become the extreme codes.
Line plain_line(const Widths& t, Part p) {
  if (has_min(t)) {
    auto [low, high] = std::minmax_element(p.x, p.x + p.size);
    const float min = t.free_min ? *low : std::min(0.0f, *low);
    return {.scale = std::max(0.0f, (*high - min) / static_cast<float>(t.most)), .min = min};
  }
  const float extreme =
      *std::max_element(p.x, p.x + p.size, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  return {.scale = extreme / static_cast<float>(t.least - t.zero), .min = 0};
}

// The best of lines whose range is a little narrower or wider than the values'.
Line search_line(const Widths& t, Part p) {
  uint8_t code[32];
  const Line plain = plain_line(t, p);
  Line best = plain;
  float least = set_codes(t, p, plain, code);
  const auto range = static_cast<float>(has_min(t) ? t.most : t.zero - t.least);
  auto consider = [&](Line line) {
    set_codes(t, p, line, code);
    line = fit_line(t, p, code, line);
    const float error = set_codes(t, p, line, code);
    if (error < least) {
      least = error;
      best = line;
    }
  };
  // With few codes a step of a tenth is fine; with many the outcome hardly depends on it.
  constexpr int kBelow = 8, kAbove = 12;
  const int stride = t.most - t.least > 31 ? 4 : 1;
  for (int i = -kBelow; i <= kAbove; i += stride) {
    consider({.scale = plain.scale * range / (range + 0.1f * static_cast<float>(i)), .min = plain.min});
  }
  if (!has_min(t)) consider({.scale = -plain.scale, .min = 0});  // the extreme on the side with one code less
  return best;
}

// An f16, cut to what it can hold.
uint16_t half_of(float value) {
  constexpr float kMost = 65504;
  return f32_to_f16(std::min(kMost, std::max(-kMost, value)));
}

// One block: codes, scales and their error.
class BlockFit {
 public:
  BlockFit(const Widths& widths, const float* x, const float* w)
      : t_(widths), x_(x), w_(w), info_(*block_info(widths.type)), groups_(info_.block / info_.group) {}

  // Lines as the f16 and integer scales can hold them, with codes.
  void round(const Line* lines) {
    nested() ? round_nested(lines) : round_single(lines[0]);
    recode();
  }

  // Moves integer scales by one where that helps, then fits the f16 scales.
  void improve() {
    constexpr int kRounds = 2;
    for (int i = 0; i < kRounds; ++i) {
      if (nested()) {
        for (size_t g = 0; g < groups_; ++g) move_scale(g);
      }
      BlockFit other = *this;
      if (!other.refit()) return;
      other.recode();
      if (!(other.error() < error())) return;
      *this = other;
    }
  }

  float error() const {
    float sum = 0;
    for (size_t g = 0; g < groups_; ++g) sum += errors_[g];
    return sum;
  }
  const RawBlock& raw() const { return raw_; }
  size_t groups() const { return groups_; }
  Part part(size_t g) const { return {x_ + g * info_.group, w_ + g * info_.group, info_.group}; }

  BlockFit(const BlockFit&) = default;
  BlockFit& operator=(const BlockFit& other) {
    raw_ = other.raw_;
    std::copy(std::begin(other.errors_), std::end(other.errors_), errors_);
    return *this;
  }

 private:
  bool nested() const { return groups_ > 1; }

  Line line(size_t g) const {
    const float d = f16_to_f32(raw_.d), dmin = f16_to_f32(raw_.dmin);
    if (!nested()) return {.scale = d, .min = t_.free_min ? dmin : 0.0f};
    return {.scale = d * static_cast<float>(raw_.scale[g]),
            .min = t_.most_min > 0 ? -(dmin * static_cast<float>(raw_.min[g])) : 0.0f};
  }

  void round_single(Line line) {
    raw_.d = half_of(line.scale);
    raw_.dmin = half_of(line.min);
    raw_.scale[0] = raw_.min[0] = 1;
  }

  static int16_t nearest(float value, float unit, int least, int most) {
    const float n = unit != 0 ? value / unit : 0;
    if (!(std::fabs(n) <= 1e6f)) return static_cast<int16_t>(n > 0 ? most : 0);
    return static_cast<int16_t>(std::clamp(static_cast<int>(std::lround(n)), least, most));
  }

  void round_nested(const Line* lines) {
    float extreme = 0, deepest = 0;
    for (size_t g = 0; g < groups_; ++g) {
      if (std::fabs(lines[g].scale) > std::fabs(extreme)) extreme = lines[g].scale;
      deepest = std::max(deepest, -lines[g].min);
    }
    raw_.d = half_of(extreme / static_cast<float>(t_.least_scale < 0 ? t_.least_scale : t_.most_scale));
    raw_.dmin = t_.most_min > 0 ? half_of(deepest / static_cast<float>(t_.most_min)) : 0;
    const float d = f16_to_f32(raw_.d), dmin = f16_to_f32(raw_.dmin);
    for (size_t g = 0; g < groups_; ++g) {
      raw_.scale[g] = nearest(lines[g].scale, d, t_.least_scale, t_.most_scale);
      raw_.min[g] = t_.most_min > 0 ? nearest(-lines[g].min, dmin, 0, t_.most_min) : int16_t{0};
    }
  }

  void recode() {
    for (size_t g = 0; g < groups_; ++g) errors_[g] = set_codes(t_, part(g), line(g), raw_.code + g * info_.group);
  }

  // The best of the neighbouring integer scale and minimum of a group.
  void move_scale(size_t g) {
    const int16_t scale = raw_.scale[g], min = raw_.min[g];
    int16_t best_scale = scale, best_min = min;
    const int deep = t_.most_min > 0 ? 1 : 0;
    uint8_t code[32];
    for (int s = std::max<int>(t_.least_scale, scale - 1); s <= std::min<int>(t_.most_scale, scale + 1); ++s) {
      for (int m = std::max(0, min - deep); m <= std::min(t_.most_min, min + deep); ++m) {
        raw_.scale[g] = static_cast<int16_t>(s);
        raw_.min[g] = static_cast<int16_t>(m);
        const float error = set_codes(t_, part(g), line(g), code);
        if (!(error < errors_[g])) continue;
        errors_[g] = error;
        best_scale = raw_.scale[g];
        best_min = raw_.min[g];
        std::copy_n(code, info_.group, raw_.code + g * info_.group);
      }
    }
    raw_.scale[g] = best_scale;
    raw_.min[g] = best_min;
  }

  // Least squares for d and dmin, codes and integer scales as they are; false where there is none.
  bool refit() {
    if (!nested()) {
      const Line now = line(0);
      const Line next = fit_line(t_, part(0), raw_.code, now);
      round_single(next);
      return true;
    }
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // x ≈ d a − dmin b
    for (size_t i = 0; i < info_.block; ++i) {
      const size_t g = i / info_.group;
      const double a = static_cast<double>(raw_.scale[g]) * (raw_.code[i] - t_.zero), b = raw_.min[g];
      const auto w = static_cast<double>(w_[i]), x = static_cast<double>(x_[i]);
      aa += w * a * a;
      ab += w * a * b;
      bb += w * b * b;
      ax += w * a * x;
      bx += w * b * x;
    }
    if (!(aa > 0)) return false;
    if (t_.most_min == 0 || !(bb > 0)) {
      raw_.d = half_of(static_cast<float>(ax / aa));
      return t_.least_scale < 0 || ax >= 0;
    }
    const double det = aa * bb - ab * ab;
    if (!(det > 1e-9 * aa * bb)) return false;
    const double d = (bb * ax - ab * bx) / det, dmin = (ab * ax - aa * bx) / det;
    raw_.d = half_of(static_cast<float>(d));
    raw_.dmin = half_of(static_cast<float>(dmin));
    return d >= 0 && dmin >= 0;
  }

  const Widths& t_;
  const float *x_, *w_;
  const BlockInfo& info_;
  size_t groups_;
  RawBlock raw_{};
  float errors_[kMaxBlock / 16] = {};
};

void fit_block(const Widths& t, const float* x, const float* w, FitEffort effort, uint8_t* out) {
  Line lines[kMaxBlock / 16];
  BlockFit best(t, x, w);
  for (size_t g = 0; g < best.groups(); ++g) lines[g] = plain_line(t, best.part(g));
  best.round(lines);
  if (effort == FitEffort::search) {
    BlockFit found(t, x, w);
    for (size_t g = 0; g < found.groups(); ++g) lines[g] = search_line(t, found.part(g));
    found.round(lines);
    found.improve();
    if (found.error() < best.error()) best = found;
  }
  encode_block(t.type, best.raw(), out);
}

}  // namespace

bool can_fit(Type type) { return widths_of(type) != nullptr; }

void fit_row(Type type, std::span<const float> values, const FitOptions& options, std::span<uint8_t> out) {
  const Widths* t = widths_of(type);
  RIDGE_CHECK(t != nullptr && out.size() == row_bytes(type, values.size()),
              "fit_row() of whole blocks of a known type");
  RIDGE_CHECK(options.weights.empty() || options.weights.size() == values.size(), "a weight for each column");
  const TypeInfo& info = type_info(type);
  float ones[kMaxBlock];
  std::fill(std::begin(ones), std::end(ones), 1.0f);
  for (size_t i = 0; i < values.size(); i += info.block) {
    const float* w = options.weights.empty() ? ones : options.weights.data() + i;
    fit_block(*t, values.data() + i, w, options.effort, out.data() + i / info.block * info.bytes);
  }
}

}  // namespace ridge
