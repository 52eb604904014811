// File layout → panels: the bytes of pack_panel() (docs/panels.md), as 128-bit loads from 16 rows and 4 × 4
// transpositions of words. Streamed models are rearranged in every pass, so this runs at 80 to 95 % of memcpy's rate.
//
// Nothing is read beyond the rows: where a block's last words would be overshot, the load begins earlier and its first
// words are ignored. Panels of fewer than 16 rows (the last of a tensor) go to the reference.
#include <immintrin.h>

#include "kernels/entries.h"

#define RIDGE_INLINE inline __attribute__((always_inline))

namespace ridge::avx512 {
namespace {

// Four words of 16 rows: lane r of w[i] is word i of row r.
struct Words {
  __m512i w[4];
};

RIDGE_INLINE __m128i load_128(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
RIDGE_INLINE void store(uint8_t* p, __m512i v) { _mm512_storeu_si512(p, v); }
RIDGE_INLINE void store_256(uint8_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }

// Rows j, j + 4, j + 8 and j + 12 share a register, so that after the transposition inside its quarters the rows are in
// order. Inserts from memory do not use the shuffle port, which is the bottleneck: 8 shuffles per 256 bytes.
RIDGE_INLINE __m512i four_rows(const uint8_t* p, size_t stride) {
  __m512i v = _mm512_castsi128_si512(load_128(p));
  v = _mm512_inserti32x4(v, load_128(p + 4 * stride), 1);
  v = _mm512_inserti32x4(v, load_128(p + 8 * stride), 2);
  return _mm512_inserti32x4(v, load_128(p + 12 * stride), 3);
}

RIDGE_INLINE Words words(const uint8_t* p, size_t stride) {
  const __m512i a = four_rows(p, stride), b = four_rows(p + stride, stride), c = four_rows(p + 2 * stride, stride),
                d = four_rows(p + 3 * stride, stride);
  const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
  return {{_mm512_unpacklo_epi64(ab_low, cd_low), _mm512_unpackhi_epi64(ab_low, cd_low),
           _mm512_unpacklo_epi64(ab_high, cd_high), _mm512_unpackhi_epi64(ab_high, cd_high)}};
}

// `count` × 4 words from p on, in order.
template <int count>
RIDGE_INLINE void copy_words(const uint8_t* p, size_t stride, uint8_t* out) {
#pragma GCC unroll 2
  for (int i = 0; i < count; ++i) {
    const Words v = words(p + 16 * i, stride);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) store(out + 64 * (4 * i + j), v.w[j]);
  }
}

// The low halves of all lanes, then the high halves.
RIDGE_INLINE __m512i split_halves(__m512i v) {
  const __m512i order = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24, 22,
                                         20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutexvar_epi16(order, v);
}

// The 32 bits of lane v that begin in the high half of `first` and end in the low half of `second`.
RIDGE_INLINE __m512i straddling(__m512i first, __m512i second) {
  return _mm512_or_si512(_mm512_srli_epi32(first, 16), _mm512_slli_epi32(second, 16));
}

template <class T>
RIDGE_INLINE void copy_scalars(const uint8_t* p, size_t stride, uint8_t* out) {
#pragma GCC unroll 16
  for (size_t r = 0; r < kPanelRows; ++r) __builtin_memcpy(out + sizeof(T) * r, p + r * stride, sizeof(T));
}

// Bit 4 v + i of every lane to bit v of byte i.
RIDGE_INLINE __m512i bit_planes(__m512i bits) {
  __m512i planes = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    const __m512i spread = _mm512_shuffle_epi8(
        bits, _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)),
                              _mm512_set1_epi8(static_cast<char>(v / 2))));
    const __m512i mask = _mm512_set1_epi32(v % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
    planes = _mm512_mask_add_epi8(planes, _mm512_test_epi8_mask(spread, mask), planes,
                                  _mm512_set1_epi8(static_cast<char>(1 << v)));
  }
  return planes;
}

// --- one block of 16 rows per type ----------------------------------------------------------------------------------
// p: the block of the first row; b: the number of the block in its unit.

