#include "engine/draft_ngram.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ridge {
namespace {

// Tokens that followed equally long matches.
class Votes {
 public:
  void clear() { count_ = 0; }
  void add(TokenId id) {
    for (size_t i = 0; i < count_; ++i) {
      if (candidates_[i].id != id) continue;
      ++candidates_[i].votes;
      return;
    }
    if (count_ < kMost) candidates_[count_++] = {id, 1};
  }
  bool empty() const { return count_ == 0; }
  bool contested() const { return count_ > 1; }
  // The first of the best: places are searched from the end of the text, so it is the most recent.
  TokenId best() const {
    return std::max_element(candidates_, candidates_ + count_,
                            [](const Candidate& a, const Candidate& b) { return a.votes < b.votes; })
        ->id;
  }

 private:
  static constexpr size_t kMost = 8;
  struct Candidate {
    TokenId id = 0;
    uint32_t votes = 0;
  };
  Candidate candidates_[kMost];
  size_t count_ = 0;
};

// Kinds: the length of the match from 1 to 8 (and more), twice, the second time with votes for other tokens too.
constexpr size_t kLengths = kGuessKinds / 2;

uint8_t kind_of(size_t length, bool contested) {
  return static_cast<uint8_t>(std::min(length, kLengths) - 1 + (contested ? kLengths : 0));
}

}  // namespace

std::string NgramDrafter::description() const { return fmt::format("n-grams of up to {}", counted(longest_, "token")); }

// Of the texts in docs/measurements.md; a run soon has its own.
const std::array<float, kGuessKinds>& NgramDrafter::priors() const {
  static constexpr std::array<float, kGuessKinds> kPriors = {0.2f, 0.4f, 0.5f, 0.6f, 0.7f, 0.7f, 0.8f, 0.8f,
                                                             0.1f, 0.3f, 0.4f, 0.5f, 0.5f, 0.5f, 0.6f, 0.6f};
  return kPriors;
}

std::optional<Guess> NgramDrafter::look_up(std::span<const TokenId> line, size_t longest) {
  Votes votes;
  size_t best = 1;
  const TokenId last = line.back();
  for (size_t end = line.size() - 1; end-- > 0;) {  // of an earlier place
    if (line[end] != last) continue;
    size_t length = 1;
    while (length < longest && length <= end && line[end - length] == line[line.size() - 1 - length]) ++length;
    if (length < best) continue;
    if (length > best) votes.clear();
    best = length;
    votes.add(line[end + 1]);
  }
  if (votes.empty()) return std::nullopt;
  return Guess{.id = votes.best(), .kind = kind_of(best, votes.contested())};
}

Result<void> NgramDrafter::draft(const DraftRequest& request, DraftPolicy& policy, std::vector<Guess>& out) {
  const size_t before = request.line.size();
  double chance = 1;
  while (out.size() < request.most) {
    auto guess = look_up(request.line, longest_);
    if (!guess) break;
    out.push_back(*guess);
    request.line.push_back(guess->id);
    chance *= policy.rate(guess->kind);
    if (!policy.worth_checking(chance)) break;
  }
  request.line.resize(before);
  return {};
}

}  // namespace ridge
