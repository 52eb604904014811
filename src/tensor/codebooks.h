// The codebooks of the IQ1, IQ2 and IQ3 types: a block of these types stores indices into them, and an entry is the
// codes of 8 or 4 neighbouring weights. The tables are those of the `gguf` Python package (MIT licence,
// LICENSES/MIT-gguf.txt); scripts/make_codebooks.py writes codebooks.cpp.
//
// An entry of 8 codes: code i < 4 is the low nibble of byte i, code i + 4 the high one; so the codes of two quads of
// columns are one mask and one shift away. Codes are 0, 1, 2; bit 2 of every nibble is free for a sign. An entry of 4
// codes: byte i is code i, 0 … 7; bit 3 is free for a sign. Every index that a file can hold lies inside of its table:
// the tables have 2^8 to 2^11 entries, as many as the bits of an index can say.
//
//   uint32_t entry = kIq2XxsGrid[index];                        // index < 256
//   int third = kIq2Values[(entry >> 16) & 15];                 // 8, 25 or 43
//
// Not for: anything but data; the files of every ISA include it.
#pragma once

#include <stdint.h>

namespace ridge {

extern const uint32_t kIq2XxsGrid[256];  // 8 codes
extern const uint32_t kIq2XsGrid[512];   // 8 codes
extern const uint32_t kIq2SGrid[1024];   // 8 codes
extern const uint32_t kIq1Grid[2048];    // 8 codes: weights −1, 0, 1; IQ1_S and IQ1_M
extern const uint32_t kIq3XxsGrid[256];  // 4 codes
extern const uint32_t kIq3SGrid[512];    // 4 codes

// What codes mean, before the sign.
inline constexpr uint8_t kIq2Values[3] = {8, 25, 43};
inline constexpr uint8_t kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr uint8_t kIq3SValues[8] = {1, 3, 5, 7, 9, 11, 13, 15};

}  // namespace ridge
