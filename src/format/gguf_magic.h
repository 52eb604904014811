// What a file is that is not GGUF, told from its first bytes: people hand us checkpoints, pages and pointers.
//
//   return bad_input(fmt::format("{}: is not a GGUF file: {}", name, describe_foreign_file(first_bytes)));
//
// Not a validator: a file that begins like a zip archive is called one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ridge {

// "it is a PyTorch checkpoint (a zip archive); convert it to GGUF first". `first` is the beginning, 16 bytes or fewer.
std::string describe_foreign_file(std::span<const uint8_t> first);

}  // namespace ridge
