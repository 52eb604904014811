#include "distill/rationales.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/units.h"
#include "format/whole_file.h"

namespace ridge::distill {
namespace {

using Json = nlohmann::json;

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

bool is_item(const Json& j) {
  if (!j.is_object()) return false;
  for (const char* key : {"question", "steps", "answer"}) {
    if (!j.contains(key) || !j[key].is_string()) return false;
  }
  return !trimmed(j["answer"].get<std::string>()).empty();
}

}  // namespace

std::string answer_in(std::string_view reply) {
  constexpr std::string_view kMark = "Answer:";
  const size_t at = reply.find(kMark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = reply.substr(at + kMark.size());
  return trimmed(rest.substr(0, rest.find('\n')));
}

Result<Rationales> read_rationales(const std::string& path, const Tokenizer& tokenizer, uint32_t window) {
  constexpr size_t kMostHeld = 64;
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file(path, kGiB - 1));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto encode = [&](const std::string& s) {
    return tokenizer.encode(s, {.add_special = false, .parse_special = false});
  };
  std::vector<RationaleItem> items;
  size_t line_number = 0, too_long = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++line_number;
    begin = end + 1;
    if (trimmed(line).empty()) continue;
    const Json j = Json::parse(line, nullptr, false);
    if (j.is_discarded() || !is_item(j)) {
      return bad_input(
          fmt::format("{}: line {} is no JSON object with the texts 'question', 'steps' and 'answer' (not "
                      "empty): mend it, or leave it out",
                      path, line_number));
    }
    RationaleItem item{encode("Question: " + trimmed(j["question"].get<std::string>()) + "\nSteps:"),
                       encode(" " + trimmed(j["steps"].get<std::string>()) +
                              "\nAnswer: " + trimmed(j["answer"].get<std::string>()) + "\n\n"),
                       trimmed(j["answer"].get<std::string>())};
    if (item.prompt.size() + item.reply.size() > window) {
      ++too_long;
      continue;
    }
    items.push_back(std::move(item));
  }
  if (too_long > 0) {
    note(fmt::format("{}: {} longer than the window of {} tokens, left out", path, counted(too_long, "item"), window));
  }
  if (items.size() < 2) {
    return bad_input(fmt::format("{}: {} to learn from: expected two or more lines of JSON that fit into --context {}",
                                 path, counted(items.size(), "item"), window));
  }
  Rationales out;
  const size_t held = std::clamp<size_t>(items.size() / 10, 1, kMostHeld);
  out.held.assign(items.end() - static_cast<std::ptrdiff_t>(held), items.end());
  items.resize(items.size() - held);
  out.train = std::move(items);
  return out;
}

}  // namespace ridge::distill
