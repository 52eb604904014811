#include "text/prompt_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace ridge {
namespace {

constexpr double kStep = 1.1;
constexpr double kLargest = 1000;
constexpr size_t kDeepest = 256;  // keeps the time linear

constexpr std::string_view kEscapable = "()[]\\";

struct Piece {
  std::string text;
  double weight = 1;
};

// ":1.3)" with white space around the number.
struct ExplicitWeight {
  double weight;
  size_t bytes;  // the bracket included
};

std::optional<ExplicitWeight> explicit_weight(std::string_view text) {
  auto skip_space = [&](size_t at) { return std::min(text.find_first_not_of(" \t\r\n", at), text.size()); };
  size_t at = skip_space(1);
  if (at < text.size() && text[at] == '+') ++at;
  double weight = 0;
  const auto [end, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), weight, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(weight) || std::fabs(weight) > kLargest) return std::nullopt;
  at = skip_space(static_cast<size_t>(end - text.data()));
  if (at >= text.size() || text[at] != ')') return std::nullopt;
  return ExplicitWeight{weight, at + 1};
}

class Parser {
 public:
  explicit Parser(std::string_view prompt) : prompt_(prompt) {}

  std::vector<Piece> parse() {
    while (at_ < prompt_.size()) step();
    for (size_t begin : round_) multiply(begin, kStep);
    for (size_t begin : square_) multiply(begin, 1 / kStep);
    return std::move(pieces_);
  }

 private:
  void step() {
    const char c = prompt_[at_];
    const std::string_view rest = prompt_.substr(at_);
    if (c == '\\' && rest.size() > 1 && kEscapable.find(rest[1]) != kEscapable.npos) {
      return text(rest.substr(1, 1), 2);
    }
    if (c == '(' && round_.size() < kDeepest) return open(round_);
    if (c == '[' && square_.size() < kDeepest) return open(square_);
    if (c == ':' && !round_.empty()) {
      if (const auto weight = explicit_weight(rest)) return close(round_, weight->weight, weight->bytes);
    }
    if (c == ')' && !round_.empty()) return close(round_, kStep, 1);
    if (c == ']' && !square_.empty()) return close(square_, 1 / kStep, 1);
    const size_t plain = std::min(rest.find_first_of("()[]\\:", 1), rest.size());
    text(rest.substr(0, plain), plain);
  }

  void text(std::string_view text, size_t bytes) {
    if (fresh_) pieces_.emplace_back();
    fresh_ = false;
    pieces_.back().text += text;
    at_ += bytes;
  }
  void open(std::vector<size_t>& brackets) {
    brackets.push_back(pieces_.size());
    fresh_ = true;
    ++at_;
  }
  void close(std::vector<size_t>& brackets, double factor, size_t bytes) {
    multiply(brackets.back(), factor);
    brackets.pop_back();
    fresh_ = true;
    at_ += bytes;
  }
  void multiply(size_t begin, double factor) {
    for (size_t i = begin; i < pieces_.size(); ++i) pieces_[i].weight *= factor;
  }

  std::string_view prompt_;
  size_t at_ = 0;
  bool fresh_ = true;  // text that comes now is a new piece
  std::vector<Piece> pieces_;
  std::vector<size_t> round_, square_;  // the piece that each open bracket begins with
};

}  // namespace

std::vector<WeightedText> parse_prompt_weights(std::string_view prompt) {
  std::vector<WeightedText> texts;
  for (Piece& piece : Parser(prompt).parse()) {
    const auto weight = static_cast<float>(std::clamp(piece.weight, -kLargest, kLargest));
    if (!texts.empty() && texts.back().weight == weight) {
      texts.back().text += piece.text;
    } else {
      texts.push_back({std::move(piece.text), weight});
    }
  }
  if (texts.empty()) texts.emplace_back();
  return texts;
}

}  // namespace ridge
