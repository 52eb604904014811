// The weight files of an image model, safetensors or GGUF, as directories of tensors under one set of names: what
// ModelBuilder, Program, planner and weight sources take.
//
// Not for: reading weights (memory/), or formats' headers (format/).
//
//   Gguf encoder = RIDGE_TRY(open_text_encoder("qwen3.safetensors"));     // names and keys as in a GGUF of qwen3
//   Gguf dit = RIDGE_TRY(open_diffusion("anima.gguf"));                   // "blocks.0.self_attn.q_proj.weight"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/gguf.h"
#include "format/safetensors.h"

namespace ridge {

// The tensors of a safetensors file as a GGUF directory, names as they are. Bad input for a type that cannot be
// computed with; tensors of no elements, and what tools leave beside the weights, are left out.
Result<Gguf> as_gguf(const Safetensors& file);

// A diffusion transformer with its text adapter: prefixes ("net.", "model.diffusion_model.", …) are dropped, what no
// forward pass reads ("pos_embedder.", "…_extra_state") is left out.
Result<Gguf> open_diffusion(const std::string& path);

// A Qwen3 of any size: a GGUF file as it is; of a safetensors file the configuration is read from the shapes, and the
// head is left out.
Result<Gguf> open_text_encoder(const std::string& path);

// How many layers a file has by the names of one tensor each, before + number + after: one more than the highest
// number, so that a gap is a tensor that is missing, not a smaller model. 4096 at most.
uint32_t layers_named(const Gguf& file, std::string_view before, std::string_view after);

}  // namespace ridge
