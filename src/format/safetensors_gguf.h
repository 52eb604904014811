// A safetensors file as a GGUF directory: the same tensors under the same names, their rows as GGUF counts them (the
// row length first). What reads models by their GGUF directory, the pack format among it, reads those of safetensors
// so.
//
//   Gguf directory = RIDGE_TRY(as_gguf(RIDGE_TRY(Safetensors::open("anima.safetensors"))));
#pragma once

#include <string_view>

#include "base/result.h"
#include "format/gguf.h"
#include "format/safetensors.h"

namespace ridge {

// What tools leave beside the weights and no forward pass reads ("pos_embedder.", "…_extra_state").
bool is_no_weight(std::string_view name);

// Names as they are; no metadata but `where`. Tensors of no elements and what is no weight are left out. Bad input for
// a type that cannot be computed with.
Result<Gguf> as_gguf(const Safetensors& file);

}  // namespace ridge
