// Weights in prompts, as users of image models write them:
//
//   (word)        times 1.1             [word]        divided by 1.1
//   (word:1.3)    times 1.3             \( \) \[ \] \\   the character itself
//   ((word))      times 1.21: brackets nest and multiply; an open one that is not closed reaches to the end
//
// Not for: schedules ("[a:b:0.5]") and BREAK, which are ordinary text here; what a weight does (the text adapter).
//
//   parse_prompt_weights("a (red:1.2) cat")      // {"a ", 1} {"red", 1.2} {" cat", 1}
//
// Every text is a valid prompt: what is no weight is text. Brackets nested deeper than 256 are text too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ridge {

struct WeightedText {
  std::string text;  // without brackets and escapes
  float weight = 1;  // within ±1000
  bool operator==(const WeightedText&) const = default;
};

// At least one; neighbours have different weights; none is empty unless it is the only one.
std::vector<WeightedText> parse_prompt_weights(std::string_view prompt);

}  // namespace ridge
