// The layers of one half of the VAE of Wan 2.1 and Qwen-Image, decoder or encoder, as its file describes them. Both
// have the same ones in opposite order: quant, first, middle, steps, last; and first, steps, middle, last, quant.
//
// Not for: running them (vae_planes.h and what is built on it).
//
//   VaeHalf half = RIDGE_TRY(VaeHalf::describe(file, VaeSide::decoder));     // shapes are checked, nothing is read
//   uint64_t bytes = half.weight_bytes(file);
//   RIDGE_TRY(half.load(file, kernels));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/safetensors.h"
#include "kernels/kernels.h"
#include "model/conv.h"

namespace ridge {

enum class VaeSide : uint8_t { decoder, encoder };

inline constexpr uint32_t kVaeScale = 8;      // pixels of a side per one of the latent
inline constexpr uint32_t kVaeChannels = 16;  // of a latent

// x becomes shortcut(x) + conv_2(SiLU(norm(conv_1(SiLU(norm(x)))))).
struct VaeResidual {
  std::string name;
  Conv conv_1, conv_2;
  std::optional<Conv> shortcut;  // where the number of channels changes
  std::vector<float> norm_1 = {}, norm_2 = {};
  uint32_t inputs() const { return conv_1.inputs; }
  uint32_t outputs() const { return conv_2.outputs; }
};

// Two residual blocks with attention of all pixels between them, at the size of the latent.
struct VaeMiddle {
  VaeResidual first, second;
  Conv to_qkv, projection;
  std::string norm_name;
  std::vector<float> norm = {};
};

// A residual block; or a convolution that changes the size: 3 × 3 after each pixel was made four (decoder), or 3 × 3 at
// every other pixel of every other line (encoder).
struct VaeStep {
  std::optional<VaeResidual> residual;
  std::optional<Conv> resample;
  uint32_t inputs() const { return residual ? residual->inputs() : resample->inputs; }
  uint32_t outputs() const { return residual ? residual->outputs() : resample->outputs; }
};

struct VaeHalf {
  Conv quant, first, last;
  VaeMiddle middle;
  std::vector<VaeStep> steps;
  std::string last_norm_name;
  std::vector<float> last_norm = {};

  // Bad input names the tensor that is missing or has another shape; of an encoder, that the file holds none.
  static Result<VaeHalf> describe(const Safetensors& file, VaeSide side);
  // What load() takes at most, the tensor at work included.
  uint64_t weight_bytes(const Safetensors& file) const;
  Result<void> load(const Safetensors& file, const Kernels& kernels);
  bool loaded() const { return !last_norm.empty(); }
};

}  // namespace ridge
