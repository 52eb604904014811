#include "memory/recording_source.h"

#include "base/check.h"

namespace ridge {

void RecordingSource::clear() {
  order_.clear();
  pass_begins_.clear();
}

Result<void> RecordingSource::begin_pass(const PassInfo& pass) {
  pass_begins_.push_back(order_.size());
  return inner_.begin_pass(pass);
}

Result<Lease> RecordingSource::acquire(BlockId block) {
  Lease lease = RIDGE_TRY(inner_.acquire(block));
  order_.push_back(block);
  return lease;
}

void RecordingSource::release(BlockId) {
  RIDGE_CHECK(false, "leases belong to the inner source, which they return to");
}

}  // namespace ridge
