// One run of the VAE's encoder. Internal to the VAE.
//
//   VaeEncode run(half, size, bands, threads);                       // half: loaded, or sizes alone are of interest
//   RIDGE_TRY(run.encode(picture, machine, workspace, latent));      // workspace: run.bytes()
#pragma once

#include "format/image.h"
#include "model/vae_planes.h"

namespace ridge {

class VaeEncode : public VaePlanes {
 public:
  VaeEncode(const VaeHalf& half, LatentSize size, uint32_t bands, int threads);

  // picture: RGB, 8 height × 8 width; latent: [16, height, width]. Io error if it was stopped.
  Result<void> encode(const Image& picture, const VaeMachine& machine, std::span<float> workspace,
                      std::span<float> latent);

 private:
  // Lines that each step reads for these of the latent; the first entry is what the first convolution gives.
  std::vector<LineRange> needed(LineRange latent) const;
  void begin(const Image& picture, LineRange lines);
  void halving(const Conv& conv, LineRange out);
  Result<void> band(const Image& picture, LineRange latent);
  void finish(std::span<float> latent);
};

}  // namespace ridge
