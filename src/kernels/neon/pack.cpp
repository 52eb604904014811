// Rows of the file into panels as transpositions of 4 × 4 words, driven by the same table as the reference
// (tensor/panel_format.h): one function serves every type with words, and a new one needs only its row here. The last
// panel of a tensor may lack rows; the reference packs that one. Tests compare with pack_panel().

#include "kernels/entries.h"
#include "kernels/neon/vec.h"
#include "tensor/panel_format.h"

namespace ridge::neon {
namespace {

// Where the 16 rows' current block, or a part of it, begins.
struct Rows {
  const uint8_t* p;
  size_t stride;
  const uint8_t* row(size_t r) const { return p + r * stride; }
};

// ---- What happens to words on the way -------------------------------------------------------------------------------

struct AsIs {
  static RIDGE_INLINE uint32x4_t apply(uint32x4_t v) { return v; }
};

// int8 codes to unsigned ones with zero at 128.
struct SignFlipped {
  static RIDGE_INLINE uint32x4_t apply(uint32x4_t v) { return v ^ vdupq_n_u32(0x80808080u); }
};

// Bit 4 v + i of a word goes to bit 8 i + v: the five index bits turn by two places, which is four exchanges of two of
// them, each a swap of bits that lie `shift` apart.
struct BitPlanes {
  template <int shift>
  static RIDGE_INLINE uint32x4_t swap(uint32x4_t v, uint32_t mask) {
    const uint32x4_t moved = (vshrq_n_u32(v, shift) ^ v) & vdupq_n_u32(mask);
    return v ^ moved ^ vshlq_n_u32(moved, shift);
  }
  static RIDGE_INLINE uint32x4_t apply(uint32x4_t v) {
    v = swap<1>(v, 0x22222222u);
    v = swap<3>(v, 0x0a0a0a0au);
    v = swap<6>(v, 0x00cc00ccu);
    return swap<12>(v, 0x0000f0f0u);
  }
};

// ---- Transpositions -------------------------------------------------------------------------------------------------

RIDGE_INLINE uint32x4_t load16(const uint8_t* p) { return vreinterpretq_u32_u8(vld1q_u8(p)); }
RIDGE_INLINE void store16(uint8_t* p, uint32x4_t v) { vst1q_u8(p, vreinterpretq_u8_u32(v)); }
RIDGE_INLINE uint32x4_t low_halves(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}
RIDGE_INLINE uint32x4_t high_halves(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}

// Words 0 … 3 of four rows to out, out + 64, ….
template <class Change>
RIDGE_INLINE void four_words(const Rows& rows, size_t row, uint8_t* out) {
  const uint32x4_t a = load16(rows.row(row)), b = load16(rows.row(row + 1));
  const uint32x4_t c = load16(rows.row(row + 2)), d = load16(rows.row(row + 3));
  const uint32x4_t ab_low = vzip1q_u32(a, b), ab_high = vzip2q_u32(a, b);
  const uint32x4_t cd_low = vzip1q_u32(c, d), cd_high = vzip2q_u32(c, d);
  store16(out, Change::apply(low_halves(ab_low, cd_low)));
  store16(out + 64, Change::apply(high_halves(ab_low, cd_low)));
  store16(out + 128, Change::apply(low_halves(ab_high, cd_high)));
  store16(out + 192, Change::apply(high_halves(ab_high, cd_high)));
}

template <class Change>
RIDGE_INLINE void one_word(const Rows& rows, uint8_t* out) {
  uint32_t word[16];
  for (size_t r = 0; r < 16; ++r) memcpy(&word[r], rows.row(r), 4);
  for (size_t r = 0; r < 16; r += 4) store16(out + 4 * r, Change::apply(vld1q_u32(word + r)));
}

// `count` words of every row: one vector of 64 bytes per word.
template <class Change>
RIDGE_INLINE void words(Rows rows, size_t count, uint8_t* out) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4, rows.p += 16, out += 256) {
    for (size_t r = 0; r < 16; r += 4) four_words<Change>(rows, r, out + 4 * r);
  }
  for (; i < count; ++i, rows.p += 4, out += 64) one_word<Change>(rows, out);
}

// `count` values of 1 or 2 bytes of every row.
template <size_t width>
RIDGE_INLINE void small_values(Rows rows, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i, rows.p += width) {
    for (size_t r = 0; r < 16; ++r, out += width) memcpy(out, rows.row(r), width);
  }
}

// ---- Block types ----------------------------------------------------------------------------------------------------

void pack_part(const Rows& rows, const PanelPart& part, uint8_t* out) {
  if (part.width == 1) return small_values<1>(rows, part.count, out);
  if (part.width == 2) return small_values<2>(rows, part.count, out);
  if (part.rearranged == Rearranged::sign_flipped) return words<SignFlipped>(rows, part.count, out);
  if (part.rearranged == Rearranged::bit_planes) return words<BitPlanes>(rows, part.count, out);
  words<AsIs>(rows, part.count, out);
}

