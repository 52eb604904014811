#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "text/jinja_text.h"

namespace ridge::jinja {
namespace {

// Longest first, so that `**` is not read as two `*`.
constexpr std::array<std::string_view, 26> kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                                         "/",  "%",  "~",  ">",  "<",  "=",  "(", ")", "[",
                                                         "]",  "{",  "}",  ".",  ":",  "|",  ",", ";"};

constexpr size_t kMaxName = 256;  // comparing names costs one step, however long they are

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (position_ < source_.size()) RIDGE_TRY(text_and_tag());
    push(Token::Kind::end);
    return std::move(tokens_);
  }

 private:
  bool at(std::string_view what, size_t offset = 0) const {
    return source_.substr(position_ + offset).starts_with(what);
  }
  Error fail(size_t where, std::string_view message) const {
    return error_at(source_, static_cast<uint32_t>(where), message);
  }
  Token& push(Token::Kind kind, std::string text = {}) {
    tokens_.push_back({.kind = kind, .at = static_cast<uint32_t>(position_), .text = std::move(text)});
    return tokens_.back();
  }

  void skip_space() {
    while (position_ < source_.size()) {
      size_t after = position_;
      if (!text::is_space(text::next(source_, after))) return;
      position_ = after;
    }
  }

  // Text up to the next tag, then the tag.
  Result<void> text_and_tag() {
    const size_t begin = position_;
    size_t open = source_.find('{', begin);
    while (open != std::string_view::npos && open + 1 < source_.size() && source_[open + 1] != '{' &&
           source_[open + 1] != '%' && source_[open + 1] != '#') {
      open = source_.find('{', open + 1);
    }
    if (open == std::string_view::npos || open + 1 >= source_.size()) {
      push(Token::Kind::data, std::string(source_.substr(begin)));
      position_ = source_.size();
      return {};
    }
    const char tag = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    push_data(begin, open, tag, sign);
    position_ = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (tag == '#') return comment(open);
    if (tag == '{') {
      push(Token::Kind::variable_begin).at = static_cast<uint32_t>(open);
      return inside(open, Token::Kind::variable_end);
    }
    if (RIDGE_TRY(raw(open))) return {};
    push(Token::Kind::block_begin).at = static_cast<uint32_t>(open);
    return inside(open, Token::Kind::block_end);
  }

  // The text [begin, open) before a tag, less the white space that the tag takes away on its left.
  void push_data(size_t begin, size_t open, char tag, char sign) {
    std::string_view data = source_.substr(begin, open - begin);
    if (sign == '-') {
      data = text::strip(data, std::nullopt, {.right = true});
    } else if (sign != '+' && tag != '{') {
      const size_t line = data.rfind('\n') + 1;  // npos + 1 is 0
      const bool begins_line = line > 0 || line_starting_;
      if (begins_line && text::strip(data.substr(line), std::nullopt, {.left = true}).empty())
        data = data.substr(0, line);
    }
    if (!data.empty()) push(Token::Kind::data, std::string(data));
  }

  // Behind the closing mark of a tag: `-` takes all white space, otherwise (trim_blocks) one newline goes.
  void after_tag(char sign) {
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && position_ < source_.size() && source_[position_] == '\n') {
      ++position_;
    }
    line_starting_ = source_[position_ - 1] == '\n';
  }

  Result<void> comment(size_t open) {
    const size_t close = source_.find("#}", position_);
    if (close == std::string_view::npos) return fail(open, "this comment has no end; close it with #}");
    const char sign = close > position_ ? source_[close - 1] : '\0';
    position_ = close + 2;
    after_tag(sign);
    return {};
  }

  // {% raw %} … {% endraw %}: true if this tag is one. The text inside is copied.
  Result<bool> raw(size_t open) {
    const size_t start = position_;
    const auto word = [&](std::string_view name) {
      skip_space();
      if (!at(name)) return false;
      position_ += name.size();
      skip_space();
      return at("%}") || at("-%}") || at("+%}");
    };
    if (!word("raw") || at("+%}")) {
      position_ = start;
      return false;
    }
    const bool strips = at("-");
    position_ += strips ? 3 : 2;
    if (strips) skip_space();
    line_starting_ = source_[position_ - 1] == '\n';
    const size_t begin = position_;
    for (size_t tag = source_.find("{%", begin); tag != std::string_view::npos; tag = source_.find("{%", tag + 2)) {
      position_ = tag + 2;
      const char sign = position_ < source_.size() ? source_[position_] : '\0';
      if (sign == '-' || sign == '+') ++position_;
      if (!word("endraw")) continue;
      const char end_sign = source_[position_];
      const size_t after = position_ + (end_sign == '%' ? 2 : 3);
      position_ = begin;
      push_data(begin, tag, '%', sign);
      position_ = after;
      after_tag(end_sign);
      return true;
    }
    return fail(open, "this raw block has no end; close it with {% endraw %}");
  }

  // The tokens of a tag up to its closing mark.
  Result<void> inside(size_t open, Token::Kind end_kind) {
    const std::string_view close = end_kind == Token::Kind::block_end ? "%}" : "}}";
    std::string brackets;  // closing brackets still owed
    while (true) {
      skip_space();
      if (position_ >= source_.size()) return fail(open, fmt::format("this tag has no end; close it with {}", close));
      const char c = source_[position_];
      const bool signed_close = (c == '-' || (c == '+' && end_kind == Token::Kind::block_end)) && at(close, 1);
      if (brackets.empty() && (at(close) || signed_close)) {
        push(end_kind);
        position_ += signed_close ? 3 : 2;
        if (end_kind == Token::Kind::block_end) {
          after_tag(c);
        } else {
          if (c == '-') skip_space();
          line_starting_ = source_[position_ - 1] == '\n';
        }
        return {};
      }
      if (is_digit(c)) {
        RIDGE_TRY(number());
      } else if (is_name_start(c)) {
        const size_t begin = position_;
        Token& token = push(Token::Kind::name);
        while (position_ < source_.size() && is_name_part(source_[position_])) ++position_;
        token.text = source_.substr(begin, position_ - begin);
        if (token.text.size() > kMaxName) return fail(begin, fmt::format("a name of more than {} bytes", kMaxName));
      } else if (c == '"' || c == '\'') {
        RIDGE_TRY(string());
      } else {
        RIDGE_TRY(op(brackets));
      }
    }
  }

  Result<void> op(std::string& brackets) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view o) { return at(o); });
    if (found == kOperators.end()) {
      size_t after = position_;
      text::next(source_, after);
      return fail(position_,
                  fmt::format("unexpected character {}", text::repr(source_.substr(position_, after - position_))));
    }
    const char c = found->front();
    if (c == '(') brackets += ')';
    if (c == '[') brackets += ']';
    if (c == '{') brackets += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty()) return fail(position_, fmt::format("unexpected '{}': no bracket is open", c));
      if (brackets.back() != c)
        return fail(position_, fmt::format("unexpected '{}', expected '{}'", c, brackets.back()));
      brackets.pop_back();
    }
    push(Token::Kind::op, std::string(*found));
    position_ += found->size();
    return {};
  }

  // Digits with single underscores between them, without these.
  std::string digits() {
    std::string out;
    while (position_ < source_.size()) {
      const char c = source_[position_];
      const bool joins = c == '_' && position_ + 1 < source_.size() && is_digit(source_[position_ + 1]);
      if (!is_digit(c) && !joins) break;
      if (is_digit(c)) out += c;
      ++position_;
    }
    return out;
  }

  Result<void> number() {
    const size_t begin = position_;
    const char letter = position_ + 1 < source_.size() ? static_cast<char>(source_[position_ + 1] | 0x20) : '\0';
    const int base = source_[begin] != '0' ? 10 : letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) return prefixed_number(base);
    // "1.items" is not a fraction, and the digit of "a.0.5" is an index.
    const bool after_dot =
        !tokens_.empty() && tokens_.back().is(Token::Kind::op, ".") && tokens_.back().at + 1 == begin;
    std::string digits_read = digits();
    bool is_real = false;
    const auto digit_at = [&](size_t offset) {
      return position_ + offset < source_.size() && is_digit(source_[position_ + offset]);
    };
    if (!after_dot && at(".") && digit_at(1)) {
      ++position_;
      digits_read += '.' + digits();
      is_real = true;
    }
    if (!after_dot && (at("e") || at("E"))) {
      const size_t sign = at("+", 1) || at("-", 1) ? 1 : 0;
      if (digit_at(1 + sign)) {
        digits_read += at("-", 1) ? "e-" : "e";
        position_ += 1 + sign;
        digits_read += digits();
        is_real = true;
      }
    }
    tokens_.push_back({.kind = is_real ? Token::Kind::real : Token::Kind::integer, .at = static_cast<uint32_t>(begin)});
    const char* end = digits_read.data() + digits_read.size();
    const std::errc error = is_real ? std::from_chars(digits_read.data(), end, tokens_.back().real).ec
                                    : std::from_chars(digits_read.data(), end, tokens_.back().integer).ec;
    if (error != std::errc()) return fail(begin, "this number is too large; integers have 64 bits");
    tokens_.back().text = digits_read;
    return {};
  }

  Result<void> prefixed_number(int base) {
    const size_t begin = position_;
    position_ += 2;
    std::string digits_read;
    while (position_ < source_.size()) {
      const char c = source_[position_];
      const int value = hex_value(c);
      if (c != '_' && (value < 0 || value >= base)) break;
      if (c != '_') digits_read += c;
      ++position_;
    }
    tokens_.push_back({.kind = Token::Kind::integer, .at = static_cast<uint32_t>(begin)});
    const char* end = digits_read.data() + digits_read.size();
    if (std::from_chars(digits_read.data(), end, tokens_.back().integer, base).ec != std::errc()) {
      return fail(begin, "this is no integer of at most 64 bits");
    }
    tokens_.back().text = digits_read;
    return {};
  }

  Result<void> string() {
    const size_t begin = position_;
    const char quote = source_[position_++];
    std::string out;
    while (position_ < source_.size() && source_[position_] != quote) {
      if (source_[position_] != '\\') {
        out += source_[position_++];
        continue;
      }
      ++position_;
      if (position_ >= source_.size()) break;
      RIDGE_TRY(escape(out));
    }
    if (position_ >= source_.size()) return fail(begin, fmt::format("this string has no end; close it with {}", quote));
    tokens_.push_back({.kind = Token::Kind::string, .at = static_cast<uint32_t>(begin), .text = std::move(out)});
    ++position_;
    return {};
  }

  // What follows a backslash, as in Python.
  Result<void> escape(std::string& out) {
    constexpr std::string_view kLetters = "abfnrtv\\'\"\n";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[position_];
    const size_t known = kLetters.find(c);
    if (known != std::string_view::npos) {
      if (known < kMeanings.size()) out += kMeanings[known];  // an escaped newline is nothing
      ++position_;
      return {};
    }
    const size_t hex_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (hex_digits > 0) return unicode_escape(out, hex_digits);
    if (c >= '0' && c <= '7') {
      char32_t code = 0;
      for (int i = 0; i < 3 && position_ < source_.size() && source_[position_] >= '0' && source_[position_] <= '7';
           ++i) {
        code = code * 8 + static_cast<char32_t>(source_[position_++] - '0');
      }
      text::append(out, code);
      return {};
    }
    out += '\\';  // Python keeps what it does not know
    out += c;
    ++position_;
    return {};
  }

  Result<void> unicode_escape(std::string& out, size_t hex_digits) {
    const size_t begin = position_ - 1;
    char32_t code = 0;
    for (size_t i = 0; i < hex_digits; ++i) {
      ++position_;
      const int value = position_ < source_.size() ? hex_value(source_[position_]) : -1;
      if (value < 0) return fail(begin, fmt::format("this escape needs {} hexadecimal digits", hex_digits));
      code = code * 16 + static_cast<char32_t>(value);
    }
    ++position_;
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return fail(begin, "this escape is no Unicode character");
    text::append(out, code);
    return {};
  }

  std::string_view source_;
  size_t position_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

Error error_at(std::string_view source, uint32_t at, std::string_view message) {
  const std::string_view before = source.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = 1 + text::length(before.substr(before.rfind('\n') + 1));
  return bad_input(fmt::format("chat template, line {}, column {}: {}", line, column, message), at);
}

}  // namespace ridge::jinja
