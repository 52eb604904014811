// A cheap look at a latent: the colours that a linear map of its channels gives, one per pixel of the latent.
//
//   RGB = bias + Σ factor[c] · latent[c]
//
// The map is fitted to the VAE in use, so that it needs no published numbers and fits whatever weights are given: four
// latents of 16 × 16 in 4 × 4 patches, each patch one Gaussian draw of all channels (image_noise.h, seeds 0 to 3), are
// decoded, and the mean colour of each patch's inner half is explained by its channels, by least squares.
//
//   LatentColours colours = RIDGE_TRY(fit_latent_colours(decode));
//   Image picture = preview_of(colours, denoised, {64, 64});       // 512 × 512, each colour on 8 × 8 pixels
//
// Not for: pictures. It shows where things are and of what colour, long before the last step.
#pragma once

#include <array>
#include <span>

#include "base/function_ref.h"
#include "base/result.h"
#include "format/image.h"
#include "model/vae.h"

namespace ridge {

inline constexpr size_t kPreviewChannels = 16;
inline constexpr LatentSize kPreviewProbe = {16, 16};  // what is decoded, four times

struct LatentColours {
  std::array<std::array<double, 3>, kPreviewChannels + 1> factors{};  // the last is the bias; colours from −1 to 1
};

// latent: [16, 16, 16] of kPreviewProbe; picture: [3, 128, 128], −1 … 1, to be written.
using DecodeFunction = FunctionRef<Result<void>(std::span<const float> latent, std::span<float> picture)>;
// Errors of `decode`; bad input where its colours are no numbers.
Result<LatentColours> fit_latent_colours(DecodeFunction decode);
// latent: [16, height, width]. RGB, 8 height × 8 width pixels.
Image preview_of(const LatentColours& colours, std::span<const float> latent, LatentSize size);

}  // namespace ridge
