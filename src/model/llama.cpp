// llama: the plain pre-norm decoder (docs/models/llama.md). SmolLM2, Llama 2 and 3, Mistral and their kin.
// qwen2 and qwen3 differ in where rotary pairs lie and in what their files hold (biases, head norms); smollm3 leaves
// every fourth layer without rotary embedding (docs/models/smollm3.md); reglu-llama and arcee have another feed-forward
// part (docs/models/reglu-llama.md, arcee.md).
#include "model/plain_decoder.h"

namespace ridge {
namespace {

Result<std::unique_ptr<Model>> make(ModelBuilder& b, const PlainNeeds& needs) {
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  return make_plain_decoder(b, c, RIDGE_TRY(load_plain_parts(b, c, needs)));
}

}  // namespace

Result<std::unique_ptr<Model>> make_llama(ModelBuilder& b) {
  const uint32_t experts = RIDGE_TRY(b.integer("expert_count", 0));
  return experts > 0 ? make_llama_with_experts(b) : make(b, {});
}
Result<std::unique_ptr<Model>> make_qwen2(ModelBuilder& b) {
  return make(b, {.pairs = RopePairs::halves, .attention = {.biases = true}});
}
Result<std::unique_ptr<Model>> make_qwen3(ModelBuilder& b) {
  return make(b, {.pairs = RopePairs::halves, .attention = {.head_norms = true}});
}
Result<std::unique_ptr<Model>> make_reglu_llama(ModelBuilder& b) { return make(b, {.ffn = PlainFfn::reglu}); }
Result<std::unique_ptr<Model>> make_arcee(ModelBuilder& b) {
  return make(b, {.ffn = PlainFfn::relu_squared, .yarn = true});
}

Result<std::unique_ptr<Model>> make_smollm3(ModelBuilder& b) {
  constexpr uint32_t kStep = 4;  // in no key
  ModelConfig c = RIDGE_TRY(b.decoder_config());
  PlainParts parts = RIDGE_TRY(load_plain_parts(b, c, {}));
  for (uint32_t il = 0; il < c.layers; ++il) parts.layers[il].spec.rope = (il + 1) % kStep != 0;
  return make_plain_decoder(b, c, std::move(parts));
}

}  // namespace ridge
