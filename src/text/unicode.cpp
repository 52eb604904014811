#include "text/unicode.h"

#include <utf8proc.h>

#include <array>

namespace ridge {
namespace {

// What the first byte of a character says: its length, and the range of its second byte (which rules out overlong
// forms, surrogates and values past U+10FFFF). Length 0: begins no character.
struct Lead {
  uint32_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

uint8_t byte_at(std::string_view text, size_t pos) { return static_cast<uint8_t>(text[pos]); }

// How many bytes from `pos` agree with the character its first byte announces; 0 if it announces none.
uint32_t good_bytes(std::string_view text, size_t pos, const Lead& lead) {
  if (lead.length == 0) return 0;
  uint32_t good = 1;
  while (good < lead.length && pos + good < text.size()) {
    const uint8_t byte = byte_at(text, pos + good);
    const uint8_t low = good == 1 ? lead.low : 0x80;
    const uint8_t high = good == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) break;
    ++good;
  }
  return good;
}

constexpr bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

uint16_t classes_of_category(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kLetter | kCased | kUpperOrNone;
    case UTF8PROC_CATEGORY_LL:
      return kLetter | kCased | kLowerOrNone;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kUpperOrNone | kLowerOrNone;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kOther | kMark | kUpperOrNone | kLowerOrNone;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kOther | kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kOther | kSymbol;
    default:
      return kOther;
  }
}

uint16_t look_up_classes(uint32_t c) {
  if (is_white_space(c)) return kSpace;
  // Letters of Unicode 15.1 that utf8proc 2.8 (15.0) does not know: CJK extension I.
  if (c >= 0x2EBF0 && c <= 0x2EE5D) return kLetter | kUpperOrNone | kLowerOrNone;
  return classes_of_category(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace

uint16_t char_classes(uint32_t code_point) {
  static const std::array<uint16_t, 128> ascii = [] {
    std::array<uint16_t, 128> table{};
    for (uint32_t c = 0; c < table.size(); ++c) table[c] = look_up_classes(c);
    return table;
  }();
  return code_point < ascii.size() ? ascii[code_point] : look_up_classes(code_point);
}

Char char_at(std::string_view text, size_t pos) {
  if (pos >= text.size()) return {};
  const uint8_t first = byte_at(text, pos);
  if (first < 0x80) return {first, 1, char_classes(first)};
  const Lead lead = lead_of(first);
  if (lead.length == 0 || good_bytes(text, pos, lead) < lead.length) return {0xFFFD, 1, kOther};
  uint32_t value = first & (0x7Fu >> lead.length);
  for (uint32_t i = 1; i < lead.length; ++i) value = value << 6 | (byte_at(text, pos + i) & 0x3Fu);
  return {value, lead.length, char_classes(value)};
}

size_t incomplete_suffix(std::string_view text) {
  for (size_t bytes = 1; bytes <= 3 && bytes <= text.size(); ++bytes) {
    const size_t pos = text.size() - bytes;
    const Lead lead = lead_of(byte_at(text, pos));
    if (lead.length > bytes && good_bytes(text, pos, lead) == bytes) return bytes;
  }
  return 0;
}

void append_utf8(uint32_t c, std::string& out) {
  auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(static_cast<uint8_t>(byte))); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
    return put(0x80 | (c & 0x3F));
  }
  if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    return put(0x80 | (c & 0x3F));
  }
  put(0xF0 | c >> 18);
  put(0x80 | (c >> 12 & 0x3F));
  put(0x80 | (c >> 6 & 0x3F));
  put(0x80 | (c & 0x3F));
}

}  // namespace ridge
