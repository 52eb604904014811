// Template source to tokens: text, tags, and what stands inside tags. White space control happens here: `-` and `+`
// next to a tag, and as chat templates expect it, trim_blocks and lstrip_blocks on, keep_trailing_newline off.
//
// Not for: what tokens mean (jinja_parser.h).
//
//   std::string source = normalize_newlines(file);
//   std::vector<Token> tokens = RIDGE_TRY(tokenize(source));   // ends with Token::Kind::end
//   Error error = error_at(source, tokens[3].at, "unexpected '+'");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge::jinja {

struct Token {
  enum class Kind : uint8_t {
    data,            // text between tags, in `text`
    variable_begin,  // {{
    variable_end,    // }}
    block_begin,     // {%
    block_end,       // %}
    name,
    string,  // escapes resolved
    integer,
    real,
    op,  // in `text`
    end,
  };
  Kind kind = Kind::end;
  uint32_t at = 0;  // byte offset in the source
  std::string text = {};
  int64_t integer = 0;
  double real = 0;

  bool is(Kind wanted, std::string_view value) const { return kind == wanted && text == value; }
};

// \r\n and \r become \n, and one newline at the very end goes.
std::string normalize_newlines(std::string_view source);

Result<std::vector<Token>> tokenize(std::string_view source);

// A bad-input error that begins "chat template, line L, column C: ".
Error error_at(std::string_view source, uint32_t at, std::string_view message);

}  // namespace ridge::jinja
