// Questions with the steps to their answers, as JSON lines, and how they are laid out for a student.
//
//   {"question": "…", "steps": "…", "answer": "…"}           one object a line
//
// A student reads "Question: …\nSteps:" and learns to write " …\nAnswer: …\n\n"; the question itself is not scored. The
// last tenth of the items (at most 64) is held out for the share of right answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ridge::distill {

struct RationaleItem {
  std::vector<TokenId> prompt, reply;
  std::string answer;
};
struct Rationales {
  std::vector<RationaleItem> train, held;
};
// Items longer than `window` tokens are left out, and that is said. Bad input: a line that is no such object, no item.
Result<Rationales> read_rationales(const std::string& path, const Tokenizer& tokenizer, uint32_t window);

// What follows "Answer:" in a reply, without spaces around it; empty if there is none.
std::string answer_in(std::string_view reply);

}  // namespace ridge::distill
