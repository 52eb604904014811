// The quantised blocks of GGUF files: one struct per type with the bytes of a block and what they mean.
//
// Every quantised block says: value = float(code - kZero) * scale[group] + min[group], with an unsigned 8-bit code per
// element and one scale (and minimum, where kHasMin) per group of kGroup elements. Scales and minima are exact in f32
// (products of at most 24 significant bits), so is code · scale; only the addition of a minimum rounds.
// Table types (IQ4_NL, IQ4_XS, MXFP4) have their table looked up in the code: code = table[nibble] + kZero.
//
// Not for: the layout that kernels compute on (panel.h).
//
//   blocks::Q4_K::Block block;               // memcpy'd: rows in a file have no alignment
//   DecodedBlock values;
//   blocks::Q4_K::decode(block, values);
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/types.h"

namespace ridge {

inline constexpr size_t kMaxBlock = 256;

// One block, unfolded. Entries beyond the block's size are untouched; `min` is untouched where there is none.
struct DecodedBlock {
  uint8_t code[kMaxBlock];
  float scale[kMaxBlock / 16];
  float min[kMaxBlock / 16];
};

namespace blocks {

inline constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr int8_t kMxfp4DoubledTable[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// What all formats have: elements of a block, elements of a group, the code that means zero, whether there is a
// minimum.
template <Type type, size_t block, size_t group, int zero, bool has_min>
struct Traits {
  static constexpr Type kType = type;
  static constexpr size_t kBlock = block;
  static constexpr size_t kGroup = group;
  static constexpr int kZero = zero;
  static constexpr bool kHasMin = has_min;
};

// Blocks of 32. Nibble types: byte j holds element j in its low nibble and element j + 16 in its high one.
struct Q4_0 : Traits<Type::Q4_0, 32, 32, 8, false> {
  struct Block {
    uint16_t d;  // f16
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q4_1 : Traits<Type::Q4_1, 32, 32, 0, true> {
  struct Block {
    uint16_t d, m;
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q5_0 : Traits<Type::Q5_0, 32, 32, 16, false> {
  struct Block {
    uint16_t d;
    uint8_t qh[4];  // bit j: the fifth bit of element j
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q5_1 : Traits<Type::Q5_1, 32, 32, 0, true> {
  struct Block {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q8_0 : Traits<Type::Q8_0, 32, 32, 128, false> {
  struct Block {
    uint16_t d;
    int8_t qs[32];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ4_NL : Traits<Type::IQ4_NL, 32, 32, 128, false> {
  struct Block {
    uint16_t d;
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
// Values are half the doubled table; the half is in the scale: 2^(e - 128), subnormal in f32 for e < 2.
struct MXFP4 : Traits<Type::MXFP4, 32, 32, 12, false> {
  struct Block {
    uint8_t e;
    uint8_t qs[16];
  };
  static void decode(const Block& block, DecodedBlock& out);
};

// Blocks of 256, with integer scales per group below the f16 ones.
struct Q2_K : Traits<Type::Q2_K, 256, 16, 0, true> {
  struct Block {
    uint8_t scales[16];  // low nibble: scale; high nibble: minimum
    uint8_t qs[64];
    uint16_t d, dmin;
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q3_K : Traits<Type::Q3_K, 256, 16, 4, false> {
  struct Block {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];  // 16 × 6 bits
    uint16_t d;
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q4_K : Traits<Type::Q4_K, 256, 32, 0, true> {
  struct Block {
    uint16_t d, dmin;
    uint8_t scales[12];  // 8 scales and 8 minima of 6 bits
    uint8_t qs[128];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q5_K : Traits<Type::Q5_K, 256, 32, 0, true> {
  struct Block {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];  // bit g: the fifth bit of group g
    uint8_t qs[128];
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct Q6_K : Traits<Type::Q6_K, 256, 16, 32, false> {
  struct Block {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
  };
  static void decode(const Block& block, DecodedBlock& out);
};
struct IQ4_XS : Traits<Type::IQ4_XS, 256, 32, 128, false> {
  struct Block {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
  };
  static void decode(const Block& block, DecodedBlock& out);
};

static_assert(sizeof(Q4_0::Block) == 18 && sizeof(Q4_1::Block) == 20 && sizeof(Q5_0::Block) == 22);
static_assert(sizeof(Q5_1::Block) == 24 && sizeof(Q8_0::Block) == 34 && sizeof(IQ4_NL::Block) == 18);
static_assert(sizeof(MXFP4::Block) == 17 && sizeof(Q2_K::Block) == 84 && sizeof(Q3_K::Block) == 110);
static_assert(sizeof(Q4_K::Block) == 144 && sizeof(Q5_K::Block) == 176 && sizeof(Q6_K::Block) == 210);
static_assert(sizeof(IQ4_XS::Block) == 136);

}  // namespace blocks

// What kernels and tests need to know of a quantised type without its struct.
struct BlockInfo {
  uint32_t block, bytes, group;
  int zero;
  bool has_min;
  void (*decode)(const uint8_t* block, DecodedBlock& out);  // no alignment needed
};
// nullptr for float types.
const BlockInfo* block_info(Type type);

// `count` elements of file layout to float, by type: the functions behind TypeInfo::dequantize.
template <class Format>
void dequantize_blocks(const uint8_t* blocks, float* out, size_t count);
void dequantize_f32(const uint8_t* blocks, float* out, size_t count);
void dequantize_f16(const uint8_t* blocks, float* out, size_t count);
void dequantize_bf16(const uint8_t* blocks, float* out, size_t count);

}  // namespace ridge
