// Lines of sentences: none is longer than the terminal, and no word is lost.
#include "report/wrapped.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace ridge {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(Wrapped, LinesFitAndWordsStay) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += std::string(static_cast<size_t>(i % 17 + 1), static_cast<char>('a' + i % 26)) + " ";
  for (size_t indent : {0u, 4u, 26u}) {
    const std::string out = wrapped(text, indent);
    EXPECT_EQ(words_of(out), words_of(text));
    std::istringstream lines(out);
    std::string line;
    for (size_t n = 0; std::getline(lines, line); ++n) {
      EXPECT_LE(line.size() + (n == 0 ? indent : 0), kTerminalWidth);
      EXPECT_EQ(line.find_first_not_of(' '), n == 0 ? 0 : indent);
    }
  }
}

TEST(Wrapped, CountsCharactersNotBytes) {
  const std::string dots = "\u00b7 \u00b7";  // two bytes each
  std::string text;
  for (int i = 0; i < 20; ++i) text += dots + " ";
  EXPECT_EQ(wrapped(text, 0).find('\n'), std::string::npos) << "79 columns in 119 bytes";
}

TEST(Wrapped, ALongWordStaysWhole) {
  const std::string path(120, 'p');
  EXPECT_EQ(wrapped("see " + path + " now", 2), "see\n  " + path + "\n  now");
  EXPECT_EQ(wrapped("", 4), "");
}

TEST(Wrapped, EscapesWhatIsNotPrintable) { EXPECT_EQ(wrapped("red \x1b[31m", 0), "red \\x1b[31m"); }

}  // namespace
}  // namespace ridge
