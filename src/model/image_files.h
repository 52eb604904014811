// The weight files of an image model, safetensors, GGUF or packs, as directories of tensors under one set of names:
// what ModelBuilder, Program, planner and weight sources take.
//
// Not for: reading weights (memory/), or formats' headers (format/).
//
//   auto encoder = RIDGE_TRY(open_text_encoder("qwen3.safetensors"));     // as of a GGUF of qwen3
//   ModelFile dit = RIDGE_TRY(open_diffusion("anima.gguf"));              // "blocks.0.self_attn.q_proj.weight"
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/gguf.h"
#include "model/model.h"
#include "model/model_file.h"

namespace ridge {

// A diffusion transformer with its text adapter: prefixes ("net.", "model.diffusion_model.", …) are dropped, what no
// forward pass reads ("pos_embedder.", "…_extra_state") is left out.
Result<ModelFile> open_diffusion(const std::string& path);
// A file of weights under the names it has: safetensors (also in parts), or what open_model_file() takes.
Result<ModelFile> open_weights(const std::string& path);
// Whether they are a diffusion transformer's: they have the matrix that takes patches in.
bool holds_diffusion(const Gguf& file);

// A Qwen3 of any size: GGUF or a pack as it is; of a safetensors file the configuration is read from the shapes, and
// the head is left out.
Result<std::unique_ptr<Model>> open_text_encoder(const std::string& path);

// How many layers a file has by the names of one tensor each, before + number + after: one more than the highest
// number, so that a gap is a tensor that is missing, not a smaller model. 4096 at most.
uint32_t layers_named(const Gguf& file, std::string_view before, std::string_view after);

}  // namespace ridge
