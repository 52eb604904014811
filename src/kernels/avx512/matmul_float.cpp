// Weights of any type × float activations (contract: kernels.h, layouts: docs/panels.md). Float weights of ordinary
// runs, and quantised ones under --numerics exact: their values are the file's, dequantised exactly.
//
// A chunk of columns of a panel becomes floats in L1 (F32 panels are used where they lie); then one fused multiply-add
// per weight and token. One token: two panels side by side, as one chain of additions would wait for itself. More
// tokens: 12 × 32 accumulators in registers, the activations packed so that a column's 12 values are neighbours: once
// for all calls (pack_activations), or by each call for itself.
#include "kernels/avx512/low_bit_tiles.h"
#include "kernels/avx512/matmul_tiles.h"
#include "kernels/avx512/vec.h"
#include "kernels/simd/latent.h"

namespace ridge::avx512 {
namespace {

constexpr int kTokenBlock = 12;
constexpr size_t kPrefetchBytes = 1024;  // how far decode reads ahead

// Columns that are unfolded at a time, and tokens that use them before they are dropped. Quantised types come in units
// of 256 columns. Float ones leave room for more tokens, so that their bytes are read less often. (Float ones by 128
// columns: 5 % slower, as accumulators are stored and loaded twice as often. By 96 tokens: no faster.)
constexpr size_t kChunkColumns = 256;
constexpr size_t kFloatTokens = 48, kQuantTokens = 24;
// Of activations that are packed already: as many as L2 holds beside the next ones, multiples of kTokenBlock.
constexpr size_t kPackedTokens = 192;

struct alignas(64) Floats {
  float values[kChunkColumns * kPanelRows];  // [column, row]
};

RIDGE_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p) + kPrefetchBytes, _MM_HINT_T0); }

// Columns of 16 weights that are floats one by one.
template <class Weight>
const float* unfold(const uint8_t* columns, size_t count, Floats& buffer) {
  const size_t step = Weight::bytes_before(1);
  for (size_t c = 0; c < count; ++c) {
    if (c % (64 / step) == 0) prefetch(columns + step * c);
    _mm512_store_ps(buffer.values + kPanelRows * c, Weight::load(columns + step * c));
  }
  return buffer.values;
}

// Each weight struct: the bytes of a panel, those before column `col` (of whole units), and columns [col, col + count)
// as floats, in `buffer` or in place. Types whose columns stand alone can load one (kColumns).
struct WeightF32 {
  static constexpr bool kColumns = true;
  static constexpr size_t kMaxTokens = kFloatTokens;
  static size_t stride(size_t cols) { return 64 * cols; }
  static size_t bytes_before(size_t col) { return 64 * col; }
  static RIDGE_INLINE __m512 load(const uint8_t* at) { return _mm512_loadu_ps(at); }
  static const float* floats(const uint8_t* panel, size_t col, size_t, Floats&) {
    return reinterpret_cast<const float*>(panel) + kPanelRows * col;
  }
};

struct WeightF16 {
  static constexpr bool kColumns = true;
  static constexpr size_t kMaxTokens = kFloatTokens;
  static size_t stride(size_t cols) { return (32 * cols + 63) / 64 * 64; }
  static size_t bytes_before(size_t col) { return 32 * col; }
  static RIDGE_INLINE __m512 load(const uint8_t* at) { return load_halves(at); }
  static const float* floats(const uint8_t* panel, size_t col, size_t count, Floats& buffer) {
    return unfold<WeightF16>(panel + bytes_before(col), count, buffer);
  }
};

struct WeightBF16 {
  static constexpr bool kColumns = true;
  static constexpr size_t kMaxTokens = kFloatTokens;
  static size_t stride(size_t cols) { return WeightF16::stride(cols); }
  static size_t bytes_before(size_t col) { return WeightF16::bytes_before(col); }
  static RIDGE_INLINE __m512 load(const uint8_t* at) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static const float* floats(const uint8_t* panel, size_t col, size_t count, Floats& buffer) {
    return unfold<WeightBF16>(panel + bytes_before(col), count, buffer);
  }
};

