// Rows of the file into panels at about the speed of memcpy: the parts of a block (docs/panels.md) as transpositions of
// 4 × 4 words, four rows at a time. The last panel of a tensor may lack rows; the reference packs that one.
//
// A block's parts are template arguments, so that every loop over them is unrolled; tests compare with pack_panel().

#include <immintrin.h>
#include <string.h>

#include "kernels/entries.h"

#define RIDGE_INLINE inline __attribute__((always_inline))

namespace ridge::avx2 {
namespace {

RIDGE_INLINE __m128i load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
RIDGE_INLINE __m128i load8(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
RIDGE_INLINE void store16(uint8_t* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

// Where the 16 rows' current block begins.
struct Rows {
  const uint8_t* p;
  size_t stride;
  const uint8_t* row(int r) const { return p + static_cast<size_t>(r) * stride; }
};

// ---- What happens to words on the way
// --------------------------------------------------------------------------------

struct AsIs {
  static RIDGE_INLINE __m128i apply(__m128i v) { return v; }
};

// int8 codes to unsigned ones with zero at 128.
struct SignFlipped {
  static RIDGE_INLINE __m128i apply(__m128i v) { return _mm_xor_si128(v, _mm_set1_epi8(-128)); }
};

// Bit 4 v + i of a word goes to bit 8 i + v: the five index bits turn by two places, which is four exchanges of two of
// them, each a swap of bits that lie `shift` apart.
struct BitPlanes {
  template <int shift>
  static RIDGE_INLINE __m128i swap(__m128i v, int mask) {
    const __m128i moved = _mm_and_si128(_mm_xor_si128(_mm_srli_epi32(v, shift), v), _mm_set1_epi32(mask));
    return _mm_xor_si128(v, _mm_xor_si128(moved, _mm_slli_epi32(moved, shift)));
  }
  static RIDGE_INLINE __m128i apply(__m128i v) {
    v = swap<1>(v, 0x22222222);
    v = swap<3>(v, 0x0a0a0a0a);
    v = swap<6>(v, 0x00cc00cc);
    return swap<12>(v, 0x0000f0f0);
  }
};

// ---- Transpositions
// --------------------------------------------------------------------------------------------------

// Word j of four rows to out + 64 j.
template <class Change>
RIDGE_INLINE void four_words(const Rows& rows, int first_row, size_t offset, uint8_t* out) {
  const __m128i a = load16(rows.row(first_row) + offset), b = load16(rows.row(first_row + 1) + offset);
  const __m128i c = load16(rows.row(first_row + 2) + offset), d = load16(rows.row(first_row + 3) + offset);
  const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
  const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
  store16(out, Change::apply(_mm_unpacklo_epi64(ab_low, cd_low)));
  store16(out + 64, Change::apply(_mm_unpackhi_epi64(ab_low, cd_low)));
  store16(out + 128, Change::apply(_mm_unpacklo_epi64(ab_high, cd_high)));
  store16(out + 192, Change::apply(_mm_unpackhi_epi64(ab_high, cd_high)));
}

template <class Change>
RIDGE_INLINE void one_word(const Rows& rows, size_t offset, uint8_t* out) {
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    int32_t word[4];
    for (int i = 0; i < 4; ++i) memcpy(&word[i], rows.row(r + i) + offset, 4);
    store16(out + 4 * r, Change::apply(_mm_setr_epi32(word[0], word[1], word[2], word[3])));
  }
}

// `count` words from `offset` of every row: one vector of 64 bytes per word.
template <size_t offset, size_t count, class Change = AsIs>
RIDGE_INLINE void words(const Rows& rows, uint8_t* out) {
  for (size_t i = 0; i + 4 <= count; i += 4) {
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) four_words<Change>(rows, r, offset + 4 * i, out + 64 * i + 4 * r);
  }
#pragma GCC unroll 3
  for (size_t i = count / 4 * 4; i < count; ++i) one_word<Change>(rows, offset + 4 * i, out + 64 * i);
}

// One 16-bit value of every row.
template <size_t offset>
RIDGE_INLINE void half(const Rows& rows, uint8_t* out) {
  uint16_t value[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) memcpy(&value[r], rows.row(r) + offset, 2);
  memcpy(out, value, 32);
}

// ---- Formats: block(rows, unit, index of the block in its unit)
// ------------------------------------------------------

template <size_t block_columns, size_t block_bytes, size_t unit_blocks, size_t unit_bytes>
struct Layout {
  static constexpr size_t kColumns = block_columns;
  static constexpr size_t kFileBytes = block_bytes;
  static constexpr size_t kUnitBlocks = unit_blocks;
  static constexpr size_t kUnitBytes = unit_bytes;
};

// Q4_0 and IQ4_NL.
struct ScaleNibbles : Layout<32, 18, 2, 576> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t b) {
    half<0>(rows, unit + 32 * b);
    words<2, 4>(rows, unit + 64 + 256 * b);
  }
};
struct Q5_0 : Layout<32, 22, 2, 704> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t b) {
    half<0>(rows, unit + 32 * b);
    words<2, 1, BitPlanes>(rows, unit + 64 + 320 * b);
    words<6, 4>(rows, unit + 128 + 320 * b);
  }
};
struct Q8_0 : Layout<32, 34, 2, 1088> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t b) {
    half<0>(rows, unit + 32 * b);
    words<2, 8, SignFlipped>(rows, unit + 64 + 512 * b);
  }
};
struct MXFP4 : Layout<32, 17, 4, 1088> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t b) {
    for (int r = 0; r < 16; ++r) unit[16 * b + static_cast<size_t>(r)] = rows.row(r)[0];
    words<1, 4>(rows, unit + 64 + 256 * b);
  }
};
struct Q4_1 : Layout<32, 20, 1, 320> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    half<2>(rows, unit + 32);
    words<4, 4>(rows, unit + 64);
  }
};
struct Q5_1 : Layout<32, 24, 1, 384> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    half<2>(rows, unit + 32);
    words<4, 1, BitPlanes>(rows, unit + 64);
    words<8, 4>(rows, unit + 128);
  }
};
struct Q2_K : Layout<256, 84, 1, 1344> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<80>(rows, unit);
    half<82>(rows, unit + 32);
    words<0, 20>(rows, unit + 64);
  }
};
struct Q3_K : Layout<256, 110, 1, 1792> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<108>(rows, unit);
    memset(unit + 32, 0, 32);
    words<96, 3>(rows, unit + 64);
    words<0, 24>(rows, unit + 256);
  }
};
// Q4_K, Q5_K, IQ4_XS: two halves, then words.
template <size_t block_bytes>
struct HalvesWords : Layout<256, block_bytes, 1, 16 * block_bytes> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    half<2>(rows, unit + 32);
    words<4, block_bytes / 4 - 1>(rows, unit + 64);
  }
};
struct Q6_K : Layout<256, 210, 1, 3392> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<208>(rows, unit);
    memset(unit + 32, 0, 32);
    words<192, 4>(rows, unit + 64);
    words<0, 48>(rows, unit + 320);
  }
};

