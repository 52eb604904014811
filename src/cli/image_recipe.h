// Everything that a picture was made from, as the text that its PNG carries under the key "ridge": one JSON object.
//
//   {"version": 1, "prompt": "…", "negative": "…", "width": 512, "height": 512, "steps": 28, "cfg": 4.0, "shift": 3.0,
//    "sampler": "euler", "seed": 42, "model": "…", "text_encoder": "…", "vae": "…", "tokenizer_qwen": "…",
//    "tokenizer_t5": "…",                                                         (files as they were named)
//    "init": "in.png", "strength": 0.6, "mask": "mask.png",          (only where drawn from a picture)
//    "loras": ["style.safetensors:0.8"],                                 (only with --lora)
//    "spectrum": "latent,warmup=4,…"}                          (only where steps were predicted: every setting)
//
// Not for: what does not change the picture (memory, threads, instructions).
//
//   std::string text = recipe_text(recipe);
//   ImageRecipe again = RIDGE_TRY(parse_recipe(text, "out.png"));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/image_bundle.h"
#include "engine/image_forecast.h"
#include "engine/image_sampler.h"

namespace ridge::cli {

inline constexpr double kUsualStrength = 0.6;
inline constexpr std::string_view kRecipeKey = "ridge";

struct ImageRecipe {
  std::string prompt, negative;
  uint32_t width = 0, height = 0, steps = 0;
  double cfg = 0, shift = 0;
  SamplerKind sampler = SamplerKind::euler;
  uint64_t seed = 0;
  ImageBundle parts;
  std::optional<std::string> init, mask;
  std::optional<double> strength;
  std::optional<std::vector<std::string>> loras;  // FILE:STRENGTH
  std::optional<ForecastOptions> spectrum;
};

std::string recipe_text(const ImageRecipe& recipe);
// Bad input that begins with `where`: no such object, a field missing or of the wrong kind, another version.
Result<ImageRecipe> parse_recipe(std::string_view text, std::string_view where);

}  // namespace ridge::cli
