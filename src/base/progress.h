// A progress bar on stderr: only on a terminal, only for work longer than a second, redrawn at most ten times a second.
//
//   Progress bar("packing", total_bytes, ProgressUnit::bytes);
//   bar.advance(n);                  // the destructor clears the line
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ridge {

enum class ProgressUnit { bytes, items };

class Progress {
 public:
  Progress(std::string what, uint64_t total, ProgressUnit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t amount);
  // A few words after the bar, such as the running loss.
  void annotate(std::string text) { annotation_ = std::move(text); }

 private:
  void draw();

  using Clock = std::chrono::steady_clock;
  std::string what_, annotation_;
  uint64_t total_, done_ = 0;
  ProgressUnit unit_;
  Clock::time_point start_, drawn_;
  bool enabled_, visible_ = false;
};

}  // namespace ridge