void pack_blocks(const PackArgs& args) {
  if (args.row_count < kPanelRows) return pack_panel(args);
  const PanelFormat& format = panel_format(args.type);
  const TypeInfo& info = type_info(args.type);
  const PanelPart* parts = format.parts.data();
  const size_t part_count = format.parts.size(), unit_bytes = format.unit_bytes();
  const uint8_t* rows = args.rows;
  uint8_t* unit = args.panel;
  size_t in_unit = 0;  // blocks of this unit that are done
  for (size_t block = 0; block < args.cols / info.block; ++block, rows += info.bytes) {
    // Padding, and scales of blocks that the last unit lacks, lie in its first 64 bytes.
    if (in_unit == 0) memset(unit, 0, 64);
    for (size_t i = 0; i < part_count; ++i) {
      const PanelPart& part = parts[i];
      pack_part({rows + part.file_offset, args.row_stride}, part,
                unit + part.panel_offset + in_unit * part.block_stride);
    }
    if (++in_unit == format.unit_blocks) in_unit = 0, unit += unit_bytes;
  }
}

// ---- Float types ----------------------------------------------------------------------------------------------------

void pack_f32(const PackArgs& args) {
  if (args.row_count < kPanelRows) return pack_panel(args);
  words<AsIs>({args.rows, args.row_stride}, args.cols, args.panel);
}

// 8 columns of 8 rows: column j to out + 32 j.
RIDGE_INLINE void eight_halves(const Rows& rows, size_t first_row, uint8_t* out) {
  uint32x4_t pair[8];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    const uint16x8_t a = vreinterpretq_u16_u32(load16(rows.row(first_row + 2 * i)));
    const uint16x8_t b = vreinterpretq_u16_u32(load16(rows.row(first_row + 2 * i + 1)));
    pair[2 * i] = vreinterpretq_u32_u16(vzip1q_u16(a, b));      // columns 0 … 3 of two rows
    pair[2 * i + 1] = vreinterpretq_u32_u16(vzip2q_u16(a, b));  // columns 4 … 7
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < 2; ++i) {  // columns 4 i … 4 i + 3
    const uint32x4_t rows0_low = vzip1q_u32(pair[i], pair[2 + i]), rows0_high = vzip2q_u32(pair[i], pair[2 + i]);
    const uint32x4_t rows4_low = vzip1q_u32(pair[4 + i], pair[6 + i]),
                     rows4_high = vzip2q_u32(pair[4 + i], pair[6 + i]);
    store16(out + 128 * i, low_halves(rows0_low, rows4_low));
    store16(out + 128 * i + 32, high_halves(rows0_low, rows4_low));
    store16(out + 128 * i + 64, low_halves(rows0_high, rows4_high));
    store16(out + 128 * i + 96, high_halves(rows0_high, rows4_high));
  }
}

// F16 and BF16.
void pack_16_bits(const PackArgs& args) {
  if (args.row_count < kPanelRows) return pack_panel(args);
  Rows rows = {args.rows, args.row_stride};
  uint8_t* out = args.panel;
  size_t c = 0;
  for (; c + 8 <= args.cols; c += 8, rows.p += 16, out += 256) {
    eight_halves(rows, 0, out);
    eight_halves(rows, 8, out + 16);
  }
  small_values<2>(rows, args.cols - c, out);
  if (args.cols % 2 != 0) memset(out + 32 * (args.cols - c), 0, 32);
}

}  // namespace

#define RIDGE_NEON_PACK(type, function) \
  { Op::pack, Isa::neon, Type::type, kBitNeon, RIDGE_KERNEL(function), "neon" }

const KernelEntry kPackEntries[] = {
    RIDGE_NEON_PACK(F32, pack_f32),       RIDGE_NEON_PACK(F16, pack_16_bits),  RIDGE_NEON_PACK(BF16, pack_16_bits),
    RIDGE_NEON_PACK(Q4_0, pack_blocks),   RIDGE_NEON_PACK(Q4_1, pack_blocks),  RIDGE_NEON_PACK(Q5_0, pack_blocks),
    RIDGE_NEON_PACK(Q5_1, pack_blocks),   RIDGE_NEON_PACK(Q8_0, pack_blocks),  RIDGE_NEON_PACK(Q2_K, pack_blocks),
    RIDGE_NEON_PACK(Q3_K, pack_blocks),   RIDGE_NEON_PACK(Q4_K, pack_blocks),  RIDGE_NEON_PACK(Q5_K, pack_blocks),
    RIDGE_NEON_PACK(Q6_K, pack_blocks),   RIDGE_NEON_PACK(MXFP4, pack_blocks), RIDGE_NEON_PACK(IQ4_NL, pack_blocks),
    RIDGE_NEON_PACK(IQ4_XS, pack_blocks),
};
const size_t kPackCount = sizeof(kPackEntries) / sizeof(kPackEntries[0]);

}  // namespace ridge::neon
