// llama: the plain pre-norm decoder (docs/models/llama.md). SmolLM2, Llama 2 and 3, Mistral and their kin.
// qwen2 and qwen3 differ in where rotary pairs lie and in what their files hold (biases, head norms); smollm3 leaves
// every fourth layer without rotary embedding (docs/models/smollm3.md).
#include "model/plain_decoder.h"

namespace ridge {
namespace {

Result<std::unique_ptr<Model>> make(ModelBuilder& b, RopePairs pairs, const AttentionNeeds& needs) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  return make_plain_decoder(b, c, RIDGE_TRY(load_plain_parts(b, c, pairs, needs)));
}

}  // namespace

Result<std::unique_ptr<Model>> make_llama(ModelBuilder& b) {
  const uint32_t experts = RIDGE_TRY(b.integer("expert_count", 0));
  return experts > 0 ? make_llama_with_experts(b) : make(b, RopePairs::neighbours, {});
}
Result<std::unique_ptr<Model>> make_qwen2(ModelBuilder& b) { return make(b, RopePairs::halves, {.biases = true}); }
Result<std::unique_ptr<Model>> make_qwen3(ModelBuilder& b) { return make(b, RopePairs::halves, {.head_norms = true}); }

Result<std::unique_ptr<Model>> make_smollm3(ModelBuilder& b) {
  constexpr uint32_t kStep = 4;  // in no key
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  PlainParts parts = RIDGE_TRY(load_plain_parts(b, c, RopePairs::neighbours, {}));
  for (uint32_t il = 0; il < c.layers; ++il) parts.layers[il].spec.rope = (il + 1) % kStep != 0;
  return make_plain_decoder(b, c, std::move(parts));
}

}  // namespace ridge
