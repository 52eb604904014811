#include "engine/image_preview.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "engine/image_noise.h"

namespace ridge {
namespace {

constexpr size_t kTerms = kPreviewChannels + 1;
constexpr uint32_t kProbes = 4, kPatch = 4;  // pixels of the latent on a side
constexpr uint32_t kAcross = kPreviewProbe.width / kPatch;
constexpr double kRidge = 1e-6;  // of the mean diagonal: nothing is singular

using Terms = std::array<double, kTerms>;

struct Normal {
  std::array<Terms, kTerms> matrix{};
  std::array<Terms, 3> right{};

  void add(const Terms& x, const std::array<double, 3>& rgb) {
    for (size_t i = 0; i < kTerms; ++i) {
      for (size_t j = 0; j < kTerms; ++j) matrix[i][j] += x[i] * x[j];
      for (size_t c = 0; c < 3; ++c) right[c][i] += x[i] * rgb[c];
    }
  }
};

// Gauss's elimination, in place; the matrix is positive definite.
LatentColours solve(Normal n) {
  double mean = 0;
  for (size_t i = 0; i < kTerms; ++i) mean += n.matrix[i][i] / kTerms;
  for (size_t i = 0; i < kTerms; ++i) n.matrix[i][i] += kRidge * mean;
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t row = i + 1; row < kTerms; ++row) {
      const double factor = n.matrix[row][i] / n.matrix[i][i];
      for (size_t j = i; j < kTerms; ++j) n.matrix[row][j] -= factor * n.matrix[i][j];
      for (size_t c = 0; c < 3; ++c) n.right[c][row] -= factor * n.right[c][i];
    }
  }
  LatentColours out;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = kTerms; i-- > 0;) {
      double sum = n.right[c][i];
      for (size_t j = i + 1; j < kTerms; ++j) sum -= n.matrix[i][j] * out.factors[j][c];
      out.factors[i][c] = sum / n.matrix[i][i];
    }
  }
  return out;
}

// The inner half of a patch: its borders see the neighbours.
std::array<double, 3> inner_colour(std::span<const float> picture, uint32_t py, uint32_t px) {
  constexpr uint32_t kSide = kPatch * Vae::kScale, kWidth = kPreviewProbe.width * Vae::kScale;
  constexpr size_t kPlane = size_t{kWidth} * kPreviewProbe.height * Vae::kScale;
  std::array<double, 3> sum{};
  for (size_t c = 0; c < 3; ++c) {
    for (uint32_t y = py * kSide + kSide / 4; y < py * kSide + 3 * kSide / 4; ++y) {
      for (uint32_t x = px * kSide + kSide / 4; x < px * kSide + 3 * kSide / 4; ++x) {
        sum[c] += static_cast<double>(picture[c * kPlane + size_t{y} * kWidth + x]);
      }
    }
    sum[c] /= kSide / 2 * (kSide / 2);
  }
  return sum;
}

}  // namespace

Result<LatentColours> fit_latent_colours(DecodeFunction decode) {
  constexpr size_t kPixels = size_t{kPreviewProbe.height} * kPreviewProbe.width, kPatches = kPixels / (kPatch * kPatch);
  std::vector<float> draws(kPatches * kPreviewChannels), latent(kPreviewChannels * kPixels);
  std::vector<float> picture(3 * kPixels * Vae::kScale * Vae::kScale);
  Normal normal;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    fill_noise(probe, kInitialNoise, draws);
    auto patch = [&](uint32_t y, uint32_t x) { return &draws[(y * kAcross + x) * kPreviewChannels]; };
    for (size_t i = 0; i < latent.size(); ++i) {
      const auto at = static_cast<uint32_t>(i % kPixels);
      latent[i] = patch(at / kPreviewProbe.width / kPatch, at % kPreviewProbe.width / kPatch)[i / kPixels];
    }
    RIDGE_TRY(decode(latent, picture));
    for (uint32_t p = 0; p < kPatches; ++p) {
      Terms x{};
      std::copy_n(patch(p / kAcross, p % kAcross), kPreviewChannels, x.begin());
      x.back() = 1;
      normal.add(x, inner_colour(picture, p / kAcross, p % kAcross));
    }
  }
  const LatentColours colours = solve(normal);
  for (const auto& row : colours.factors) {
    if (std::isfinite(row[0] + row[1] + row[2])) continue;
    return bad_input("the VAE gives values that are no numbers: its file is damaged");
  }
  return colours;
}

Image preview_of(const LatentColours& colours, std::span<const float> latent, LatentSize size) {
  const size_t plane = size_t{size.height} * size.width;
  RIDGE_CHECK(latent.size() == kPreviewChannels * plane, "a latent of this size");
  Image out = make_image(size.width * Vae::kScale, size.height * Vae::kScale, 3);
  for (size_t at = 0; at < plane; ++at) {
    std::array<double, 3> rgb = colours.factors.back();
    for (size_t c = 0; c < kPreviewChannels; ++c) {
      for (size_t k = 0; k < 3; ++k) rgb[k] += colours.factors[c][k] * static_cast<double>(latent[c * plane + at]);
    }
    std::array<uint8_t, 3> pixel{};
    for (size_t k = 0; k < 3; ++k) {
      // A latent on its way may hold anything.
      pixel[k] = std::isfinite(rgb[k]) ? static_cast<uint8_t>(std::clamp(rgb[k], -1.0, 1.0) * 127.5 + 128.0) : 0;
    }
    const size_t top = at / size.width * Vae::kScale, left = at % size.width * Vae::kScale;
    for (size_t y = top; y < top + Vae::kScale; ++y) {
      for (size_t x = left; x < left + Vae::kScale; ++x) {
        std::copy(pixel.begin(), pixel.end(), &out.pixels[3 * (y * out.width + x)]);
      }
    }
  }
  return out;
}

}  // namespace ridge
