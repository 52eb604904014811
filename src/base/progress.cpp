#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "base/units.h"

namespace ridge {

Progress::Progress(std::string what, uint64_t total, ProgressUnit unit)
    : what_(std::move(what)),
      total_(std::max<uint64_t>(total, 1)),
      unit_(unit),
      start_(Clock::now()),
      drawn_(start_),
      enabled_(::isatty(STDERR_FILENO) == 1 && verbosity() != Verbosity::quiet) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::advance(uint64_t amount) {
  done_ += amount;
  if (!enabled_) return;
  auto now = Clock::now();
  if (now - start_ < std::chrono::seconds(1) || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  draw();
}

void Progress::draw() {
  visible_ = true;
  double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  double elapsed = std::chrono::duration<double>(drawn_ - start_).count();
  double left = part > 0 ? elapsed / part - elapsed : 0;
  constexpr int kWidth = 24;
  int filled = static_cast<int>(part * kWidth);
  auto amount = [&](uint64_t n) { return unit_ == ProgressUnit::bytes ? format_bytes(n) : format_count(n); };
  fmt::print(stderr, "\r\033[K{} [{}{}] {:.0f} %  {} of {}  {:.0f} s left{}{}", what_,
             std::string(static_cast<size_t>(filled), '='), std::string(static_cast<size_t>(kWidth - filled), ' '),
             part * 100, amount(done_), amount(total_), left, annotation_.empty() ? "" : "  ", annotation_);
  std::fflush(stderr);
}

}  // namespace ridge
