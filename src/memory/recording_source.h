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

#include <span>
#include <vector>

#include "memory/weight_source.h"

namespace ridge {

class RecordingSource final : public WeightSource {
 public:
  explicit RecordingSource(WeightSource& inner) : inner_(inner) {}

  std::span<const BlockId> order() const { return order_; }
  std::span<const size_t> pass_begins() const { return pass_begins_; }
  void clear();

  Result<void> begin_pass(const PassInfo& pass) override;
  Result<Lease> acquire(BlockId block) override;
  void want(std::span<const BlockId> blocks) override { inner_.want(blocks); }
  size_t next_ready(std::span<const BlockId> blocks) override { return inner_.next_ready(blocks); }
  Result<void> gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out) override {
    return inner_.gather(tensor, rows, out);
  }
  SourceStats stats() const override { return inner_.stats(); }
  const Program& program() const override { return inner_.program(); }

 protected:
  void release(BlockId block) override;

 private:
  WeightSource& inner_;
  std::vector<BlockId> order_;
  std::vector<size_t> pass_begins_;
};

}  // namespace ridge
