// The claims of the document, each with what was found: its best under the document's own terms, the best of ours and
// how, what plain caching could do at most, and a verdict that follows from the figures alone.
//
//   for (const Claim& c : judge(evidence)) … c.claim, c.verdict, c.sentence …
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "claims/evidence.h"

namespace ridge {

// `holds`: by the document's means. `otherwise`: the figure is reached, but not by them. `partly`: in some cases.
// `open`: what it would take was not there.
enum class ClaimVerdict : uint8_t { holds, partly, otherwise, fails, open };
std::string_view name_of(ClaimVerdict verdict);  // "holds", "in part", "by other means", "does not hold", "open"

struct Claim {
  std::string claim, document;
  std::string ours;       // best of ours against the document's int8 baseline, with the method
  std::string same_bits;  // best of ours against the same bits, with the method
  std::string bound;      // what caching alone can do
  ClaimVerdict verdict = ClaimVerdict::open;
  std::string sentence;
};

// Always the same claims in the same order.
std::vector<Claim> judge(const Evidence& evidence);

}  // namespace ridge
