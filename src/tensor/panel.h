// Panels: the layout that every kernel computes on. 16 rows are interleaved so that one 32-bit lane of a 512-bit
// register (two AVX2 registers, four NEON ones) holds one row, and no dot product ends in a horizontal sum.
//
// A panel covers 16 rows × all columns of a tensor; a tensor of R rows is ceil(R/16) consecutive panels, the missing
// rows of the last one being zeros. Quantised types are made of *tiles* of 32 columns: codes first, then scales; types
// with super-blocks of 256 columns have a header per super-block. The exact bytes of each type are in docs/panels.md.
// The panel rearranges, it never rounds: dequantised panel values are bit for bit those of the file layout.
//
// Not for: choosing kernels (kernels/), or where the bytes live (memory/).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/types.h"

namespace ridge {

inline constexpr size_t kPanelRows = 16;
inline constexpr uint32_t kPanelLayoutVersion = 1;  // stored in .ridge files; raise it when any layout changes

// Bytes of one panel of `cols` columns; a multiple of 64 for cols a multiple of 32 (float types: any cols).
size_t panel_bytes(Type type, size_t cols);
// Bytes of all panels of a tensor part with `rows` rows.
size_t panels_bytes(Type type, size_t rows, size_t cols);

struct PackArgs {
  Type type;
  const uint8_t* rows;  // file layout, first row
  size_t row_stride;    // bytes from one row to the next
  size_t row_count;     // 1 … 16; further rows become zeros
  size_t cols;          // multiple of the type's block; quantised types: of 32
  uint8_t* panel;       // panel_bytes(type, cols), 64-byte aligned
};

// Rearranges up to 16 rows into one panel. This is the reference; kernels/ offers the same bytes faster.
void pack_panel(const PackArgs& args);

// Values of one panel: out[c * 16 + r], for columns [col_begin, col_begin + col_count). Quantised types: both multiples
// of
// 32. Bit for bit what TypeInfo::dequantize gives for the file layout.
void dequantize_panel(Type type, const uint8_t* panel, size_t cols, size_t col_begin, size_t col_count, float* out);

// One row of a panel: out[cols].
void dequantize_panel_row(Type type, const uint8_t* panel, size_t cols, size_t row, float* out);

}  // namespace ridge
