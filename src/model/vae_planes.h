// What one run of the VAE, decoder or encoder, works with: planes of pixels in one workspace, and the layers that both
// halves have. Internal to the VAE.
//
// Not for: the order of the layers (vae_decode.h, vae_encode.h).
//
//   class VaeDecode : public VaePlanes { … };
//   VaeDecode run(half, size, bands, threads);      // sizes alone
//   uint64_t bytes = run.bytes();
//   RIDGE_TRY(run.decode(latent, machine, workspace, picture));
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/vae_half.h"

namespace ridge {

struct LatentSize {
  uint32_t height = 0, width = 0;
};

struct VaeMachine {
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* interrupted = nullptr;  // becomes true: the next layer is not begun
};

// Of Qwen-Image's and Wan 2.1's latents, by channel.
inline constexpr std::array<float, kVaeChannels> kVaeMean = {-0.7571f, -0.7089f, -0.9113f, 0.1075f,  -0.1745f, 0.9653f,
                                                             -0.1517f, 1.5508f,  0.4134f,  -0.0715f, 0.5517f,  -0.3632f,
                                                             -0.1922f, -0.9497f, 0.2503f,  -0.2921f};
inline constexpr std::array<float, kVaeChannels> kVaeDeviation = {2.8184f, 1.4541f, 2.3275f, 2.6558f, 1.2196f, 1.7708f,
                                                                  2.6052f, 2.0743f, 3.2687f, 2.1526f, 2.8652f, 1.5579f,
                                                                  1.6382f, 1.1253f, 2.8251f, 1.9160f};

// Lines [begin, end) of a picture of some height.
struct LineRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  LineRange grown(int64_t by, int64_t height) const {
    return {begin > by ? begin - by : 0, end + by < height ? end + by : height};
  }
};

class VaePlanes {
 public:
  uint64_t bytes() const { return total_ * sizeof(float); }

 protected:
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

  VaePlanes(const VaeHalf& half, LatentSize size, uint32_t bands, int threads)
      : half_(half), size_(size), bands_(bands), threads_(threads) {}
  ~VaePlanes() = default;

  // Sizes: everything that a run will hold is reserved, then laid out.
  void reserve(const Plane& plane);
  void reserve_conv(const Conv& conv, size_t width, bool doubles);
  void reserve_step(const VaeStep& step, size_t width, bool doubles);
  void reserve_middle(std::initializer_list<const Conv*> others);
  void lay_out();

  void start(const VaeMachine& machine, std::span<float> workspace);
  Result<void> go_on() const;  // io error where the run was stopped
  LineRange band_of(uint32_t band, int64_t height) const {
    return {height * band / bands_, height * (band + 1) / bands_};
  }

  // Of three planes one is x_: number 0. What is made of it goes to number 2, which turn() makes number 0.
  Plane plane(int which, LineRange lines, int64_t height, size_t width, size_t channels) const;
  void turn() { at_ = (at_ + 2) % 3; }
  Plane kept_plane() const;  // a fourth one, at the latent's size
  float* scratch(int worker) const { return base_ + scratch_ + static_cast<size_t>(worker) * scratch_floats_; }

  void normalise(const Plane& in, const std::vector<float>& gamma, const Plane& out, bool silu) const;
  static void clear_ends(const Plane& plane, int64_t y);
  const float* zeros() const { return base_ + zeros_; }  // a line
  std::array<const float*, 3> around(const Plane& in, int64_t y) const;
  void convolve(const Conv& conv, const Plane& in, const Plane& out) const;
  void residual(const VaeResidual& r, LineRange out);
  Result<void> middle();
  // The steps of the half; step i makes lines[i + 1], a change of size by `resample`.
  Result<void> run_steps(std::span<const LineRange> lines, FunctionRef<void(const Conv&, LineRange)> resample);

  const VaeHalf& half_;
  const LatentSize size_;
  const uint32_t bands_;
  VaeMachine machine_;
  Plane x_;

 private:
  void attention();

  const int threads_;
  // Floats, and where each part begins.
  size_t plane_floats_ = 0, zero_floats_ = 0, scratch_floats_ = 0, middle_floats_ = 0, attend_floats_ = 0;
  size_t middle_ = 0, planes_ = 0, zeros_ = 0, ones_ = 0, scratch_ = 0, attend_ = 0, total_ = 0;
  float* base_ = nullptr;
  int at_ = 0;
};

}  // namespace ridge
