#include "text/jinja_text.h"

#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace ridge::jinja::text {
namespace {

constexpr char32_t kBadByte = 0xDC00;  // + byte: no code point of well-formed text lies here

template <class Map>
std::string mapped(std::string_view s, Map map) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) append(out, map(next(s, at)));
  return out;
}

char32_t to_upper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t to_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t to_title(char32_t c) { return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_cased(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t kind = category(c);
  return kind != UTF8PROC_CATEGORY_CN && kind != UTF8PROC_CATEGORY_CC && kind != UTF8PROC_CATEGORY_CF &&
         kind != UTF8PROC_CATEGORY_CS && kind != UTF8PROC_CATEGORY_CO && kind != UTF8PROC_CATEGORY_ZL &&
         kind != UTF8PROC_CATEGORY_ZP && kind != UTF8PROC_CATEGORY_ZS;
}

bool contains(std::string_view set, char32_t c) {
  for (size_t at = 0; at < set.size();) {
    if (next(set, at) == c) return true;
  }
  return false;
}

}  // namespace

char32_t next(std::string_view s, size_t& position) {
  const auto first = static_cast<unsigned char>(s[position]);
  if (first < 0x80) {
    ++position;
    return first;
  }
  utf8proc_int32_t code = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(s.data()) + position;
  const utf8proc_ssize_t used = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(s.size() - position), &code);
  if (used <= 0 || code < 0) {
    ++position;
    return kBadByte + first;
  }
  position += static_cast<size_t>(used);
  return static_cast<char32_t>(code);
}

void append(std::string& out, char32_t character) {
  if (character < 0x80) {
    out.push_back(static_cast<char>(character));
    return;
  }
  if (character >= kBadByte && character <= kBadByte + 0xFF) {
    out.push_back(static_cast<char>(character - kBadByte));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  for (utf8proc_ssize_t i = 0; i < size; ++i) out.push_back(static_cast<char>(bytes[i]));
}

size_t length(std::string_view s) {
  size_t count = 0;
  for (size_t at = 0; at < s.size(); ++count) next(s, at);
  return count;
}

size_t offset(std::string_view s, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index && at < s.size(); ++i) next(s, at);
  return at;
}

std::vector<size_t> offsets(std::string_view s) {
  std::vector<size_t> result;
  result.reserve(s.size() + 1);
  for (size_t at = 0; at < s.size(); next(s, at)) result.push_back(at);
  result.push_back(s.size());
  return result;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alphabetic(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) { return c < 0x80 ? (c >= '0' && c <= '9') : category(c) == UTF8PROC_CATEGORY_ND; }

std::string_view strip(std::string_view s, std::optional<std::string_view> characters, Sides sides) {
  const auto drops = [&](char32_t c) { return characters ? contains(*characters, c) : is_space(c); };
  size_t begin = 0;
  while (sides.left && begin < s.size()) {
    size_t after = begin;
    if (!drops(next(s, after))) break;
    begin = after;
  }
  size_t end = s.size();
  while (sides.right && end > begin) {
    size_t last = end - 1;  // step back over at most three continuation bytes
    while (last > begin && end - last < 4 && (static_cast<unsigned char>(s[last]) & 0xC0) == 0x80) --last;
    size_t after = last;
    char32_t c = next(s, after);
    if (after != end) {  // not one well-formed character: its last byte stands alone
      last = end - 1;
      c = kBadByte + static_cast<unsigned char>(s[last]);
    }
    if (!drops(c)) break;
    end = last;
  }
  return s.substr(begin, end - begin);
}

std::string upper(std::string_view s) { return mapped(s, to_upper); }
std::string lower(std::string_view s) { return mapped(s, to_lower); }

std::string capitalize(std::string_view s) {
  bool first = true;
  return mapped(s, [&](char32_t c) {
    const char32_t result = first ? to_title(c) : to_lower(c);
    first = false;
    return result;
  });
}

std::string title(std::string_view s) {
  bool in_word = false;
  return mapped(s, [&](char32_t c) {
    const char32_t result = in_word ? to_lower(c) : to_title(c);
    in_word = is_cased(c);
    return result;
  });
}

std::string title_words(std::string_view s) {
  bool first = true;
  return mapped(s, [&](char32_t c) {
    const char32_t result = first ? to_upper(c) : to_lower(c);
    first = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    return result;
  });
}

std::string repr(std::string_view s, size_t limit) {
  const bool doubled = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < s.size() && out.size() <= limit;) {
    const char32_t c = next(s, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append(out, c);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out += quote;
  return out;
}

std::string json(std::string_view s, bool ensure_ascii, size_t limit) {
  std::string out = "\"";
  for (size_t at = 0; at < s.size() && out.size() <= limit;) {
    const char32_t c = next(s, at);
    const auto code = static_cast<uint32_t>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      default:
        break;
    }
    if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
      out += fmt::format("\\u{:04x}", code);
    } else if (ensure_ascii && c >= 0x10000) {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      append(out, c);
    }
  }
  out += '"';
  return out;
}

std::string html(std::string_view s, size_t limit) {
  std::string out;
  for (const char c : s) {
    if (out.size() > limit) break;
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest digits that read back as the same number, then Python's rule for where an exponent starts.
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  std::from_chars(shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed).ptr;
  std::string out(buffer, fixed);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

}  // namespace ridge::jinja::text
