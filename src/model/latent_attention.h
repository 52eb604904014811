// Attention over latents (MLA: DeepSeek-V2, arXiv:2405.04434, section 2.1): how one slice of heads is computed, in the
// two forms that give the same result but for rounding (docs/models/deepseek2.md).
//
// The cache holds one latent c per position (and a rotated part r that all heads share). Head h has K_h [nope, latent]
// and V_h [value, latent]:
//   expanded (prompt tokens):    k = K_h c, v = V_h c for every visible position, chunk by chunk; then plain attention
//   absorbed (generated tokens): score = (K_hᵀ q) · c + q_rope · r, and out = V_h (Σ p c): nothing is expanded
//
// Not for: projections, norms and rope around it (the architecture's file), or the weights' order (outline.cpp).
//
//   LatentContext context{…};
//   LatentSlice slice = …;                           // heads [begin, end) and where their weights are
//   attend_absorbed(context, slice);
#pragma once

#include "model/compute.h"

namespace ridge {

// Consecutive rows of a weight, in memory: whole panels, or as the file has them.
struct HeadRows {
  Type type = Type::F32;
  Layout layout = Layout::panels;
  const uint8_t* data = nullptr;
  uint32_t cols = 0;
};

// K of a joint file are rows [0, nope) of each head, V the rows behind them; of an absorbed file both are whole.
struct LatentSlice {
  uint32_t head_begin = 0, head_end = 0;
  HeadRows k, v;                        // the first row of head_begin
  uint32_t k_stride = 0, v_stride = 0;  // rows from one head to the next
  uint32_t v_first = 0;                 // row of a head where V begins
  bool joint = false;                   // k is [nope, latent] per head; else [latent, nope]
};

struct LatentContext {
  const LatentCall& call;
  const Kernels& kernels;
  ThreadPool& pool;
  KvCache& cache;
  PassShape shape;
  Rows q, out;
  bool exact = false;
  std::span<float> scratch;    // pool.size() × latent_scratch_floats()
  std::span<float> attention;  // pool.size() × attention_floats()
};

// Scratch of one thread, for passes of up to `tokens` prompt tokens; a multiple of a cache line.
size_t latent_scratch_floats(const LatentCall& call, uint32_t tokens);

void attend_absorbed(const LatentContext& context, const LatentSlice& slice, const LatentTemps& temps);

// temps.merged must be zero before the first slice of a layer.
void attend_expanded(const LatentContext& context, const LatentSlice& slice, const LatentTemps& temps);

}  // namespace ridge
