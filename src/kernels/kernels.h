// The operations of a forward pass, and the table of the kernels chosen for this CPU.
//
// One list (kernel_list()) names every kernel: operation, weight type, ISA, the CPU features it needs. choose() walks
// it from best to reference once, at start; below that there is no `if (has_avx512)`. Tests compare every entry with
// the scalar one, byte for byte; benchmarks walk the same list.
//
// The arithmetic contract of all kernels (docs/numerics.md):
//  1. Every multiply-add of a forward pass is one explicit fused multiply-add; nothing else is contracted.
//  2. A matrix product has one f32 accumulator per output that runs over k in order:
//       float weights            acc = fma(w[k], x[k], acc)
//       int8 activations, per group g of 32 (or 16) columns, dot exact in int32, S and M as given by panel.h:
//                                acc = fma(float(dot), S[g] * d[b], acc)            d[b]: scale of the activation block
//                                acc = fma(M[g], d[b] * float(sum_g), acc)          only for types with a minimum
//     dot = sum over the group of (code − zero) * q; S, M are exact in f32 (they are products of ≤ 24 significant
//     bits).
//  3. int8 activations: per 32, d = amax / 127 (IEEE), q = round_to_nearest_even(x / d) (IEEE division), 0 if d is 0.
//     −127 ≤ q ≤ 127 always. A NaN or infinity makes d NaN or infinite and all q of its block 0.
//  4. Other reductions use 16 virtual lanes (element i goes to lane i % 16, in order), then the tree
//     i+8, i+4, i+2, i+1.
//  5. exp, tanh and friends are our own polynomials (math.h); libm is not called.
// So the bytes of a result do not depend on the ISA, the number of threads, or how many rows share a call.
//
// This header has plain data only: the kernel files are compiled with their own ISA flags, and an inline function of a
// shared header compiled there could be the copy that the linker keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/panel.h"
#include "tensor/types.h"

