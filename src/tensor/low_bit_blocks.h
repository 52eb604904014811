// The block structs of the types below three and a half bits: IQ1, IQ2, IQ3 (grids of codebooks.h with signs) and TQ
// (ternary). As in blocks.h, a block unfolds to unsigned codes and one exact scale per group; blocks.cpp has them in
// its tables, so nothing else needs this header.
//
// Signs of 8 weights: bit k set makes weight k negative. XXS and XS types store seven; the eighth makes their number
// even. A code of an IQ2 or IQ3 type is ±value + zero; of an IQ1 type 8 · (−1, 0, 1) ± 1 + 9: IQ1 adds an eighth to or
// takes it from every weight of a group (its delta), and the scale has the eighth. All products are exact in f32.
#pragma once

#include "tensor/blocks.h"

namespace ridge::blocks {

struct IQ2_XXS : Traits<Type::IQ2_XXS, 256, 32, 43, false> {
  struct Block {
    uint16_t d;
    struct {
      uint8_t grid[4];
      uint8_t signs_scale[4];  // u32: 4 × 7 bits of signs, 4 bits of scale
    } groups[8];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ2_XS : Traits<Type::IQ2_XS, 256, 16, 43, false> {
  struct Block {
    uint16_t d;
    uint16_t qs[32];    // 9 bits of grid, 7 of signs
    uint8_t scales[8];  // nibble g: the scale of group g
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ2_S : Traits<Type::IQ2_S, 256, 16, 43, false> {
  struct Block {
    uint16_t d;
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];  // 2 high bits of 4 grid indices
    uint8_t scales[8];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ3_XXS : Traits<Type::IQ3_XXS, 256, 32, 62, false> {
  struct Block {
    uint16_t d;
    uint8_t qs[64];
    uint8_t signs_scale[8][4];  // u32, as in IQ2_XXS
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ3_S : Traits<Type::IQ3_S, 256, 32, 15, false> {
  struct Block {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];  // bit v of byte t: the ninth bit of index 8 t + v
    uint8_t signs[32];
    uint8_t scales[4];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ1_S : Traits<Type::IQ1_S, 256, 32, 9, false> {
  struct Block {
    uint16_t d;
    uint8_t qs[32];
    uint16_t qh[8];  // 4 × 3 high bits of indices, 3 bits of scale, the sign of delta
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ1_M : Traits<Type::IQ1_M, 256, 16, 9, false> {
  struct Block {
    uint8_t qs[32];
    uint8_t qh[16];      // nibble of 8 weights: 3 high bits of the index, the sign of delta
    uint16_t scales[4];  // 4 × 3 bits of scale; the top nibbles together are the f16 d
  };
  static void decode(const Block& block, DecodedBlock& out);
};
// Five ternary digits to a byte: digit n of byte b is the top of (b · 3^n mod 256) · 3.
struct TQ1_0 : Traits<Type::TQ1_0, 256, 32, 1, false> {
  struct Block {
    uint8_t qs[48];  // 32 bytes: columns 32 n + b for n = 0 … 4; 16 bytes: columns 160 + 16 n + b
    uint8_t qh[4];   // columns 240 + 4 n + b for n = 0 … 3
    uint16_t d;
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct TQ2_0 : Traits<Type::TQ2_0, 256, 32, 1, false> {
  struct Block {
    uint8_t qs[64];  // as in Q2_K
    uint16_t d;
  };
  static void decode(const Block& block, DecodedBlock& out);
};

static_assert(sizeof(IQ2_XXS::Block) == 66 && sizeof(IQ2_XS::Block) == 74 && sizeof(IQ2_S::Block) == 82);
static_assert(sizeof(IQ3_XXS::Block) == 98 && sizeof(IQ3_S::Block) == 110);
static_assert(sizeof(IQ1_S::Block) == 50 && sizeof(IQ1_M::Block) == 56);
static_assert(sizeof(TQ1_0::Block) == 54 && sizeof(TQ2_0::Block) == 66);

}  // namespace ridge::blocks
