// The parts of an image model, and a folder with all of them under the names that they usually have.
//
//   ImageBundle b = RIDGE_TRY(find_bundle("demo/anima-mini"));      // b.model, b.text_encoder, b.vae, …
#pragma once

#include <string>

#include "base/result.h"

namespace ridge {

struct ImageBundle {
  std::string model, text_encoder, vae;      // .safetensors, .safetensors.index.json or .gguf; a model's pack, .ridge
  std::string tokenizer_qwen, tokenizer_t5;  // tokenizer.json, spiece.model; empty where there is none

  // Where a part is not named, that of the others.
  void fill_from(const ImageBundle& others);
};

// Looks into the folder and its diffusion_models/, text_encoders/ and vae/. The model's name begins with "anima", the
// encoder's with "qwen", and that of the VAE has "vae" in it; a pack takes the place of the file of its name. Bad input
// where a part of weights is missing or there is more than one.
Result<ImageBundle> find_bundle(const std::string& folder);

}  // namespace ridge
