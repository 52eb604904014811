// The VAE of Wan 2.1 and Qwen-Image for one picture: its decoder makes pixels of a latent, its encoder a latent of
// pixels (docs/image.md, "VAE").
//
// Of one frame, causal 3-D convolutions are 2-D ones with the last tap. Convolutions read their input where it lies
// (no im2col), and all layers but those at the latent's size, whose attention sees everything, are run in bands of
// lines. A band computes the lines that its convolutions read beyond it again, so any number of bands gives the same
// bytes, and there are no seams.
//
//   Vae vae = RIDGE_TRY(Vae::open("vae.safetensors", VaeSide::decoder));
//   uint32_t bands = vae.bands_within(bytes, {64, 64}, threads).value();
//   RIDGE_TRY(vae.load(kernels));
//   RIDGE_TRY(vae.decode(latent, {64, 64}, bands, {&kernels, &pool}, picture));      // [3, 512, 512], −1 … 1
//
// One thread uses a Vae at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "format/image.h"
#include "format/safetensors.h"
#include "model/vae_half.h"
#include "model/vae_planes.h"

namespace ridge {

class Vae {
 public:
  static constexpr uint32_t kScale = kVaeScale;

  // Reads the header: bad input names the tensor that is missing or has another shape.
  static Result<Vae> open(const std::string& path, VaeSide side);

  // What load() takes at most, the tensor at work included.
  uint64_t weight_bytes() const { return half_.weight_bytes(file_); }
  // What decode() or encode() takes, weights and picture aside.
  uint64_t workspace_bytes(LatentSize size, uint32_t bands, int threads) const;
  static uint32_t most_bands(LatentSize size);
  // The fewest bands whose workspace has at most so many bytes; nothing if none does.
  std::optional<uint32_t> bands_within(uint64_t bytes, LatentSize size, int threads) const;

  Result<void> load(const Kernels& kernels) { return half_.load(file_, kernels); }
  // Of a decoder. latent: [16, height, width], as the transformer leaves it; picture: [3, 8 height, 8 width].
  // Io error if it was stopped.
  Result<void> decode(std::span<const float> latent, LatentSize size, uint32_t bands, const VaeMachine& machine,
                      std::span<float> picture) const;
  // Of an encoder. picture: RGB, 8 height × 8 width pixels; latent: the mean of what it may be, in the transformer's
  // scale: unit deviation. Io error if it was stopped.
  Result<void> encode(const Image& picture, LatentSize size, uint32_t bands, const VaeMachine& machine,
                      std::span<float> latent) const;

 private:
  Vae(Safetensors file, VaeHalf half, VaeSide side) : file_(std::move(file)), half_(std::move(half)), side_(side) {}

  Safetensors file_;
  VaeHalf half_;
  VaeSide side_;
};

}  // namespace ridge