struct ScaleNibbles {  // Q4_0, IQ4_NL
  static constexpr size_t kBlock = 32, kBytes = 18, kUnitBlocks = 2, kUnitBytes = 576;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t b, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit + b * 32);
    copy_words<1>(p + 2, stride, unit + 64 + b * 256);
  }
};

struct Q4_1 {
  static constexpr size_t kBlock = 32, kBytes = 20, kUnitBlocks = 1, kUnitBytes = 320;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    store(unit, split_halves(words(p, stride).w[0]));
    copy_words<1>(p + 4, stride, unit + 64);
  }
};

struct Q5_0 {
  static constexpr size_t kBlock = 32, kBytes = 22, kUnitBlocks = 2, kUnitBytes = 704;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t b, uint8_t* unit) {
    const Words head = words(p, stride);
    store_256(unit + b * 32, _mm512_cvtepi32_epi16(head.w[0]));
    store(unit + 64 + b * 320, bit_planes(straddling(head.w[0], head.w[1])));
    copy_words<1>(p + 6, stride, unit + 128 + b * 320);
  }
};

struct Q5_1 {
  static constexpr size_t kBlock = 32, kBytes = 24, kUnitBlocks = 1, kUnitBytes = 384;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words head = words(p, stride);
    store(unit, split_halves(head.w[0]));
    store(unit + 64, bit_planes(head.w[1]));
    copy_words<1>(p + 8, stride, unit + 128);
  }
};

struct Q8_0 {
  static constexpr size_t kBlock = 32, kBytes = 34, kUnitBlocks = 2, kUnitBytes = 1088;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t b, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit + b * 32);
    uint8_t* out = unit + 64 + b * 512;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const Words v = words(p + 2 + 16 * i, stride);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        store(out + 64 * (4 * i + j), _mm512_xor_si512(v.w[j], _mm512_set1_epi8(static_cast<char>(0x80))));
      }
    }
  }
};

struct MXFP4 {
  static constexpr size_t kBlock = 32, kBytes = 17, kUnitBlocks = 4, kUnitBytes = 1088;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t b, uint8_t* unit) {
    copy_scalars<uint8_t>(p, stride, unit + b * 16);
    copy_words<1>(p + 1, stride, unit + 64 + b * 256);
  }
};

struct Q2_K {
  static constexpr size_t kBlock = 256, kBytes = 84, kUnitBlocks = 1, kUnitBytes = 1344;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    store(unit, split_halves(words(p + 68, stride).w[3]));
    copy_words<5>(p, stride, unit + 64);
  }
};

struct Q3_K {
  static constexpr size_t kBlock = 256, kBytes = 110, kUnitBlocks = 1, kUnitBytes = 1792;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words tail = words(p + 94, stride);  // 2 bytes of codes, 12 of scales, d
    store(unit, _mm512_zextsi256_si512(_mm512_cvtepi32_epi16(_mm512_srli_epi32(tail.w[3], 16))));
    store(unit + 64, straddling(tail.w[0], tail.w[1]));
    store(unit + 128, straddling(tail.w[1], tail.w[2]));
    store(unit + 192, straddling(tail.w[2], tail.w[3]));
    copy_words<6>(p, stride, unit + 256);
  }
};

template <size_t bytes>
struct SixBitScales {  // Q4_K, Q5_K
  static constexpr size_t kBlock = 256, kBytes = bytes, kUnitBlocks = 1, kUnitBytes = bytes * kPanelRows;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words head = words(p, stride);
    store(unit, split_halves(head.w[0]));
    store(unit + 64, head.w[1]);
    store(unit + 128, head.w[2]);
    store(unit + 192, head.w[3]);
    copy_words<bytes / 16 - 1>(p + 16, stride, unit + 256);
  }
};

struct Q6_K {
  static constexpr size_t kBlock = 256, kBytes = 210, kUnitBlocks = 1, kUnitBytes = 3392;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p + 208, stride, unit);
    store_256(unit + 32, _mm256_setzero_si256());
    copy_words<1>(p + 192, stride, unit + 64);
    copy_words<12>(p, stride, unit + 320);
  }
};