namespace ridge {

// Of the contract above: another number where any byte of a forward pass may differ (saved states carry it).
inline constexpr uint32_t kArithmeticVersion = 1;

enum class Isa : uint8_t { scalar, avx2, avx512, neon };

// Activations as int8, per 32 columns. `sums` are of 16 columns each (two per block), so that types with groups of 16
// and of 32 both find theirs. cols_padded = cols rounded up to 32; the padding is zero.
struct Q8Rows {
  int8_t* q;        // [rows, q_stride]
  float* d;         // [rows, d_stride]      cols_padded / 32 used
  int32_t* sums;    // [rows, 2 * d_stride]  sum of q over each 16
  size_t q_stride;  // bytes, multiple of 64
  size_t d_stride;
};

struct MatmulArgs {
  const uint8_t* panels;  // consecutive panels of panel_bytes(type, cols), 64-byte aligned
  size_t rows;            // outputs; ceil(rows / 16) panels, the last may be partly used
  size_t cols;
  size_t tokens;
  const float* x;  // float path: [tokens, x_stride]
  size_t x_stride;
  Q8Rows x8;   // int8 path
  float* out;  // out[t * out_stride + r], overwritten
  size_t out_stride;
  const float* x_packed;  // float path: x as pack_activations leaves it, or nullptr; x is given all the same
};

// How keys and values are kept. q8_0: blocks of 32 dimensions of one position, an f16 scale and 32 signed codes; the
// last block of a head is padded with zeros. A number of any type enters as the float it stands for; code · scale is
// exact.
enum class KvType : uint8_t { f16, f32, bf16, q8_0 };
inline constexpr size_t kKvTypes = 4;

inline constexpr size_t kAttentionChunk = 256;  // positions, from absolute multiples of it

// Attention of the query heads of consecutive tokens that share one key/value head. Token t of the call sees the
// positions before end + t, with a window only the last `window` of them.
// For each token and head: positions are cut at absolute multiples of 256; inside a chunk: scores (one accumulator over
// head_dim, in order; then × scale; then softcap · tanh(s / softcap)), their maximum m, p = exp(s − m), sum l of p by
// rule 4 (lane = position % 16), o = sum of p · v (one accumulator, positions in order). Chunks are merged left to
// right:
//   M' = max(M, m);  L = fma(L, exp(M − M'), l · exp(m − M'));  O likewise.  At the end out = O / L.
// A sink adds exp(sink − M') to L at the end (M' including the sink).
struct AttentionArgs {
  const float* q;  // [tokens][group, q_stride]
  size_t tokens, group;
  size_t q_stride, q_token_stride;
  size_t key_dim, value_dim;
  KvType kv_type;
  const void* k;         // panels of 16 positions: [capacity / 16][kv_bytes(key_dim)][16], see kv_cache.h
  const void* v;         // [capacity][kv_bytes(value_dim)]
  size_t capacity;       // position p lives at p % capacity; a multiple of 16
  size_t end;            // ≥ 1; all positions below end + tokens − 1 that some token sees are stored
  size_t window;         // 0: no window
  float scale, softcap;  // softcap 0: none
  const float* sinks;    // [group] or nullptr
  float* out;            // [tokens][group, out_stride]
  size_t out_stride, out_token_stride;
  // Not nullptr: only chunk number `chunk`, unmerged, for attention_merge. One row of attention_partial_floats() floats
  // for each head of each token: o, then m, then l; l = 0 and the rest anything if it sees nothing of the chunk.
  float* partials;
  size_t chunk;
  // The keys that the caller's next call begins with, 0 bytes for none; that call then says keys_fetched.
  const void* next_keys;
  size_t next_keys_bytes;
  bool keys_fetched;
  float* scratch;  // attention_scratch_floats(tokens · group, key_dim)
};
size_t attention_scratch_floats(size_t rows, size_t key_dim);
size_t attention_partial_floats(size_t value_dim);

// One head of one token from its chunks' partials, in the order of the chunks.
struct AttentionMergeArgs {
  const float* partials;  // [chunks, stride]; the row of this head and token
  size_t chunks, stride, value_dim;
  const float* sink;  // or nullptr
  float* out;         // [value_dim]
};

// Bytes that `dim` numbers of one position take.
size_t kv_bytes(KvType type, size_t dim);

// Every function here obeys the contract above. n is any length; pointers need no alignment unless said.
using MatmulFn = void (*)(const MatmulArgs&);
using PackFn = void (*)(const PackArgs&);
// Activations in the order in which products of many tokens read them, once for all calls that share them: tokens in
// blocks of 12, of the rest 4 at a time, then what is left. A block of n tokens from token t on is [cols, n], at
// packed + t · cols. A part of the tokens that begins at a multiple of 12 may be packed by itself.
using PackActivationsFn = void (*)(const float* x, size_t x_stride, size_t tokens, size_t cols, float* packed);
using DequantizePanelFn = void (*)(const uint8_t* panel, size_t cols, size_t col_begin, size_t col_count, float* out);
using QuantizeFn = void (*)(const float* x, size_t n, int8_t* q, float* d, int32_t* sums);  // one row
using RmsNormFn = void (*)(const float* x, const float* w, size_t n, float eps,
                           float* out);  // x / sqrt(mean(x²) + eps) · w; w may be null; out may be x
using AddFn = void (*)(const float* a, size_t n, float* inout);  // inout += a
using ScaleFn = void (*)(float factor, size_t n, float* inout);
using GluFn = void (*)(const float* gate, const float* up, size_t n, float* out);  // act(gate) · up; out may be gate
// d · scale + shift with d = (x − mean) / sqrt(mean of (x − mean)² + eps), both means by rule 4, the last step fused;
// out may be x
using LayerNormFn = void (*)(const float* x, const float* scale, const float* shift, size_t n, float eps, float* out);
using GeluFn = void (*)(size_t n, float* inout);  // x · Φ(x), the exact form (math.h: gelu_f32)
using AddScaledFn = void (*)(const float* factors, const float* x, size_t n,
                             float* inout);                     // inout += factors · x, fused
using SoftcapFn = void (*)(float cap, size_t n, float* inout);  // cap · tanh(x / cap)
using RopeFn = void (*)(float* head, size_t rot,
                        const float* cos_sin);  // one head, cos_sin[2i], [2i+1] for pair i < rot/2
using AttentionFn = void (*)(const AttentionArgs&);
using AttentionMergeFn = void (*)(const AttentionMergeArgs&);
using StoreKeyFn = void (*)(const float* k, size_t key_dim, void* panels,
                            size_t slot);  // one position's key into the panels
using StoreValueFn = void (*)(const float* v, size_t value_dim, void* rows, size_t slot);

// A matrix in panels becomes its own transpose, as F32 panels: so Wᵀ · x is an ordinary product of matmul_float[F32].
struct TransposeArgs {
  Type type;
  const uint8_t* panels;  // of [rows, cols]
  size_t rows, cols;      // cols is a multiple of 16 (quantised types: of 32)
  float* out;             // panels of [cols, rows]: [cols / 16][rows][16]
};
using TransposeFn = void (*)(const TransposeArgs&);
// One row of attention scores of one chunk (docs/models/deepseek2.md): s × scale, their maximum m, p = exp(s − m) in
// place. Returns the sum of p by rule 4.
using SoftenFn = float (*)(float* scores, size_t n, float scale, float* max);
// One chunk's o [n] with maximum m and sum l into what is there, by the formula of AttentionArgs. merged: M and L; L =
// 0 is nothing yet (the sum of a chunk is at least 1).
using MergeChunkFn = void (*)(const float* o, size_t n, float max, float sum, float* merged, float* out);

// Types are numbered as in GGUF; tables indexed by type have this many entries.
inline constexpr size_t kTypeSlots = 64;

// The kernels chosen for one CPU. Plain pointers; never null for a supported type.
struct Kernels {
  Isa isa;
  MatmulFn matmul_q8[kTypeSlots];     // quantised types, int8 activations
  MatmulFn matmul_float[kTypeSlots];  // every type, float activations (quantised ones are dequantised tile by tile)
  PackFn pack[kTypeSlots];
  QuantizeFn quantize;
  RmsNormFn rms_norm;
  AddFn add;
  ScaleFn scale;
  GluFn swiglu, geglu;  // silu(gate)·up; gelu_tanh(gate)·up
  SoftcapFn softcap;
  RopeFn rope_norm, rope_neox;  // pairs (2i, 2i+1); (i, i + rot/2)
  AttentionFn attention;
  AttentionMergeFn attention_merge;
  StoreKeyFn store_key[kKvTypes];
  StoreValueFn store_value[kKvTypes];
  TransposeFn transpose;
  SoftenFn soften;
  MergeChunkFn merge_chunk;
  LayerNormFn layer_norm;
  GeluFn gelu;
  AddScaledFn add_scaled;
  PackActivationsFn pack_activations;  // nullptr where no product of this ISA reads them so
};

}  // namespace ridge
