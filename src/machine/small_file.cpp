#include "machine/small_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace ridge {

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr size_t kMost = 4 * 1024 * 1024;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text;
  char part[4096];
  while (text.size() < kMost && (in.read(part, sizeof part) || in.gcount() > 0)) {
    text.append(part, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return std::nullopt;
  return text;
}

std::optional<std::string> read_word(const std::string& path) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::string text = read_small_file(path).value_or("");
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return std::nullopt;
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<uint64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t n = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc()) return std::nullopt;
  return n;
}

std::optional<uint64_t> field_of(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.substr(0, key.size()) == key) return number_at(line.substr(key.size()));
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace ridge
