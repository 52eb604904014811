// Python's string operations on UTF-8: positions count code points, white space is Unicode's. A byte that is no valid
// UTF-8 counts as one character and is copied as it is.
//
// Not for: tokenising, limits (the callers charge for what these make).
//
//   size_t n = text::length("héé");                       // 3
//   std::string_view s = text::strip("  a ", {}, {.left = true, .right = true});
//   std::string shown = text::repr("it's");               // "it's" with double quotes, as Python prints it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridge::jinja::text {

// The code point at `position`, which moves past it. Bad bytes give 0xDC00 + byte.
char32_t next(std::string_view s, size_t& position);
void append(std::string& out, char32_t character);

size_t length(std::string_view s);
// Byte offset of character `index`; the size of `s` if it has no more than `index`.
size_t offset(std::string_view s, size_t index);
// Byte offset of every code point, and the size at the end.
std::vector<size_t> offsets(std::string_view s);

bool is_space(char32_t c);
bool is_alphabetic(char32_t c);
bool is_digit(char32_t c);

struct Sides {
  bool left = false, right = false;
};
// `characters` absent: white space.
std::string_view strip(std::string_view s, std::optional<std::string_view> characters, Sides sides);

// One code point to one code point (so the German sharp s stays as it is, where Python writes SS).
std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string capitalize(std::string_view s);   // first character upper, the rest lower
std::string title(std::string_view s);        // str.title(): after anything that is no letter
std::string title_words(std::string_view s);  // the `title` filter: after white space and - ( { [ <

// These may be several times as long as `s`: they end early, somewhat past `limit` bytes, for callers that then refuse.
std::string repr(std::string_view s, size_t limit = SIZE_MAX);                     // 'as Python prints it'
std::string json(std::string_view s, bool ensure_ascii, size_t limit = SIZE_MAX);  // "as json.dumps writes it"
std::string html(std::string_view s, size_t limit = SIZE_MAX);                     // & < > ' " escaped
std::string real(double value);                                                    // repr(float): 1.0, 1e+16, inf

}  // namespace ridge::jinja::text
