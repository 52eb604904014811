// Quantised weights × int8 activations with AMX (contract: kernels.h). The integer product of 16 tokens × 16 rows × one
// group of columns is one instruction; scaling it and adding it up costs three vector instructions per token, and those
// set the pace. One to three tokens are left to AVX-512.
//
// The product of the next group is under way in one tile while this one's is scaled: a stored tile can be read back
// only some 30 cycles later.
#include "kernels/avx512/matmul_q8.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/low_bit_tiles.h"
#include "kernels/entries.h"

namespace ridge::amx {
namespace {

using avx512::TokenChunk;
using avx512::Unfolded;

constexpr size_t kTokens = 16;    // of a tile
constexpr int kAhead = 4;         // products under way at once
constexpr size_t kFewTokens = 4;  // fewer leave most of a tile empty

// One sum per weight row (lane) and token, carried over the columns in order.
struct Sums {
  float* out;
  size_t stride, tokens;  // tokens that exist, up to 16
  __mmask16 mask;         // rows that exist
  bool first;             // first chunk of the columns: sums begin at zero
};

template <bool has_min>
class TileWalk {
 public:
  static void multiply(const Unfolded& w, size_t tiles, const TokenChunk* x, const Sums& sums) {
    __m512 acc[kTokens];
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      acc[t] = _mm512_maskz_loadu_ps(sums.first ? __mmask16{0} : mask(sums, t), sums.out + t * sums.stride);
    }
    alignas(64) int32_t dots[kAhead][kTokens][16];
    avx512::for_tiles<kAhead - 1>([&]<int k>() {
      if (k < tiles) start<k>(w, x, k, dots[k]);
    });
    for (size_t i = 0; i < tiles; i += kAhead) {
      avx512::for_tiles<kAhead>([&]<int k>() __attribute__((always_inline)) {
        constexpr int kNext = (k + kAhead - 1) % kAhead;
        if (i + k + kAhead - 1 < tiles) start<kNext>(w, x, i + k + kAhead - 1, dots[kNext]);
        if (i + k < tiles) finish(w, x, i + k, dots[k], acc);
      });
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      _mm512_mask_storeu_ps(sums.out + t * sums.stride, mask(sums, t), acc[t]);
    }
  }

  // Tiles: sums 0 to 3, activations 4 or 5, weights 6 or 7.
  static void configure() {
    constexpr TileShape kSums = {kTokens, 64}, kActivations = {kTokens, kColumns}, kWeights = {kColumns / 4, 64};
    Hardware::configure({kSums, kSums, kSums, kSums, kActivations, kActivations, kWeights, kWeights});
  }

 private:
  static constexpr size_t kColumns = avx512::kTileColumns;

  static __mmask16 mask(const Sums& sums, size_t t) { return t < sums.tokens ? sums.mask : __mmask16{0}; }

  template <int k>
  static RIDGE_INLINE void start(const Unfolded& w, const TokenChunk* x, size_t tile, int32_t (*dots)[16]) {
    constexpr int kSums = k, kActivations = 4 + k % 2, kWeights = 6 + k % 2;
    Hardware::zero<kSums>();
    Hardware::load<kActivations>(x[0].q + kColumns * tile, sizeof(TokenChunk));
    Hardware::load<kWeights>(w.q[tile], 64);
    Hardware::dot_int8<kSums, kActivations, kWeights>();
    Hardware::store<kSums>(dots, 64);
  }

  static RIDGE_INLINE void finish(const Unfolded& w, const TokenChunk* x, size_t tile, const int32_t (*dots)[16],
                                  __m512 (&acc)[kTokens]) {
    const __m512 s = _mm512_load_ps(w.s[tile][0]);
    __m512 m;
    if constexpr (has_min) m = _mm512_load_ps(w.m[tile][0]);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots[t]));
      acc[t] = _mm512_fmadd_ps(dot, _mm512_mul_ps(s, _mm512_set1_ps(x[t].d[tile])), acc[t]);
      if constexpr (has_min) acc[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(x[t].side[tile].min_factor), acc[t]);
    }
  }
};

template <class Format>
void matmul_q8(const MatmulArgs& args) {
  static_assert(Format::kGroups == 1, "a tile is one group of columns");
  if (args.tokens < kFewTokens) return avx512::matmul_q8<Format>(args);
  using Walk = TileWalk<Format::kHasMin>;
  TokenChunk x[avx512::kMaxTokens];
  Unfolded w;
  const size_t stride = avx512::panel_stride<Format>(args.cols), all_tiles = args.cols / avx512::kTileColumns;
  Walk::configure();
  for (size_t token = 0; token < args.tokens; token += avx512::kMaxTokens) {
    const size_t left = args.tokens - token, tokens = left < avx512::kMaxTokens ? left : avx512::kMaxTokens;
    for (size_t tile = 0; tile < all_tiles; tile += avx512::kChunkTiles) {
      const size_t tiles = all_tiles - tile < avx512::kChunkTiles ? all_tiles - tile : avx512::kChunkTiles;
      avx512::gather_tokens<Format>(args.x8, token, tokens, tile, tiles, x);
      // The last tile of tokens is filled up with zeros.
      for (size_t t = tokens; t % kTokens != 0; ++t) x[t] = {};
      const uint8_t* units = args.panels + tile / Format::kUnitTiles * Format::kUnitBytes;
      for (size_t row = 0; row < args.rows; row += kPanelRows, units += stride) {
        avx512::unfold<Format, Format::kZero>(units, tiles, stride, w);
        for (size_t t = 0; t < tokens; t += kTokens) {
          Walk::multiply(w, tiles, x + t,
                         {args.out + (token + t) * args.out_stride + row, args.out_stride,
                          tokens - t < kTokens ? tokens - t : kTokens, avx512::row_mask(args.rows - row), tile == 0});
        }
      }
    }
  }
  Hardware::release();
}

}  // namespace

#define RIDGE_ENTRY(type)                                                                            \
  {                                                                                                  \
    Op::matmul_q8, Isa::avx512, Type::type, kBitAvx2Fma | kBitAvx512 | kBitAvx512Vnni | kBitAmxInt8, \
        RIDGE_KERNEL(matmul_q8<avx512::type>), "avx512 amx int8"                                     \
  }

// Types with groups of 16 columns are not here: half of each tile would be empty, and AVX-512 is as fast (Q6_K: 336
// against 316 Gop/s).
const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_ENTRY(Q4_0),    RIDGE_ENTRY(Q4_1),  RIDGE_ENTRY(Q5_0),  RIDGE_ENTRY(Q5_1),
    RIDGE_ENTRY(Q8_0),    RIDGE_ENTRY(Q4_K),  RIDGE_ENTRY(Q5_K),  RIDGE_ENTRY(IQ4_NL),
    RIDGE_ENTRY(IQ4_XS),  RIDGE_ENTRY(MXFP4), RIDGE_ENTRY(IQ1_S), RIDGE_ENTRY(IQ2_XXS),
    RIDGE_ENTRY(IQ3_XXS), RIDGE_ENTRY(IQ3_S), RIDGE_ENTRY(TQ1_0), RIDGE_ENTRY(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::amx