template <class Format>
struct Dequantized {
  static constexpr bool kColumns = false;
  static constexpr size_t kMaxTokens = kQuantTokens;
  static size_t stride(size_t cols) { return panel_stride<Format>(cols); }
  static size_t bytes_before(size_t col) { return col / kTileColumns / Format::kUnitTiles * Format::kUnitBytes; }

  // Column 4 v + i of a tile. The product is exact, so its fused addition is the file's formula.
  template <int i>
  static RIDGE_INLINE void column(const Tile& tile, int v, float* out) {
    const int g = v / (kQuads / Format::kGroups);
    const __m512i code = _mm512_sub_epi32(unsigned_byte<i>(tile.q[v]), _mm512_set1_epi32(Format::kZero));
    const __m512 value = _mm512_cvtepi32_ps(code);
    if constexpr (Format::kHasMin) {
      _mm512_store_ps(out, _mm512_fmadd_ps(value, tile.s[g], tile.m[g]));
    } else {
      _mm512_store_ps(out, _mm512_mul_ps(value, tile.s[g]));
    }
  }

  template <int t>
  static RIDGE_INLINE void tile_floats(const typename Format::Unit& unit, float* out) {
    Tile tile;
    Format::template load<t>(unit, tile);
#pragma GCC unroll 8
    for (int v = 0; v < kQuads; ++v, out += 4 * kPanelRows) {
      column<0>(tile, v, out);
      column<1>(tile, v, out + kPanelRows);
      column<2>(tile, v, out + 2 * kPanelRows);
      column<3>(tile, v, out + 3 * kPanelRows);
    }
  }

  static const float* floats(const uint8_t* panel, size_t col, size_t count, Floats& buffer) {
    const uint8_t* units = panel + bytes_before(col);
    const size_t tiles = count / kTileColumns;
    for (size_t t = 0; t < tiles; t += Format::kUnitTiles, units += Format::kUnitBytes) {
      for (size_t line = 0; line < Format::kUnitBytes; line += 64) prefetch(units + line);
      const auto unit = Format::open(units);
      for_tiles<Format::kUnitTiles>([&]<int i>() __attribute__((always_inline)) {
        if (t + i < tiles) tile_floats<i>(unit, buffer.values + (t + i) * kTileColumns * kPanelRows);
      });
    }
    return buffer.values;
  }
};

// --- one token ------------------------------------------------------------------------------------------------------

// Columns that stand alone are multiplied as they are loaded: through a buffer they came at 0.9 of the rate.
template <class Weight, int panels>
RIDGE_INLINE void decode_columns(const uint8_t* const* panel, const float* x, size_t cols, __m512* acc) {
  const size_t step = Weight::bytes_before(1);
  for (size_t c = 0; c < cols; ++c) {
    const __m512 activation = _mm512_set1_ps(x[c]);
#pragma GCC unroll 2
    for (int p = 0; p < panels; ++p) {
      if (c % (64 / step) == 0) prefetch(panel[p] + step * c);
      acc[p] = _mm512_fmadd_ps(Weight::load(panel[p] + step * c), activation, acc[p]);
    }
  }
}

// Others by way of floats in L1.
template <class Weight, int panels>
RIDGE_INLINE void decode_units(const uint8_t* const* panel, const float* x, size_t cols, __m512* acc) {
  Floats buffers[panels];
  const float* w[panels];
  for (size_t col = 0; col < cols; col += kChunkColumns) {
    const size_t count = cols - col < kChunkColumns ? cols - col : kChunkColumns;
#pragma GCC unroll 2
    for (int p = 0; p < panels; ++p) w[p] = Weight::floats(panel[p], col, count, buffers[p]);
    for (size_t c = 0; c < count; ++c) {
      const __m512 activation = _mm512_set1_ps(x[col + c]);
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) {
        acc[p] = _mm512_fmadd_ps(_mm512_load_ps(w[p] + kPanelRows * c), activation, acc[p]);
      }
    }
  }
}

