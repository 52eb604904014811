// Floats into the simplest types of weight files, row by row, as the formats' reference quantisers do: for models made
// on the fly to be measured.
//
// Not for: good quality at few bits (that searches scales), or activations (kernels quantise those by their own rules).
//
//   if (can_quantize(Type::Q4_0)) quantize_row(Type::Q4_0, row, 64, blocks);      // 2 blocks of 18 bytes
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/types.h"

namespace ridge {

// F32, F16, BF16, Q8_0 and Q4_0.
bool can_quantize(Type type);

// `count` floats (a multiple of the type's block) into row_bytes(type, count) bytes. Q8_0: d = max |x| / 127, codes
// round(x / d). Q4_0: d = m / −8 for the value m of largest magnitude, codes min(15, ⌊x / d + 8.5⌋).
void quantize_row(Type type, const float* values, size_t count, uint8_t* out);

}  // namespace ridge