// 4 × 7 bits and 4 × 1 bit to 4 × 8 bits, as planes.
struct SignPlanes {
  static RIDGE_INLINE __m128i field(__m128i v, uint32_t mask) {
    return _mm_and_si128(v, _mm_set1_epi32(static_cast<int>(mask)));
  }
  static RIDGE_INLINE __m128i apply(__m128i v) {
    __m128i out = _mm_or_si128(field(v, 0x8000007f), field(_mm_slli_epi32(v, 1), 0x7f00));
    out = _mm_or_si128(out, field(_mm_slli_epi32(v, 2), 0x7f0000));
    out = _mm_or_si128(out, field(_mm_slli_epi32(v, 3), 0x7f000000));
    out = _mm_or_si128(out, field(_mm_srli_epi32(v, 21), 0x80));
    out = _mm_or_si128(out, field(_mm_srli_epi32(v, 14), 0x8000));
    return BitPlanes::apply(_mm_or_si128(out, field(_mm_srli_epi32(v, 7), 0x800000)));
  }
};

// Words that alternate, indices and signs: a vector of each per pair.
template <size_t offset, size_t pairs>
RIDGE_INLINE void words_and_planes(const Rows& rows, uint8_t* out) {
  for (size_t i = 0; i < pairs; ++i) {
    words<0, 1>({rows.p + offset + 8 * i, rows.stride}, out + 128 * i);
    words<4, 1, SignPlanes>({rows.p + offset + 8 * i, rows.stride}, out + 128 * i + 64);
  }
}