template <class Weight, int panels>
void decode_panels(const MatmulArgs& args, const uint8_t* first, size_t row) {
  const uint8_t* panel[panels];
  __m512 acc[panels];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
    panel[p] = first + p * Weight::stride(args.cols);
    acc[p] = _mm512_setzero_ps();
  }
  if constexpr (Weight::kColumns) {
    decode_columns<Weight, panels>(panel, args.x, args.cols, acc);
  } else {
    decode_units<Weight, panels>(panel, args.x, args.cols, acc);
  }
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
    const size_t r = row + p * kPanelRows;
    _mm512_mask_storeu_ps(args.out + r, row_mask(args.rows - r), acc[p]);
  }
}

template <class Weight>
void decode(const MatmulArgs& args) {
  const size_t stride = Weight::stride(args.cols);
  const uint8_t* panel = args.panels;
  size_t row = 0;
  for (; row + kPanelRows < args.rows; row += 2 * kPanelRows, panel += 2 * stride) {
    decode_panels<Weight, 2>(args, panel, row);
  }
  if (row < args.rows) decode_panels<Weight, 1>(args, panel, row);
}

// --- more tokens ----------------------------------------------------------------------------------------------------

struct Outputs {
  float* out;
  size_t stride;
  __mmask16 mask;
  bool first;  // first chunk of the columns: accumulators begin at zero
};

// The bytes that the next panels will be made of, fetched into L2 while these are multiplied: unfolding them would
// otherwise wait for memory, a fifth of the time of a large matrix.
struct Ahead {
  const uint8_t* next[2] = {};
  size_t lines = 0;  // of each that are left
  size_t every = 1;  // so many columns

  // Spreads what is left over `columns` columns.
  void pace(size_t columns) { every = lines == 0 || columns < lines ? 1 : columns / lines; }
  RIDGE_INLINE void line() {
    if (lines == 0) return;
    --lines;
#pragma GCC unroll 2
    for (const uint8_t*& p : next) {
      _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
      p += 64;
    }
  }
};

// w: panels × [columns, 16]; x: [columns, tokens]. Two panels share each broadcast activation: with one, the loads of
// 12 broadcasts per 12 multiply-adds were the bound (169 → 195 GFLOP/s in L1).
template <int panels, int tokens>
void multiply_block(const float* const* w, size_t columns, const float* x, const Outputs* o, Ahead& ahead) {
  __m512 acc[panels][tokens];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 12
    for (int t = 0; t < tokens; ++t) {
      acc[p][t] = o[p].first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(o[p].mask, o[p].out + t * o[p].stride);
    }
  }
  size_t until = ahead.every;
  for (size_t c = 0; c < columns; ++c, x += tokens) {
    if (--until == 0) {
      until = ahead.every;
      ahead.line();
    }
    __m512 weight[panels];
#pragma GCC unroll 2
    for (int p = 0; p < panels; ++p) weight[p] = _mm512_loadu_ps(w[p] + kPanelRows * c);
#pragma GCC unroll 12
    for (int t = 0; t < tokens; ++t) {
      const __m512 activation = _mm512_set1_ps(x[t]);
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) acc[p][t] = _mm512_fmadd_ps(weight[p], activation, acc[p][t]);
    }
  }
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 12
    for (int t = 0; t < tokens; ++t) _mm512_mask_storeu_ps(o[p].out + t * o[p].stride, o[p].mask, acc[p][t]);
  }
}

// Cuts tokens into blocks: f.operator()<n>(first) for each block of n tokens.
template <class F>
RIDGE_INLINE void for_blocks(size_t tokens, const F& f) {
  size_t t = 0;
  for (; t + kTokenBlock <= tokens; t += kTokenBlock) f.template operator()<kTokenBlock>(t);
  for (; t + 4 <= tokens; t += 4) f.template operator()<4>(t);
  if (tokens - t == 3) return f.template operator()<3>(t);
  if (tokens - t == 2) return f.template operator()<2>(t);
  if (tokens - t == 1) return f.template operator()<1>(t);
}

