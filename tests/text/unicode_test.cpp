#include "text/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <random>

namespace ridge {
namespace {

TEST(Unicode, EveryCodePointComesBackFromItsUtf8AndItsPrefixesWait) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    const Char read = char_at(text, 0);
    ASSERT_EQ(read.value, c);
    ASSERT_EQ(read.bytes, text.size());
    ASSERT_EQ(incomplete_suffix(text), 0u) << c;
    for (size_t bytes = 1; bytes < text.size(); ++bytes) {
      ASSERT_EQ(incomplete_suffix("x" + text.substr(0, bytes)), bytes) << c;
    }
  }
}

TEST(Unicode, BadBytesStandAlone) {
  for (const char* bad : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xE2\x96", "\xF0\x9F\x98"}) {
    const Char c = char_at(bad, 0);
    EXPECT_EQ(c.bytes, 1u) << bad;
    EXPECT_EQ(c.value, 0xFFFDu) << bad;
  }
}

TEST(Unicode, AgreesWithAnotherDecoderOnAnyBytes) {
  constexpr uint8_t bytes[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
                               0xDF, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  std::mt19937 random(1);
  for (int round = 0; round < 100000; ++round) {
    utf8proc_uint8_t text[5];
    for (auto& byte : text) byte = bytes[random() % std::size(bytes)];
    utf8proc_int32_t value;
    const utf8proc_ssize_t length = utf8proc_iterate(text, sizeof(text), &value);
    const Char c = char_at({reinterpret_cast<const char*>(text), sizeof(text)}, 0);
    ASSERT_EQ(c.bytes, length > 0 ? static_cast<uint32_t>(length) : 1u);
    ASSERT_EQ(c.value, length > 0 ? static_cast<uint32_t>(value) : 0xFFFDu);
  }
}

TEST(Unicode, ASuffixThatCannotBecomeACharacterDoesNotWait) {
  EXPECT_EQ(incomplete_suffix(""), 0u);
  EXPECT_EQ(incomplete_suffix("\x96\x81"), 0u);
  EXPECT_EQ(incomplete_suffix("\xE0\x80"), 0u);  // overlong already
  EXPECT_EQ(incomplete_suffix("\xED\xA0"), 0u);  // a surrogate already
  EXPECT_EQ(incomplete_suffix("\xFF"), 0u);
  EXPECT_EQ(incomplete_suffix("\xE2\xF0\x9F"), 2u);  // the last one still may
}

TEST(Unicode, EveryCharacterHasOneMainClass) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const unsigned main = char_classes(c) & (kLetter | kNumber | kSpace | kOther);
    ASSERT_TRUE(main != 0 && (main & (main - 1)) == 0) << c;
  }
  EXPECT_EQ(char_at("", 0).classes, 0);
}

TEST(Unicode, Classes) {
  EXPECT_EQ(char_classes('A'), kLetter | kCased | kUpperOrNone);
  EXPECT_EQ(char_classes(U'é'), kLetter | kCased | kLowerOrNone);
  EXPECT_EQ(char_classes(U'你'), kLetter | kUpperOrNone | kLowerOrNone);
  EXPECT_EQ(char_classes(U'½'), kNumber);
  EXPECT_EQ(char_classes(0x3000), kSpace);
  EXPECT_EQ(char_classes(0x0B), kSpace);
  EXPECT_EQ(char_classes(0x1C), kOther);    // a separator to some, but not White_Space
  EXPECT_EQ(char_classes(0x200B), kOther);  // zero width space is none
  EXPECT_EQ(char_classes('!'), kOther | kPunctuation);
  EXPECT_EQ(char_classes('$'), kOther | kSymbol);
  EXPECT_EQ(char_classes(0x301), kOther | kMark | kUpperOrNone | kLowerOrNone);
  EXPECT_EQ(char_classes(0x378), kOther);                                   // unassigned
  EXPECT_EQ(char_classes(0x2EBF0), kLetter | kUpperOrNone | kLowerOrNone);  // new in Unicode 15.1
}

}  // namespace
}  // namespace ridge
