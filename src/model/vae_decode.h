// One run of the VAE's decoder. Internal to the VAE.
//
//   VaeDecode run(half, size, bands, threads);                       // half: loaded, or sizes alone are of interest
//   RIDGE_TRY(run.decode(latent, machine, workspace, picture));      // workspace: run.bytes()
#pragma once

#include "model/vae_planes.h"

namespace ridge {

class VaeDecode : public VaePlanes {
 public:
  VaeDecode(const VaeHalf& half, LatentSize size, uint32_t bands, int threads);

  // latent: [16, height, width]; picture: [3, 8 height, 8 width]. Io error if it was stopped.
  Result<void> decode(std::span<const float> latent, const VaeMachine& machine, std::span<float> workspace,
                      std::span<float> picture);

 private:
  // Lines that each step reads for `picture`; the last entry is what the last convolution reads.
  std::vector<LineRange> needed(LineRange picture) const;
  Result<void> begin(std::span<const float> latent);
  void doubling(const Conv& conv, LineRange out);
  Result<void> band(LineRange picture, std::span<float> out);
  void finish(LineRange picture, std::span<float> out) const;
};

}  // namespace ridge
