// How far a picture is from a reference, in figures that need no learned weights (facts: diffusion 4.4).
//
// Not for: judging a picture alone, or two pictures of different seeds: these figures compare pixel with pixel.
//
//   ImageQuality q = RIDGE_TRY(compare_images(reference, picture));
//   if (q.psnr_db < 27) …
#pragma once

#include <cstdint>

#include "base/result.h"
#include "format/image.h"

namespace ridge {

struct ImageQuality {
  uint32_t width = 0, height = 0;
  uint32_t largest_difference = 0;  // of a channel, 0 … 255
  double within_one = 0;            // share of pixels whose channels differ by at most one
  double psnr_db = 0;               // over the three channels; infinite for equal pictures
  double ssim = 0, ms_ssim = 0;     // of the luma; 1: equal
  int ms_ssim_scales = 0;
  double gmsd = 0;                           // of the luma; 0: equal
  double delta_e_mean = 0, delta_e_p95 = 0;  // CIEDE2000; the 95th percentile by nearest rank
  // Picture minus reference, in shares of the full scale: of the mean luma, of the standard deviation of the luma, of
  // the mean of max(R, G, B) − min(R, G, B).
  double brightness_shift = 0, contrast_shift = 0, saturation_shift = 0;
  double high_frequency_ratio = 1;  // energy of the Laplacian, picture over reference; infinite over a flat reference
};

// Bad input if the sizes differ or a side has fewer than 11 pixels (the window of SSIM). Takes about 40 bytes a pixel.
Result<ImageQuality> compare_images(const Image& reference, const Image& picture);

}  // namespace ridge