// One block of n tokens as [columns, n].
template <int n>
RIDGE_INLINE void pack_block(const float* x, size_t stride, size_t columns, float* out) {
  size_t c = 0;
  if constexpr (n % 4 == 0) {
    for (; c + 4 <= columns; c += 4) {
#pragma GCC unroll 3
      for (int i = 0; i < n; i += 4) Vec::transpose4(x + i * stride + c, stride, out + c * n + i, n);
    }
  }
  for (; c < columns; ++c) {
    for (size_t i = 0; i < n; ++i) out[c * n + i] = x[i * stride + c];
  }
}

// A block of n tokens that begins at token t lies at packed + t · columns.
void pack_activations(const float* x, size_t stride, size_t tokens, size_t columns, float* packed) {
  for_blocks(tokens, [&]<int n>(size_t t) { pack_block<n>(x + t * stride, stride, columns, packed + t * columns); });
}

// Activations that are needed next, fetched into L2 while the present ones are multiplied: they are short pieces of
// many rows, which no hardware follows.
struct NextActivations {
  const float* x;
  size_t stride, rows, row_lines;
  size_t row = 0, line = 0;

  RIDGE_INLINE void fetch(size_t lines) {
    for (; lines > 0 && row < rows; --lines) {
      _mm_prefetch(reinterpret_cast<const char*>(x + row * stride) + 64 * line, _MM_HINT_T1);
      if (++line == row_lines) line = 0, ++row;
    }
  }
};

// Which tokens and columns of a product are computed now. Their activations are packed: those of a block of n tokens
// from `token` + t on lie at packed + t · per_token + n · first_column.
struct Chunk {
  const float* packed;
  size_t per_token, first_column;
  size_t token, tokens, col, count;
  size_t fetched_lines;  // of the next activations, by each block of tokens
};

// Two panels from a row on or, behind the last, the first two with the next columns.
template <class Weight>
RIDGE_INLINE Ahead next_panels(const MatmulArgs& args, const Chunk& chunk, size_t row) {
  size_t col = chunk.col;
  if (row >= args.rows) {
    row = 0;
    col += chunk.count;
  }
  if (col >= args.cols) return {};
  const size_t end = args.cols - col < kChunkColumns ? args.cols : col + kChunkColumns;
  const size_t begin = Weight::bytes_before(col), stride = Weight::stride(args.cols);
  const uint8_t* panel = args.panels + row / kPanelRows * stride + begin;
  const uint8_t* other = row + kPanelRows < args.rows ? panel + stride : panel;
  return {.next = {panel, other}, .lines = (Weight::bytes_before(end) - begin + 63) / 64};
}

template <class Weight, int panels>
RIDGE_INLINE void multiply_panels(const MatmulArgs& args, const Chunk& chunk, size_t row, Floats* buffers,
                                  NextActivations& next) {
  Ahead ahead = next_panels<Weight>(args, chunk, row + panels * kPanelRows);
  ahead.pace(chunk.count * ((chunk.tokens + kTokenBlock - 1) / kTokenBlock));
  const size_t stride = Weight::stride(args.cols);
  const uint8_t* first = args.panels + row / kPanelRows * stride;
  const float* w[panels];
  Outputs outputs[panels];
#pragma GCC unroll 2
  for (int p = 0; p < panels; ++p) {
    const size_t r = row + p * kPanelRows;
    w[p] = Weight::floats(first + p * stride, chunk.col, chunk.count, buffers[p]);
    outputs[p] = {args.out + chunk.token * args.out_stride + r, args.out_stride, row_mask(args.rows - r),
                  chunk.col == 0};
  }
  for_blocks(chunk.tokens, [&]<int n>(size_t t) {
    Outputs block[panels];
#pragma GCC unroll 2
    for (int p = 0; p < panels; ++p) {
      block[p] = outputs[p];
      block[p].out += t * args.out_stride;
    }
    next.fetch(chunk.fetched_lines);
    const float* x = chunk.packed + t * chunk.per_token + n * chunk.first_column;
    multiply_block<panels, n>(w, chunk.count, x, block, ahead);
  });
}

