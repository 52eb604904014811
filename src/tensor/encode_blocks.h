// Codes and scales into the bytes of quantised blocks: the inverse of the decode() of blocks.h.
//
// Not for: choosing codes and scales (quantize.h).
//
//   RawBlock raw;                                   // filled in
//   encode_block(Type::Q4_K, raw, bytes);           // 144 bytes
#pragma once

#include <cstdint>

#include "tensor/blocks.h"
#include "tensor/types.h"

namespace ridge {

// What the format stores, before bits are packed: value = d · scale[g] · (code − zero) − dmin · min[g], with zero,
// groups and widths of the type (blocks.h). Types of 32 have one group with scale 1; their minimum is −1 · dmin, so
// that value = d · code + dmin.
struct RawBlock {
  uint16_t d = 0, dmin = 0;  // f16
  uint8_t code[kMaxBlock];
  int16_t scale[kMaxBlock / 16];
  int16_t min[kMaxBlock / 16];
};

// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K: block_info(type)->bytes bytes. Codes and scales are
// within the type's widths.
void encode_block(Type type, const RawBlock& raw, uint8_t* out);

}  // namespace ridge
