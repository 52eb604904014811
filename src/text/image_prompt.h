// A prompt as the two tokenizers of Anima see it: Qwen's ids for the text encoder, T5's for the text adapter, and a
// weight for each of T5's.
//
// Stretches of different weight (prompt_weights.h) are tokenized one by one, as the tools do with which the model's
// pictures were made. Qwen's side then ignores the weights. Neither side has a template; T5's ends with </s>. An empty
// prompt is the one token <|endoftext|> for Qwen, and </s> alone for T5.
//
//   ImagePrompt p = RIDGE_TRY(encode_image_prompt(*qwen, *t5, "a (red:1.2) apple"));
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ridge {

inline constexpr size_t kImagePromptTokens = 512;

struct ImagePrompt {
  std::vector<TokenId> qwen;      // 1 … 512
  std::vector<TokenId> t5;        // 1 … 512, the last one </s>
  std::vector<float> t5_weights;  // one for each of t5
  // How many ids a longer prompt lost, for a note to its writer.
  size_t qwen_cut = 0, t5_cut = 0;
};

// Bad input if the vocabularies lack <|endoftext|> or an end token: they are others than Anima's.
Result<ImagePrompt> encode_image_prompt(const Tokenizer& qwen, const Tokenizer& t5, std::string_view prompt);

}  // namespace ridge
