// One run of the VAE's decoder: planes of pixels in one workspace, the layers over bands of lines. Internal to the VAE.
//
//   VaeRun run(vae, size, bands, machine, slab);
//   run.decode(latent, picture);
//   uint64_t bytes = VaeRun(vae, size, bands, threads).bytes();        // without a slab: sizes alone
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/vae.h"

namespace ridge {

// Lines [begin, end) of a picture of some height.
struct LineRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  LineRange grown(int64_t by, int64_t height) const {
    return {begin > by ? begin - by : 0, end + by < height ? end + by : height};
  }
};

class VaeRun {
 public:
  VaeRun(const Vae& vae, LatentSize size, uint32_t bands, int threads);

  uint64_t bytes() const { return total_ * sizeof(float); }
  void decode(std::span<const float> latent, const VaeMachine& machine, std::span<float> workspace,
              std::span<float> picture);

 private:
  // Lines of a picture, each [width + 2, channels] with a pixel more at both ends.
  struct Plane {
    float* data = nullptr;
    LineRange lines;
    int64_t height = 0;  // of the whole picture
    size_t width = 0, channels = 0;
    size_t line_floats() const { return (width + 2) * channels; }
    float* line(int64_t y) const { return data + static_cast<size_t>(y - lines.begin) * line_floats(); }
    float* pixels(int64_t y) const { return line(y) + channels; }
  };

  void reserve(const Plane& plane);
  void reserve_conv(const Conv& conv, size_t width, bool doubles);
  void measure();
  // Lines that step `step` reads for `picture`; the last entry is what the last convolution reads.
  std::vector<LineRange> needed(LineRange picture) const;

  Plane plane(int which, LineRange lines, int64_t height, size_t width, size_t channels) const;
  void normalise(const Plane& in, const std::vector<float>& gamma, const Plane& out, bool silu) const;
  std::array<const float*, 3> around(const Plane& in, int64_t y) const;
  void convolve(const Conv& conv, const Plane& in, const Plane& out) const;
  void residual(const Vae::Residual& r, LineRange out);
  void doubling(const Conv& conv, LineRange out);
  void begin(std::span<const float> latent);
  void attention();
  void band(LineRange picture, std::span<float> out);
  void finish(LineRange picture, std::span<float> out) const;
  float* scratch(int worker) const { return base_ + scratch_ + static_cast<size_t>(worker) * scratch_floats_; }

  const Vae::Decoder& d_;
  LatentSize size_;
  uint32_t bands_;
  int threads_;
  // Floats, and where each part begins.
  size_t plane_floats_ = 0, zero_floats_ = 0, scratch_floats_ = 0, middle_floats_ = 0, attend_floats_ = 0;
  size_t middle_ = 0, planes_ = 0, zeros_ = 0, ones_ = 0, scratch_ = 0, attend_ = 0, total_ = 0;

  VaeMachine machine_;
  float* base_ = nullptr;
  int at_ = 0;  // which of the three planes is x; the next is the convolutions' input, the one after their output
  Plane x_;
};

}  // namespace ridge
