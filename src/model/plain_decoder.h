// The plain pre-norm decoder: one forward pass for all architectures that differ only in what their files hold, in
// where rotary pairs lie, or in a few constant factors.
//
// Not for: experts (moe.cpp), norms behind a part (gemma.cpp), latent attention (plm.cpp, deepseek2.cpp).
//
//   ModelConfig c = RIDGE_TRY(b.decoder_config());
//   PlainParts parts = RIDGE_TRY(load_plain_parts(b, c, {.pairs = RopePairs::halves}));
//   return make_plain_decoder(b, c, std::move(parts));
#pragma once

#include <vector>

#include "model/architectures.h"
#include "model/layers.h"

namespace ridge {

struct PlainLayer {
  VectorRef attn_norm, ffn_norm;
  AttentionWeights attention;
  AttentionSpec spec;
  FfnWeights ffn;
};

enum class PlainFfn : uint8_t {
  swiglu,
  reglu,
  relu_squared,  // without a gate
};

struct PlainParts {
  std::vector<PlainLayer> layers;
  PlainFfn ffn = PlainFfn::swiglu;
  RopeTable rope;
  // Factors of the embedding, of what each part adds to x, and of the logits.
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
};

struct PlainNeeds {
  RopePairs pairs = RopePairs::neighbours;
  AttentionNeeds attention;
  PlainFfn ffn = PlainFfn::swiglu;
  bool yarn = false;  // rope.scaling.type may be yarn, as programs that know no better apply it
};

// Layers with separate projections; rope.freq_base, a linear factor, rope_freqs.weight.
Result<PlainParts> load_plain_parts(ModelBuilder& b, const ModelConfig& c, const PlainNeeds& needs);

// Reads the embedding, the output norm and the head.
Result<std::unique_ptr<Model>> make_plain_decoder(ModelBuilder& b, const ModelConfig& c, PlainParts parts);

}  // namespace ridge