struct IQ4_XS {
  static constexpr size_t kBlock = 256, kBytes = 136, kUnitBlocks = 1, kUnitBytes = 2176;
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words head = words(p, stride);
    store(unit, split_halves(head.w[0]));
    store(unit + 64, head.w[1]);
    copy_words<8>(p + 8, stride, unit + 128);
  }
};

// 4 × 7 bits and 4 × 1 bit to 4 × 8 bits, as planes.
RIDGE_INLINE __m512i sign_planes(__m512i v) {
  const auto field = [&](__m512i shifted, int mask) __attribute__((always_inline)) {
    return _mm512_and_si512(shifted, _mm512_set1_epi32(mask));
  };
  const __m512i sevens = _mm512_or_si512(
      _mm512_or_si512(field(v, 0x7f), field(_mm512_slli_epi32(v, 1), 0x7f00)),
      _mm512_or_si512(field(_mm512_slli_epi32(v, 2), 0x7f0000), field(_mm512_slli_epi32(v, 3), 0x7f000000)));
  const __m512i others = _mm512_or_si512(
      _mm512_or_si512(field(_mm512_srli_epi32(v, 21), 0x80), field(_mm512_srli_epi32(v, 14), 0x8000)),
      _mm512_or_si512(field(_mm512_srli_epi32(v, 7), 0x800000), field(v, static_cast<int>(0x80000000))));
  return bit_planes(_mm512_or_si512(sevens, others));
}

// Two words of four 16-bit values (9 bits of index, 7 of signs): the indices' low bytes, and planes of the signs with
// bit 8 of the indices. A high byte turned right by one is 7 signs and that bit above them.
RIDGE_INLINE void indices_and_planes(__m512i first, __m512i second, uint8_t* out) {
  const __m512i even = _mm512_set1_epi32(0x00ff00ff);
  const auto bytes = [&](__m512i a, __m512i b) __attribute__((always_inline)) {  // bytes 0 and 2 of a, of b
    const __m512i low = _mm512_and_si512(a, even), high = _mm512_and_si512(b, even);
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, -1, -1, 4, 6, -1, -1, 8, 10, -1, -1, 12, 14, -1, -1));
    return _mm512_or_si512(_mm512_shuffle_epi8(low, order), _mm512_slli_epi32(_mm512_shuffle_epi8(high, order), 16));
  };
  store(out, bytes(first, second));
  const __m512i high = bytes(_mm512_srli_epi32(first, 8), _mm512_srli_epi32(second, 8));
  const __m512i signs = _mm512_and_si512(_mm512_srli_epi32(high, 1), _mm512_set1_epi8(0x7f));
  const __m512i bit = _mm512_and_si512(_mm512_slli_epi32(high, 7), _mm512_set1_epi8(static_cast<char>(0x80)));
  store(out + 64, bit_planes(_mm512_or_si512(signs, bit)));
}

// Four words from p on as planes.
RIDGE_INLINE void copy_bit_planes(const uint8_t* p, size_t stride, uint8_t* out) {
  const Words v = words(p, stride);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) store(out + 64 * j, bit_planes(v.w[j]));
}

// One block of 256 columns to a unit.
template <size_t bytes>
struct LowBit {
  static constexpr size_t kBlock = 256, kBytes = bytes, kUnitBlocks = 1, kUnitBytes = bytes * kPanelRows;
};

struct IQ2_XXS : LowBit<66> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
#pragma GCC unroll 1
    for (int i = 0; i < 4; ++i) {
      const Words v = words(p + 2 + 16 * i, stride);
      uint8_t* out = unit + 32 + 256 * i;
      store(out, v.w[0]);
      store(out + 64, sign_planes(v.w[1]));
      store(out + 128, v.w[2]);
      store(out + 192, sign_planes(v.w[3]));
    }
  }
};

struct IQ2_XS : LowBit<74> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
    const Words tail = words(p + 58, stride);  // 8 bytes of codes, 8 of scales
    store(unit + 32, tail.w[2]);
    store(unit + 96, tail.w[3]);
