// How words become the tokens a model expects: by its chat template, or as plain text. Double BOS is avoided.
//
//   Prompt prompt = RIDGE_TRY(Prompt::create(engine, PromptKind::automatic));
//   std::vector<TokenId> ids = RIDGE_TRY(prompt.conversation({{"user", "Hi"}}));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "text/chat_template.h"

namespace ridge {

enum class PromptKind : uint8_t { automatic /* the template, if there is one */, raw };

class Prompt {
 public:
  // The engine must outlive the prompt. Bad input if the model's template is not understood.
  static Result<Prompt> create(const Engine& engine, PromptKind kind);

  bool is_chat() const { return template_.has_value(); }
  // A model without a template gets the messages' texts one after the other.
  Result<std::vector<TokenId>> conversation(const std::vector<ChatMessage>& messages) const;

 private:
  const Engine* engine_ = nullptr;
  std::optional<ChatTemplate> template_;
};

}  // namespace ridge
