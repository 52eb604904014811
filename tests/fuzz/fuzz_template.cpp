// Any bytes as a chat template, rendered for a small conversation: text within the limits, or an error with its place.
// Good seeds are the templates in tests/data/templates; -max_len=4096 keeps inputs quick.
#include <cstdint>
#include <ctime>

#include "base/check.h"
#include "text/jinja_template.h"

namespace {

using ridge::jinja::Entries;
using ridge::jinja::Value;

Value message(const char* role, const char* content) {
  return Value::dict({{Value::text("role"), Value::text(role)}, {Value::text("content"), Value::text(content)}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ridge::jinja::Template;
  const auto check_error = [](const ridge::Error& error) {
    RIDGE_CHECK(error.code == ridge::ErrorCode::bad_input, "a template fails as input");
    RIDGE_CHECK(error.message.starts_with("chat template"), "a template's error names its place");
  };
  const ridge::Result<Template> parsed = Template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    check_error(parsed.error());
    return 0;
  }
  const Entries globals = {
      {Value::text("messages"), Value::list({message("system", "Be kind. \xC3\xA9\xFF"),
                                             message("user", " <b>Hi</b>\n"), message("assistant", "")})},
      {Value::text("tools"), Value::none()},
      {Value::text("bos_token"), Value::text("<s>")},
      {Value::text("add_generation_prompt"), Value::boolean(true)}};
  ridge::jinja::Settings settings{.now = std::tm{}};
  settings.limits.steps = 20'000;
  settings.limits.bytes = 1 << 20;
  const ridge::Result<std::string> text = parsed.value().render(globals, settings);
  if (!text.ok()) {
    check_error(text.error());
  } else {
    RIDGE_CHECK(text.value().size() <= settings.limits.bytes, "the output lies within its limit");
  }
  return 0;
}
