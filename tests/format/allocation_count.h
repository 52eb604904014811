// How much memory a piece of code holds at its worst, through operator new. For tests of memory bounds.
//
//   AllocationPeak peak;
//   parse_gguf(bytes, "x");
//   EXPECT_LE(peak.bytes(), 5 * bytes.size());
#pragma once

#include <cstddef>

namespace ridge::test {

// Counts from its construction on; one at a time, and only in single-threaded tests.
class AllocationPeak {
 public:
  AllocationPeak();
  size_t bytes() const;

 private:
  size_t before_;
};

}  // namespace ridge::test
