// granite and minicpm: the plain decoder with constant factors on the embedding, on what each part adds, on the scores
// and on the logits (docs/models/granite.md).
#include <fmt/format.h>

#include "model/plain_decoder.h"

namespace ridge {
namespace {

Result<float> positive(ModelBuilder& b, std::string_view suffix, float fallback) {
  float value = RIDGE_TRY(b.number(suffix, fallback));
  if (value > 0) return value;
  return bad_input(fmt::format("{}: key '{}' is {}, expected a number above 0{}", b.metadata().where, b.key(suffix),
                               value, value == 0 ? ": is it missing? A newer converter writes it" : ""));
}

}  // namespace

Result<std::unique_ptr<Model>> make_granite(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  PlainParts parts = RIDGE_TRY(load_plain_parts(b, c, {}));
  parts.embedding_scale = RIDGE_TRY(positive(b, "embedding_scale", 1.0f));
  parts.residual_scale = RIDGE_TRY(positive(b, "residual_scale", 1.0f));
  parts.logit_scale = 1.0f / RIDGE_TRY(positive(b, "logit_scale", 0.0f));
  float scale = RIDGE_TRY(b.number("attention.scale", 0.0f));
  bool rope = RIDGE_TRY(b.metadata().boolean(b.key("rope.scaling.finetuned"))).value_or(true);
  for (PlainLayer& layer : parts.layers) {
    if (scale != 0) layer.spec.scale = scale;
    layer.spec.rope = rope;
  }
  return make_plain_decoder(b, c, std::move(parts));
}

// Older files lack the factors, and what programs assume in their place differs: all three must be there.
Result<std::unique_ptr<Model>> make_minicpm(ModelBuilder& b) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  PlainParts parts = RIDGE_TRY(load_plain_parts(b, c, {}));
  parts.embedding_scale = RIDGE_TRY(positive(b, "embedding_scale", 0.0f));
  parts.residual_scale = RIDGE_TRY(positive(b, "residual_scale", 0.0f));
  parts.logit_scale = 1.0f / RIDGE_TRY(positive(b, "logit_scale", 0.0f));
  return make_plain_decoder(b, c, std::move(parts));
}

}  // namespace ridge
