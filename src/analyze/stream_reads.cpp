#include "analyze/stream_reads.h"

#include <chrono>

namespace ridge {

StreamReads::StreamReads(const Engine& engine) : source_(engine.machinery().source) {
  const Plan& plan = engine.plan();
  for (const Visit& visit : plan.program.visits) {
    const Block& block = plan.program.blocks[visit.block];
    if (plan.placement.pinned[visit.block]) continue;
    if (block.on_demand) {
      bytes_ = 0;
      return;
    }
    order_.push_back(visit.block);
    bytes_ += block.storage_bytes;
  }
}

Result<void> StreamReads::pass() const {
  RIDGE_TRY(source_->begin_pass({.tokens = 1}));
  for (BlockId block : order_) (void)RIDGE_TRY(source_->acquire(block));  // the lease ends at once
  return {};
}

Result<double> StreamReads::measure() const {
  using Clock = std::chrono::steady_clock;
  constexpr double kLeastSeconds = 0.05;
  RIDGE_TRY(pass());  // after it the first blocks are on their way, as at the end of every pass
  const Clock::time_point start = Clock::now();
  double seconds = 0;
  uint64_t passes = 0;
  for (; seconds < kLeastSeconds; ++passes, seconds = std::chrono::duration<double>(Clock::now() - start).count()) {
    RIDGE_TRY(pass());
  }
  return static_cast<double>(bytes_ * passes) / seconds / 1e9;
}

}  // namespace ridge
