// For the message about an architecture that Ridge does not run: the one it does run that comes closest.
//
// Not for: choosing anything. A file of another architecture is refused, never run as something else.
//
//   closest_architecture("qwen35", file);   // "qwen3"
#pragma once

#include <string_view>

#include "format/gguf.h"

namespace ridge {

// By the longest common beginning of the names, then by known families, then by what the file's tensors show; empty
// for what is no decoder at all (encoders, state-space models).
std::string_view closest_architecture(std::string_view name, const Gguf& file);

}  // namespace ridge
