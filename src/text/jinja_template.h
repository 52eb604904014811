// A parsed template that can be rendered many times, from several threads.
//
// Not for: what a chat template is given (chat_template.h).
//
//   const Template greeting = RIDGE_TRY(Template::parse("Hello {{ name | upper }}"));
//   std::string text = RIDGE_TRY(greeting.render({{Value::text("name"), Value::text("Ann")}}));
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_lexer.h"
#include "text/jinja_parser.h"
#include "text/jinja_runtime.h"

namespace ridge::jinja {

class Template {
 public:
  static Result<Template> parse(std::string_view text) {
    Template result;
    result.source_ = normalize_newlines(text);
    result.block_ = RIDGE_TRY(jinja::parse(result.source_));
    return result;
  }

  Result<std::string> render(const Entries& globals, const Settings& settings = {}) const {
    return Runtime(source_, settings).render(block_, globals);
  }

 private:
  Template() = default;
  std::string source_;  // for the places in messages
  Block block_;
};

}  // namespace ridge::jinja