// The activations behind those of a chunk: its tokens' next columns or the next tokens' first.
NextActivations next_activations(const MatmulArgs& args, const Chunk& chunk, size_t most_tokens) {
  size_t token = chunk.token, col = chunk.col + chunk.count, tokens = chunk.tokens;
  if (col >= args.cols) {
    token += tokens;
    col = 0;
    tokens = args.tokens - token < most_tokens ? args.tokens - token : most_tokens;
  }
  const size_t columns = args.cols - col < kChunkColumns ? args.cols - col : kChunkColumns;
  if (args.x_packed != nullptr) {  // whole blocks as rows
    return {.x = args.x_packed + token * args.cols + col * kTokenBlock,
            .stride = args.cols * kTokenBlock,
            .rows = tokens / kTokenBlock,
            .row_lines = columns * kTokenBlock / 16};
  }
  return {.x = args.x + token * args.x_stride + col,
          .stride = args.x_stride,
          .rows = tokens,
          .row_lines = (columns + 15) / 16};
}

template <class Weight>
void prefill(const MatmulArgs& args) {
  float packed[kChunkColumns * Weight::kMaxTokens];
  Floats buffers[2];
  const size_t most_tokens = args.x_packed != nullptr ? kPackedTokens : Weight::kMaxTokens;
  for (size_t token = 0; token < args.tokens; token += most_tokens) {
    const size_t tokens = args.tokens - token < most_tokens ? args.tokens - token : most_tokens;
    for (size_t col = 0; col < args.cols; col += kChunkColumns) {
      const size_t count = args.cols - col < kChunkColumns ? args.cols - col : kChunkColumns;
      Chunk chunk = {packed, count, 0, token, tokens, col, count, 0};
      if (args.x_packed != nullptr) {
        chunk.packed = args.x_packed + token * args.cols;
        chunk.per_token = args.cols;
        chunk.first_column = col;
      } else {
        pack_activations(args.x + token * args.x_stride + col, args.x_stride, tokens, count, packed);
      }
      NextActivations next = next_activations(args, chunk, most_tokens);
      const size_t blocks = (tokens + kTokenBlock - 1) / kTokenBlock, pairs = (args.rows + 31) / 32;
      chunk.fetched_lines = (next.rows * next.row_lines + blocks * pairs - 1) / (blocks * pairs);
      size_t row = 0;
      for (; row + kPanelRows < args.rows; row += 2 * kPanelRows) {
        multiply_panels<Weight, 2>(args, chunk, row, buffers, next);
      }
      if (row < args.rows) multiply_panels<Weight, 1>(args, chunk, row, buffers, next);
    }
  }
}

template <class Weight>
void matmul_float(const MatmulArgs& args) {
  if (args.tokens == 1) {
    decode<Weight>(args);
  } else {
    prefill<Weight>(args);
  }
}

// --- transpose ------------------------------------------------------------------------------------------------------

template <class Weight>
void transpose_as(const TransposeArgs& args) {
  Floats buffer;
  simd::Latent<Vec>::transpose(args, Weight::stride(args.cols), [&](const uint8_t* panel, size_t col, size_t count) {
    return Weight::floats(panel, col, count, buffer);
  });
}

