// Chat templates: a conversation to the text the model was trained on, by the Jinja template the model file carries.
//
//   auto chat = RIDGE_TRY(ChatTemplate::parse(source));
//   std::string text = RIDGE_TRY(chat.render({.messages = {{"user", "Hi"}}, .add_generation_prompt = true}));
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token = {}, eos_token = {};  // their texts, as templates expect them
  std::optional<std::tm> now = std::nullopt;   // what the template's strftime_now shows; absent: the local time
};

// Immutable and thread-safe once parsed.
class ChatTemplate {
 public:
  // Bad input with line and column for syntax this interpreter does not know.
  static Result<ChatTemplate> parse(std::string_view source);
  // Bad input, with line and column, if the template itself refuses (raise_exception) or fails; limits on output size
  // and steps hold.
  Result<std::string> render(const ChatInput& input) const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace ridge
