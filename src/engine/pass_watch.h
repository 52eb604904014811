// What an image model does while a pass over its transformer runs: times by part, the inputs of feed-forward matrices
// for whoever wants them, and an end at the next part when Ctrl-C was pressed.
//
//   PassWatch watch;
//   watch.times = &times;
//   watch.begin(source);
//   anima.denoise(ops, {…, .watch = &watch});
//   RIDGE_TRY(watch.end());
#pragma once

#include <atomic>

#include "memory/weight_source.h"
#include "model/anima.h"
#include "program/pass_times.h"

namespace ridge {

class FfnWatch {
 public:
  virtual ~FfnWatch() = default;
  // As DenoiseWatch's.
  virtual void ffn_input(uint32_t layer, FfnMatrix matrix, Matrix<const float> x) = 0;
};

class PassWatch final : public DenoiseWatch {
 public:
  PassTimes* times = nullptr;
  const std::atomic<bool>* interrupted = nullptr;
  FfnWatch* ffn = nullptr;

  void begin(const WeightSource& source) {
    source_ = &source;
    if (times == nullptr) return;
    waited_ = source.stats().wait;
    times->begin();
  }
  bool part(const std::string& name) override {
    if (times != nullptr) {
      leave();
      times->enter(name);
    }
    return !stopped();
  }
  void ffn_input(uint32_t layer, FfnMatrix matrix, Matrix<const float> x) override {
    if (ffn != nullptr) ffn->ffn_input(layer, matrix, x);
  }
  // io error if the pass was stopped.
  Result<void> end() {
    if (times != nullptr) {
      leave();
      times->end();
    }
    if (stopped()) return io_error("stopped by Ctrl-C");
    return {};
  }

 private:
  bool stopped() const { return interrupted != nullptr && *interrupted; }
  // What of the part was waiting for weights.
  void leave() {
    const std::chrono::nanoseconds waited = source_->stats().wait;
    times->away(waited - waited_);
    waited_ = waited;
  }

  const WeightSource* source_ = nullptr;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace ridge
