// The decoder of the VAE of Wan 2.1 and Qwen-Image for one picture: a latent becomes pixels (docs/image.md, "VAE").
//
// Of one frame, causal 3-D convolutions are 2-D ones with the last tap. Convolutions read their input where it lies
// (no im2col), and after the first layers, whose attention sees everything, the picture is made in bands of lines. A
// band computes the lines that its convolutions read beyond it again, so any number of bands gives the same bytes, and
// there are no seams.
//
//   Vae vae = RIDGE_TRY(Vae::open("vae.safetensors"));
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
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "format/safetensors.h"
#include "kernels/kernels.h"
#include "memory/slab.h"
#include "model/conv.h"

namespace ridge {

struct LatentSize {
  uint32_t height = 0, width = 0;
};

struct VaeMachine {
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
};

class Vae {
 public:
  static constexpr uint32_t kScale = 8;  // pixels of a side per one of the latent

  // Reads the header: bad input names the tensor that is missing or has another shape.
  static Result<Vae> open(const std::string& path);

  uint32_t latent_channels() const { return decoder_.after_quant.inputs; }
  // What load() takes at most, the tensor at work included.
  uint64_t weight_bytes() const;
  // What decode() takes, weights and picture aside.
  uint64_t workspace_bytes(LatentSize size, uint32_t bands, int threads) const;
  static uint32_t most_bands(LatentSize size);
  // The fewest bands whose workspace has at most so many bytes; nothing if none does.
  std::optional<uint32_t> bands_within(uint64_t bytes, LatentSize size, int threads) const;

  Result<void> load(const Kernels& kernels);
  // latent: [latent_channels, height, width], as the transformer leaves it; picture: [3, 8 height, 8 width].
  Result<void> decode(std::span<const float> latent, LatentSize size, uint32_t bands, const VaeMachine& machine,
                      std::span<float> picture) const;

 private:
  struct Residual {
    std::string name;
    Conv conv_1, conv_2;
    std::optional<Conv> shortcut;  // where the number of channels changes
    std::vector<float> norm_1 = {}, norm_2 = {};
    uint32_t inputs() const { return conv_1.inputs; }
    uint32_t outputs() const { return conv_2.outputs; }
  };
  // After the middle: residual blocks, and doublings of both sides (nearest neighbours, then 3 × 3).
  struct Step {
    std::optional<Residual> residual;  // or:
    std::optional<Conv> doubling;
    uint32_t inputs() const { return residual ? residual->inputs() : doubling->inputs; }
    uint32_t outputs() const { return residual ? residual->outputs() : doubling->outputs; }
  };
  struct Decoder {
    Conv after_quant, first, to_qkv, projection, last;
    Residual middle_1, middle_2;
    std::vector<Step> steps;
    std::vector<float> attention_norm = {}, last_norm = {};
  };
  friend class VaeRun;

  Vae(Safetensors file, Decoder decoder) : file_(std::move(file)), decoder_(std::move(decoder)) {}
  static Result<Decoder> describe(const Safetensors& file);
  static Result<Residual> describe_residual(const Safetensors& file, const std::string& name, uint32_t inputs);
  template <class D, class F>
  static void for_each_conv(D& decoder, const F& f);
  template <class F>
  void for_each_norm(const F& f);

  Safetensors file_;
  Decoder decoder_;
};

}  // namespace ridge
