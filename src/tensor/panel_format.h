// The panel layouts as data: which bytes of a file block go where. docs/panels.md has the same in words and pictures.
//
// A panel is a row of *units*. A unit covers `unit_blocks` file blocks of all 16 rows: a header, then `block_bytes` per
// block; the last unit of a panel may hold fewer blocks, and the panel ends at the next multiple of 64 bytes. Inside a
// unit every *part* is the transposition of a run of equal-sized values of the file block: value 0 of the 16 rows,
// value 1 of the 16 rows, … Nothing is recomputed, so a panel is as large as the file (Q3_K and Q6_K: + 1.8 and 1.0 %).
//
// Not for: fast packing (kernels/ has it); this is what the fast packers are checked against.
//
//   const PanelFormat& f = panel_format(Type::Q4_0);
//   uint8_t block[18];
//   gather_block(f, panel, 3, 7, block);       // the 4th block of row 7, as it was in the file
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/panel.h"

namespace ridge {

enum class Rearranged : uint8_t {
  no,
  sign_flipped,  // bytes ^ 0x80: int8 codes become unsigned ones, zero at 128
  bit_planes,    // 32 bits: bit 4 v + i goes to bit 8 i + v, so that byte i holds the fifth bits of columns 4 v + i
  sign_planes,   // 4 × 7 signs and 4 other bits; every 7 gain a bit, other bit j for group j, then as bit_planes: the
                 // signs lie as Q5_0's fifth bits do, and the other bits where the eighth signs belong (byte 3's odd
                 // bits)
  low_words_and_planes,  // 8 bytes: the low word as it is, the high one as sign_planes
  indices_and_planes,    // 8 bytes, 4 × 16 bits of 9 + 7: low bytes of the indices; the signs as sign_planes, the
                         // indices' high bits being the other bits
};

struct PanelPart {
  uint32_t width;         // bytes of a value: 1, 2, 4, or 8 (two words that become two vectors)
  uint32_t file_offset;   // in the file block
  uint32_t count;         // values
  uint32_t panel_offset;  // in the unit; value i of row r of block b: + b · block_stride + (16 i + r) · width
  uint32_t block_stride;
  Rearranged rearranged = Rearranged::no;
};

struct PanelFormat {
  Type type;
  uint32_t unit_blocks;
  uint32_t header_bytes;
  uint32_t block_bytes;
  std::span<const PanelPart> parts;

  size_t unit_bytes() const { return header_bytes + size_t{unit_blocks} * block_bytes; }
};

inline constexpr size_t kMaxBlockBytes = 256;  // of a file block

const PanelFormat& panel_format(Type type);

// The bytes of one block of one row of a panel, as they were in the file.
void gather_block(const PanelFormat& format, const uint8_t* panel, size_t block_index, size_t row, uint8_t* block);

}  // namespace ridge
