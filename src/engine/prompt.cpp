#include "engine/prompt.h"

#include <fmt/format.h>

namespace ridge {

Result<Prompt> Prompt::create(const Engine& engine, PromptKind kind) {
  Prompt p;
  p.engine_ = &engine;
  const Metadata& metadata = engine.model().file().metadata();
  auto source = RIDGE_TRY(metadata.string("tokenizer.chat_template"));
  if (kind == PromptKind::raw || !source || source->empty()) return p;
  auto parsed = ChatTemplate::parse(*source);
  if (!parsed.ok()) {
    return bad_input(fmt::format("{}: its chat template is not understood ({}): use --raw to give the text as it is",
                                 metadata.where, parsed.error().message));
  }
  p.template_ = std::move(parsed).value();
  return p;
}

Result<std::vector<TokenId>> Prompt::conversation(const std::vector<ChatMessage>& messages) const {
  const Tokenizer& t = *engine_->tokenizer();
  if (!template_) {
    std::string text;
    for (const ChatMessage& m : messages) text += m.content;
    std::vector<TokenId> ids = t.encode(text, {.add_special = true, .parse_special = false});
    if (t.eos() && ids.size() > 1 && ids.back() == *t.eos()) ids.pop_back();  // the text is to go on
    return ids;
  }
  ChatInput input{.messages = messages, .add_generation_prompt = true, .bos_token = "", .eos_token = ""};
  if (t.bos()) input.bos_token = t.text(*t.bos());
  if (t.eos()) input.eos_token = t.text(*t.eos());
  std::string text = RIDGE_TRY(template_->render(input));
  std::vector<TokenId> ids = t.encode(text, {.add_special = true, .parse_special = true});
  // The template may have written the BOS that the tokenizer adds as well.
  // And an answer cannot follow an EOS that the tokenizer adds at the end.
  if (t.eos() && !ids.empty() && ids.back() == *t.eos() && !text.ends_with(t.text(*t.eos()))) ids.pop_back();
  if (t.bos() && ids.size() >= 2 && ids[0] == *t.bos() && ids[1] == *t.bos()) ids.erase(ids.begin());
  return ids;
}

}  // namespace ridge