// Pairs of words of four 16-bit values (9 bits of index, 7 of signs): the indices' low bytes, and planes of the signs
// with bit 8 of the indices. A high byte turned right by one is 7 signs and that bit above them.
template <size_t offset, size_t pairs>
RIDGE_INLINE void indices_and_planes(const Rows& rows, uint8_t* out) {
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  for (size_t i = 0; i < pairs; ++i, out += 128) {
#pragma GCC unroll 8
    for (int r = 0; r < 16; r += 2) {
      const __m128i two =
          _mm_unpacklo_epi64(load8(rows.row(r) + offset + 8 * i), load8(rows.row(r + 1) + offset + 8 * i));
      const __m128i split = _mm_shuffle_epi8(two, order);  // low bytes of both rows, high bytes of both
      const __m128i signs = _mm_and_si128(_mm_srli_epi16(split, 1), _mm_set1_epi8(0x7f));
      const __m128i bit = _mm_and_si128(_mm_slli_epi16(split, 7), _mm_set1_epi8(-128));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + 4 * r), split);
      const __m128i planes = BitPlanes::apply(_mm_or_si128(signs, bit));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + 64 + 4 * r), _mm_srli_si128(planes, 8));
    }
  }
}

// One block of 256 columns to a unit.
template <size_t block_bytes>
struct LowBit : Layout<256, block_bytes, 1, 16 * block_bytes> {};

struct IQ2_XXS : LowBit<66> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words_and_planes<2, 8>(rows, unit + 32);
  }
};
struct IQ2_XS : LowBit<74> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words<66, 2>(rows, unit + 32);
    indices_and_planes<2, 8>(rows, unit + 160);
  }
};
struct IQ2_S : LowBit<82> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words<66, 4>(rows, unit + 32);
    words<2, 8>(rows, unit + 288);
    words<34, 8, BitPlanes>(rows, unit + 800);
  }
};
struct IQ3_XXS : LowBit<98> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words<66, 8, SignPlanes>(rows, unit + 32);
    words<2, 16>(rows, unit + 544);
  }
};
struct IQ3_S : LowBit<110> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words<106, 1>(rows, unit + 32);
    words<66, 2>(rows, unit + 96);
    words<74, 8, BitPlanes>(rows, unit + 224);
    words<2, 16>(rows, unit + 736);
  }
};
struct IQ1_S : LowBit<50> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<0>(rows, unit);
    words<34, 4>(rows, unit + 32);
    words<2, 8>(rows, unit + 288);
  }
};
struct IQ1_M : LowBit<56> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    words<48, 2>(rows, unit);
    words<32, 4>(rows, unit + 128);
    words<0, 8>(rows, unit + 384);
  }
};
struct TQ1_0 : LowBit<54> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<52>(rows, unit);
    words<48, 1>(rows, unit + 32);
    words<0, 12>(rows, unit + 96);
  }
};
struct TQ2_0 : LowBit<66> {
  static RIDGE_INLINE void block(const Rows& rows, uint8_t* unit, size_t /*b*/) {
    half<64>(rows, unit);
    words<0, 16>(rows, unit + 32);
  }
};

template <class Format>
void pack(const PackArgs& args) {
  if (args.row_count < kPanelRows) return pack_panel(args);
  Rows rows = {args.rows, args.row_stride};
  const size_t blocks = args.cols / Format::kColumns;
  uint8_t* unit = args.panel;
  size_t b = 0;
  for (; b + Format::kUnitBlocks <= blocks; b += Format::kUnitBlocks, unit += Format::kUnitBytes) {
    for (size_t i = 0; i < Format::kUnitBlocks; ++i, rows.p += Format::kFileBytes) Format::block(rows, unit, i);
  }
  if (b == blocks) {  // panels end at multiples of 64
    if (Format::kUnitBytes % 64 != 0 && (unit - args.panel) % 64 != 0) memset(unit, 0, 32);
    return;
  }
  memset(unit, 0, 64);  // scales of the blocks that are missing
  for (size_t i = 0; b < blocks; ++b, ++i, rows.p += Format::kFileBytes) Format::block(rows, unit, i);
}

// ---- Float types
// -----------------------------------------------------------------------------------------------------