void transpose(const TransposeArgs& args) {
  switch (args.type) {
    case Type::F32:
      return transpose_as<WeightF32>(args);
    case Type::F16:
      return transpose_as<WeightF16>(args);
    case Type::BF16:
      return transpose_as<WeightBF16>(args);
    case Type::Q4_0:
      return transpose_as<Dequantized<Q4_0>>(args);
    case Type::Q4_K:
      return transpose_as<Dequantized<Q4_K>>(args);
    case Type::Q5_0:
      return transpose_as<Dequantized<Q5_0>>(args);
    case Type::Q5_K:
      return transpose_as<Dequantized<Q5_K>>(args);
    case Type::Q6_K:
      return transpose_as<Dequantized<Q6_K>>(args);
    case Type::Q8_0:
      return transpose_as<Dequantized<Q8_0>>(args);
    case Type::IQ4_NL:
      return transpose_as<Dequantized<IQ4_NL>>(args);
    case Type::IQ4_XS:
      return transpose_as<Dequantized<IQ4_XS>>(args);
    default:
      break;
  }
  Floats buffer;  // rarer types by the reference's values
  simd::Latent<Vec>::transpose(args, panel_bytes(args.type, args.cols),
                               [&](const uint8_t* panel, size_t col, size_t count) {
                                 dequantize_panel(args.type, panel, args.cols, col, count, buffer.values);
                                 return static_cast<const float*>(buffer.values);
                               });
}

}  // namespace

#define RIDGE_ENTRY(type, ...)                                                                                    \
  {                                                                                                               \
    Op::matmul_float, Isa::avx512, Type::type, kBitAvx2Fma | kBitAvx512, RIDGE_KERNEL(matmul_float<__VA_ARGS__>), \
        "avx512"                                                                                                  \
  }

const KernelEntry kMatmulFloatEntries[] = {
    RIDGE_ENTRY(F32, WeightF32),
    RIDGE_ENTRY(F16, WeightF16),
    RIDGE_ENTRY(BF16, WeightBF16),
    RIDGE_ENTRY(Q4_0, Dequantized<Q4_0>),
    RIDGE_ENTRY(Q4_1, Dequantized<Q4_1>),
    RIDGE_ENTRY(Q5_0, Dequantized<Q5_0>),
    RIDGE_ENTRY(Q5_1, Dequantized<Q5_1>),
    RIDGE_ENTRY(Q8_0, Dequantized<Q8_0>),
    RIDGE_ENTRY(Q2_K, Dequantized<Q2_K>),
    RIDGE_ENTRY(Q3_K, Dequantized<Q3_K>),
    RIDGE_ENTRY(Q4_K, Dequantized<Q4_K>),
    RIDGE_ENTRY(Q5_K, Dequantized<Q5_K>),
    RIDGE_ENTRY(Q6_K, Dequantized<Q6_K>),
    RIDGE_ENTRY(IQ4_NL, Dequantized<IQ4_NL>),
    RIDGE_ENTRY(IQ4_XS, Dequantized<IQ4_XS>),
    RIDGE_ENTRY(MXFP4, Dequantized<MXFP4>),
    RIDGE_ENTRY(IQ1_S, Dequantized<IQ1_S>),
    RIDGE_ENTRY(IQ1_M, Dequantized<IQ1_M>),
    RIDGE_ENTRY(IQ2_XXS, Dequantized<IQ2_XXS>),
    RIDGE_ENTRY(IQ2_XS, Dequantized<IQ2_XS>),
    RIDGE_ENTRY(IQ2_S, Dequantized<IQ2_S>),
    RIDGE_ENTRY(IQ3_XXS, Dequantized<IQ3_XXS>),
    RIDGE_ENTRY(IQ3_S, Dequantized<IQ3_S>),
    RIDGE_ENTRY(TQ1_0, Dequantized<TQ1_0>),
    RIDGE_ENTRY(TQ2_0, Dequantized<TQ2_0>),
    {Op::pack_activations, Isa::avx512, Type::F32, kBitAvx2Fma | kBitAvx512, RIDGE_KERNEL(pack_activations), "avx512"},
};
const size_t kMatmulFloatCount = sizeof(kMatmulFloatEntries) / sizeof(kMatmulFloatEntries[0]);

const KernelEntry kTransposeEntries[] = {
    {Op::transpose, Isa::avx512, Type::F32, kBitAvx2Fma | kBitAvx512, RIDGE_KERNEL(transpose), "avx512"},
};
const size_t kTransposeCount = sizeof(kTransposeEntries) / sizeof(kTransposeEntries[0]);

}  // namespace ridge::avx512