#pragma GCC unroll 1
    for (int i = 0; i < 4; ++i) {
      const Words v = words(p + 2 + 16 * i, stride);
      indices_and_planes(v.w[0], v.w[1], unit + 160 + 256 * i);
      indices_and_planes(v.w[2], v.w[3], unit + 288 + 256 * i);
    }
  }
};

struct IQ2_S : LowBit<82> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
    copy_words<1>(p + 66, stride, unit + 32);
    copy_words<2>(p + 2, stride, unit + 288);
#pragma GCC unroll 1
    for (int i = 0; i < 2; ++i) copy_bit_planes(p + 34 + 16 * i, stride, unit + 800 + 256 * i);
  }
};

struct IQ3_XXS : LowBit<98> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
#pragma GCC unroll 1
    for (int i = 0; i < 2; ++i) {
      const Words v = words(p + 66 + 16 * i, stride);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) store(unit + 32 + 64 * (4 * i + j), sign_planes(v.w[j]));
    }
    copy_words<4>(p + 2, stride, unit + 544);
  }
};

struct IQ3_S : LowBit<110> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
    const Words tail = words(p + 94, stride);  // three words of signs, the scales
    store(unit + 32, tail.w[3]);
    const Words high = words(p + 66, stride);  // two words of high bits, two of signs
    store(unit + 96, high.w[0]);
    store(unit + 160, high.w[1]);
#pragma GCC unroll 1
    for (int i = 0; i < 2; ++i) copy_bit_planes(p + 74 + 16 * i, stride, unit + 224 + 256 * i);
    copy_words<4>(p + 2, stride, unit + 736);
  }
};

struct IQ1_S : LowBit<50> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p, stride, unit);
    copy_words<1>(p + 34, stride, unit + 32);
    copy_words<2>(p + 2, stride, unit + 288);
  }
};

struct IQ1_M : LowBit<56> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words tail = words(p + 40, stride);  // two words of high bits, two of scales
    store(unit, tail.w[2]);
    store(unit + 64, tail.w[3]);
    copy_words<1>(p + 32, stride, unit + 128);
    copy_words<2>(p, stride, unit + 384);
  }
};

struct TQ1_0 : LowBit<54> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    const Words tail = words(p + 38, stride);  // 10 bytes of digits, 4 of the last ones, d
    store_256(unit, _mm512_cvtepi32_epi16(_mm512_srli_epi32(tail.w[3], 16)));
    store(unit + 32, straddling(tail.w[2], tail.w[3]));
    copy_words<3>(p, stride, unit + 96);
  }
};

struct TQ2_0 : LowBit<66> {
  static RIDGE_INLINE void block(const uint8_t* p, size_t stride, size_t, uint8_t* unit) {
    copy_scalars<uint16_t>(p + 64, stride, unit);
    copy_words<4>(p, stride, unit + 32);
  }
};

// The next panel's rows, wherever `args` ends, fetched in step with this panel: 16 short streams per panel are more
// than the hardware prefetchers follow (Q4_K from DRAM, 8 MiB slots: 8.0 → 10.0 GB/s). Streaming stores were tried: 10
// % faster here, but the matmul that reads the panels next then finds them in no cache (together 6.3 → 5.6 GB/s).
struct NextPanel {
  const uint8_t* p;

  explicit RIDGE_INLINE NextPanel(const PackArgs& args) : p(args.rows + kPanelRows * args.row_stride) {}
  RIDGE_INLINE void fetch(size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64, p += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }
  }
};

template <class Format>
void pack(const PackArgs& args) {
  if (args.row_count != kPanelRows) return pack_panel(args);
  constexpr size_t kUnit = Format::kUnitBlocks;
  size_t left = args.cols / Format::kBlock;
  const uint8_t* p = args.rows;
  uint8_t* unit = args.panel;
  NextPanel next(args);
  for (; left >= kUnit; left -= kUnit, unit += Format::kUnitBytes) {
    next.fetch(kPanelRows * kUnit * Format::kBytes);
#pragma GCC unroll 4
    for (size_t b = 0; b < kUnit; ++b, p += Format::kBytes) Format::block(p, args.row_stride, b, unit);
  }
  if (Format::kUnitBytes % 64 != 0 && (unit - args.panel) % 64 != 0) store_256(unit, _mm256_setzero_si256());
  if (left > 0) store(unit, _mm512_setzero_si512());  // the scales that a partial unit's header lacks
  for (size_t b = 0; b < left; ++b, p += Format::kBytes) Format::block(p, args.row_stride, b, unit);
}