void pack_f32(const PackArgs& args) {
  if (args.row_count < kPanelRows) return pack_panel(args);
  Rows rows = {args.rows, args.row_stride};
  uint8_t* out = args.panel;
  size_t c = 0;
  for (; c + 4 <= args.cols; c += 4, rows.p += 16, out += 256) words<0, 4>(rows, out);
  for (; c < args.cols; ++c, rows.p += 4, out += 64) words<0, 1>(rows, out);
}

// 8 columns of 8 rows: column j to out + 32 j.
RIDGE_INLINE void eight_halves(const Rows& rows, int first_row, uint8_t* out) {
  __m128i pair[8], quad[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m128i a = load16(rows.row(first_row + 2 * i)), b = load16(rows.row(first_row + 2 * i + 1));
    pair[2 * i] = _mm_unpacklo_epi16(a, b);      // columns 0 … 3 of two rows
    pair[2 * i + 1] = _mm_unpackhi_epi16(a, b);  // columns 4 … 7
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    quad[4 * i] = _mm_unpacklo_epi32(pair[4 * i], pair[4 * i + 2]);  // columns 0, 1 of four rows
    quad[4 * i + 1] = _mm_unpackhi_epi32(pair[4 * i], pair[4 * i + 2]);
    quad[4 * i + 2] = _mm_unpacklo_epi32(pair[4 * i + 1], pair[4 * i + 3]);
    quad[4 * i + 3] = _mm_unpackhi_epi32(pair[4 * i + 1], pair[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store16(out + 64 * i, _mm_unpacklo_epi64(quad[i], quad[4 + i]));
    store16(out + 64 * i + 32, _mm_unpackhi_epi64(quad[i], quad[4 + i]));
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
  for (; c < args.cols; ++c, rows.p += 2, out += 32) half<0>(rows, out);
  if (args.cols % 2 != 0) memset(out, 0, 32);
}

}  // namespace

#define RIDGE_AVX2_PACK(type, ...) \
  { Op::pack, Isa::avx2, Type::type, kBitAvx2Fma, RIDGE_KERNEL(__VA_ARGS__), "avx2" }

const KernelEntry kPackEntries[] = {
    RIDGE_AVX2_PACK(F32, pack_f32),
    RIDGE_AVX2_PACK(F16, pack_16_bits),
    RIDGE_AVX2_PACK(BF16, pack_16_bits),
    RIDGE_AVX2_PACK(Q4_0, pack<ScaleNibbles>),
    RIDGE_AVX2_PACK(IQ4_NL, pack<ScaleNibbles>),
    RIDGE_AVX2_PACK(Q4_1, pack<Q4_1>),
    RIDGE_AVX2_PACK(Q5_0, pack<Q5_0>),
    RIDGE_AVX2_PACK(Q5_1, pack<Q5_1>),
    RIDGE_AVX2_PACK(Q8_0, pack<Q8_0>),
    RIDGE_AVX2_PACK(MXFP4, pack<MXFP4>),
    RIDGE_AVX2_PACK(IQ1_S, pack<IQ1_S>),
    RIDGE_AVX2_PACK(IQ1_M, pack<IQ1_M>),
    RIDGE_AVX2_PACK(IQ2_XXS, pack<IQ2_XXS>),
    RIDGE_AVX2_PACK(IQ2_XS, pack<IQ2_XS>),
    RIDGE_AVX2_PACK(IQ2_S, pack<IQ2_S>),
    RIDGE_AVX2_PACK(IQ3_XXS, pack<IQ3_XXS>),
    RIDGE_AVX2_PACK(IQ3_S, pack<IQ3_S>),
    RIDGE_AVX2_PACK(TQ1_0, pack<TQ1_0>),
    RIDGE_AVX2_PACK(TQ2_0, pack<TQ2_0>),
    RIDGE_AVX2_PACK(Q2_K, pack<Q2_K>),
    RIDGE_AVX2_PACK(Q3_K, pack<Q3_K>),
    RIDGE_AVX2_PACK(Q4_K, pack<HalvesWords<144>>),
    RIDGE_AVX2_PACK(Q5_K, pack<HalvesWords<176>>),
    RIDGE_AVX2_PACK(IQ4_XS, pack<HalvesWords<136>>),
    RIDGE_AVX2_PACK(Q6_K, pack<Q6_K>),
};
const size_t kPackCount = sizeof(kPackEntries) / sizeof(kPackEntries[0]);

}  // namespace ridge::avx2
