#include "text/chat_template.h"

#include "text/jinja_template.h"

namespace ridge {

struct ChatTemplate::Impl {
  jinja::Template jinja;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  return ChatTemplate(std::make_unique<const Impl>(Impl{RIDGE_TRY(jinja::Template::parse(source))}));
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  using jinja::Entries;
  using jinja::Value;
  const auto text = [](std::string_view s) { return Value::text(std::string(s)); };
  const Value role = text("role");
  const Value content = text("content");
  uint64_t given_bytes = 0;
  std::vector<Value> messages;
  messages.reserve(input.messages.size());
  for (const ChatMessage& message : input.messages) {
    messages.push_back(Value::dict({{role, text(message.role)}, {content, text(message.content)}}));
    given_bytes += message.role.size() + message.content.size();
  }
  // `tools` and `documents` exist and are none, as the tool that templates are written for passes them.
  const Entries globals = {{text("messages"), Value::list(std::move(messages))},
                           {text("tools"), Value::none()},
                           {text("documents"), Value::none()},
                           {text("bos_token"), text(input.bos_token)},
                           {text("eos_token"), text(input.eos_token)},
                           {text("add_generation_prompt"), Value::boolean(input.add_generation_prompt)}};
  // A template copies each message a few times (a + b + c, trim, split); more than this is no honest work.
  constexpr uint64_t kCopies = 64;
  jinja::Settings settings{.now = input.now};
  settings.limits.bytes += kCopies * given_bytes;
  return impl_->jinja.render(globals, settings);
}

}  // namespace ridge
