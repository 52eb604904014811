// Guesses by looking the last tokens up in the text so far (prompt lookup): what followed them there may follow again.
// Costs no memory and next to no time; good for code, lists, quotations, summaries, and whatever repeats itself.
//
// The longest match counts, up to N tokens; of several places with a match that long, what followed most often, and
// then most recently. Every further guess is looked up anew, with the guesses before it as part of the text, so one
// draft may begin in one place and go on in another.
//
//   NgramDrafter drafter(4);
#pragma once

#include "engine/speculation.h"

namespace ridge {

inline constexpr int kLongestNgram = 32;

class NgramDrafter final : public Drafter {
 public:
  // longest: 1 to kLongestNgram.
  explicit NgramDrafter(size_t longest) : longest_(longest) {}

  std::string description() const override;
  const std::array<float, kGuessKinds>& priors() const override;
  Result<void> draft(const DraftRequest& request, DraftPolicy& policy, std::vector<Guess>& out) override;

  // What follows the end of `line`; nothing if its last token is new. Reads the line once: 2 µs per 4096 tokens.
  static std::optional<Guess> look_up(std::span<const TokenId> line, size_t longest);

 private:
  size_t longest_;
};

}  // namespace ridge
