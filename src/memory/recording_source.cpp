#include "memory/recording_source.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ridge {

RecordingLimit recording_limit(const Program& program, uint64_t passes) {
  constexpr uint64_t kMostVisits = uint64_t{4} << 20;
  double expected = 0;
  for (const Visit& v : program.visits) expected += v.chance;
  const uint64_t visits = static_cast<uint64_t>(std::ceil(expected)) * passes;
  // A prompt pass may visit every expert.
  return {.visits = std::min(std::max<uint64_t>(visits, 2 * program.visits.size()), kMostVisits), .passes = passes};
}

RecordingSource::RecordingSource(WeightSource& inner, const RecordingLimit& limit) : inner_(inner), limit_(limit) {
  order_.reserve(limit.visits);
  pass_begins_.reserve(limit.passes);
}

void RecordingSource::clear() {
  order_.clear();
  pass_begins_.clear();
  full_ = false;
}

Result<void> RecordingSource::begin_pass(const PassInfo& pass) {
  if (limit_ && pass_begins_.size() == limit_->passes) full_ = true;
  if (!full_) pass_begins_.push_back(order_.size());
  return inner_.begin_pass(pass);
}

Result<Lease> RecordingSource::acquire(BlockId block) {
  Lease lease = RIDGE_TRY(inner_.acquire(block));
  if (full_) return lease;
  if (limit_ && order_.size() == limit_->visits) {
    full_ = true;
    order_.resize(pass_begins_.empty() ? 0 : pass_begins_.back());  // half a pass is none
    if (!pass_begins_.empty()) pass_begins_.pop_back();
    return lease;
  }
  order_.push_back(block);
  return lease;
}

void RecordingSource::release(BlockId) {
  RIDGE_CHECK(false, "leases belong to the inner source, which they return to");
}

}  // namespace ridge
