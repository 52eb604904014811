// A weight source that writes down the order in which blocks are asked for, and leaves the work to another: programs of
// sparse and expert models, and traces for the simulator, come from it.
//
//   RecordingSource recorder(resident);
//   RIDGE_TRY(model.forward(recorder, …));
//   std::span<const BlockId> order = recorder.order();
//   size_t second_pass = recorder.pass_begins()[1];      // index into order
//
// One thread, as its inner source.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "memory/weight_source.h"

namespace ridge {

// The most that is written down: memory under a budget is counted beforehand.
struct RecordingLimit {
  uint64_t visits = 0, passes = 0;
  uint64_t bytes() const { return visits * sizeof(BlockId) + passes * sizeof(size_t); }
};

// For a run of at most so many passes: room for every visit of decode passes, 16 MiB at most.
RecordingLimit recording_limit(const Program& program, uint64_t passes);

class RecordingSource final : public WeightSource {
 public:
  explicit RecordingSource(WeightSource& inner) : inner_(inner) {}
  // Takes its memory at once; what comes after the limit is left out, by whole passes.
  RecordingSource(WeightSource& inner, const RecordingLimit& limit);

  std::span<const BlockId> order() const { return order_; }
  std::span<const size_t> pass_begins() const { return pass_begins_; }
  bool full() const { return full_; }  // something was left out
  void clear();

  Result<void> begin_pass(const PassInfo& pass) override;
  Result<Lease> acquire(BlockId block) override;
  void want(std::span<const BlockId> blocks) override { inner_.want(blocks); }
  size_t next_ready(std::span<const BlockId> blocks) override { return inner_.next_ready(blocks); }
  bool ready(BlockId block) override { return inner_.ready(block); }
  bool there(BlockId block) override { return inner_.there(block); }
  Result<void> gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out) override {
    return inner_.gather(tensor, rows, out);
  }
  SourceStats stats() const override { return inner_.stats(); }
  const Program& program() const override { return inner_.program(); }

 protected:
  void release(BlockId block) override;

 private:
  WeightSource& inner_;
  std::optional<RecordingLimit> limit_;
  bool full_ = false;
  std::vector<BlockId> order_;
  std::vector<size_t> pass_begins_;
};

}  // namespace ridge
