#include "text/image_prompt.h"

#include "text/prompt_weights.h"

namespace ridge {
namespace {

// Cuts to `most` and says how many ids went.
size_t cut(std::vector<TokenId>& ids, size_t most) {
  if (ids.size() <= most) return 0;
  const size_t lost = ids.size() - most;
  ids.resize(most);
  return lost;
}

}  // namespace

Result<ImagePrompt> encode_image_prompt(const Tokenizer& qwen, const Tokenizer& t5, std::string_view prompt) {
  const std::optional<TokenId> empty = qwen.find("<|endoftext|>");
  const std::optional<TokenId> end = t5.eos();
  if (!empty) {
    return bad_input("the tokenizer of the text encoder has no <|endoftext|>: give the tokenizer.json of Qwen3");
  }
  if (!end) return bad_input("the tokenizer of the text adapter has no end token: give the spiece.model of T5");
  ImagePrompt out;
  for (const WeightedText& piece : parse_prompt_weights(prompt)) {
    const EncodeOptions plain = {.add_special = false};
    const std::vector<TokenId> for_qwen = qwen.encode(piece.text, plain), for_t5 = t5.encode(piece.text, plain);
    out.qwen.insert(out.qwen.end(), for_qwen.begin(), for_qwen.end());
    out.t5.insert(out.t5.end(), for_t5.begin(), for_t5.end());
    out.t5_weights.resize(out.t5.size(), piece.weight);
  }
  out.qwen_cut = cut(out.qwen, kImagePromptTokens);
  if (out.qwen.empty()) out.qwen.push_back(*empty);
  out.t5_cut = cut(out.t5, kImagePromptTokens - 1);
  out.t5.push_back(*end);
  out.t5_weights.resize(out.t5.size() - 1);
  out.t5_weights.push_back(1);
  return out;
}

}  // namespace ridge