// --- float types ----------------------------------------------------------------------------------------------------

// The columns that do not fill 16 bytes.
template <class T>
RIDGE_INLINE void tail_columns(const PackArgs& args, size_t begin) {
  for (size_t c = begin; c < args.cols; ++c) {
    copy_scalars<T>(args.rows + sizeof(T) * c, args.row_stride, args.panel + sizeof(T) * kPanelRows * c);
  }
}

void pack_32(const PackArgs& args) {
  if (args.row_count != kPanelRows) return pack_panel(args);
  NextPanel next(args);
  size_t c = 0;
  for (; c + 4 <= args.cols; c += 4) {
    next.fetch(16 * kPanelRows);
    copy_words<1>(args.rows + 4 * c, args.row_stride, args.panel + 64 * c);
  }
  tail_columns<uint32_t>(args, c);
}

void pack_16(const PackArgs& args) {
  if (args.row_count != kPanelRows) return pack_panel(args);
  NextPanel next(args);
  size_t c = 0;
  for (; c + 8 <= args.cols; c += 8) {
    next.fetch(16 * kPanelRows);
    const Words v = words(args.rows + 2 * c, args.row_stride);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) store(args.panel + 32 * c + 64 * j, split_halves(v.w[j]));
  }
  tail_columns<uint16_t>(args, c);
  if (args.cols % 2 != 0) store_256(args.panel + 32 * args.cols, _mm256_setzero_si256());
}

}  // namespace

#define RIDGE_ENTRY(type, ...) \
  { Op::pack, Isa::avx512, Type::type, kBitAvx2Fma | kBitAvx512, RIDGE_KERNEL(__VA_ARGS__), "avx512" }

const KernelEntry kPackEntries[] = {
    RIDGE_ENTRY(F32, pack_32),
    RIDGE_ENTRY(F16, pack_16),
    RIDGE_ENTRY(BF16, pack_16),
    RIDGE_ENTRY(Q4_0, pack<ScaleNibbles>),
    RIDGE_ENTRY(Q4_1, pack<Q4_1>),
    RIDGE_ENTRY(Q5_0, pack<Q5_0>),
    RIDGE_ENTRY(Q5_1, pack<Q5_1>),
    RIDGE_ENTRY(Q8_0, pack<Q8_0>),
    RIDGE_ENTRY(Q2_K, pack<Q2_K>),
    RIDGE_ENTRY(Q3_K, pack<Q3_K>),
    RIDGE_ENTRY(Q4_K, pack<SixBitScales<144>>),
    RIDGE_ENTRY(Q5_K, pack<SixBitScales<176>>),
    RIDGE_ENTRY(Q6_K, pack<Q6_K>),
    RIDGE_ENTRY(IQ4_NL, pack<ScaleNibbles>),
    RIDGE_ENTRY(IQ4_XS, pack<IQ4_XS>),
    RIDGE_ENTRY(MXFP4, pack<MXFP4>),
    RIDGE_ENTRY(IQ1_S, pack<IQ1_S>),
    RIDGE_ENTRY(IQ1_M, pack<IQ1_M>),
    RIDGE_ENTRY(IQ2_XXS, pack<IQ2_XXS>),
    RIDGE_ENTRY(IQ2_XS, pack<IQ2_XS>),
    RIDGE_ENTRY(IQ2_S, pack<IQ2_S>),
    RIDGE_ENTRY(IQ3_XXS, pack<IQ3_XXS>),
    RIDGE_ENTRY(IQ3_S, pack<IQ3_S>),
    RIDGE_ENTRY(TQ1_0, pack<TQ1_0>),
    RIDGE_ENTRY(TQ2_0, pack<TQ2_0>),
};
const size_t kPackCount = sizeof(kPackEntries) / sizeof(kPackEntries[0]);

}  // namespace ridge::avx512
