// Where the time of a forward pass goes, by kind of operation: time stamps around the operations of Compute, taken only
// while somebody listens. Without a profile a stage costs one test of a pointer.
//
// Not for: bytes and operations (Cost), or what happened when (Trace). Times are of the thread that runs the pass, so a
// stage holds its wait for the other workers.
//
//   StageProfile profile;
//   profile.start();
//   { StageTimer timer(&profile, Stage::rope); … }       // in Compute; stages nest, each keeps what is its own
//   profile.stop();
//   profile.time(Stage::rope)
//
// One thread uses a profile at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "program/program.h"

namespace ridge {

enum class Stage : uint8_t {
  other,  // between the operations: the order of the pass itself
  embed,  // embedding rows and rope tables
  norm,
  rope,
  attention,
  glu,
  residual,  // additions and scalings
  quantize,  // activations to int8
  product,   // matrix products, by the first tensor of the step
  storage,   // waiting for streamed blocks
  bias,
  head,  // what surrounds the head's product
  sampling,
};
inline constexpr size_t kStageCount = 13;

class StageProfile {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;

  // Counts from now on, into Stage::other until an operation says otherwise.
  void start() {
    listening_ = true;
    stage_ = Stage::other;
    last_ = Clock::now();
  }
  void stop() {
    charge();
    listening_ = false;
  }
  bool listening() const { return listening_; }

  Duration time(Stage stage) const { return times_[static_cast<size_t>(stage)]; }
  // Matrix products by the first tensor of their step; part of time(Stage::product).
  const std::map<TensorId, Duration>& products() const { return products_; }
  // Everything inside a step, by its first tensor: the product, biases, activations to int8, waiting for storage.
  const std::map<TensorId, Duration>& steps() const { return steps_; }
  // What of a stage was outside of every step.
  Duration loose_time(Stage stage) const { return loose_[static_cast<size_t>(stage)]; }

 private:
  friend class StageTimer;

  // What passed since the last change belongs to the stage that was current.
  void charge() {
    const Clock::time_point now = Clock::now();
    times_[static_cast<size_t>(stage_)] += now - last_;
    if (stage_ == Stage::product) products_[step_] += now - last_;
    if (in_step_) {
      steps_[step_] += now - last_;
    } else {
      loose_[static_cast<size_t>(stage_)] += now - last_;
    }
    last_ = now;
  }

  bool listening_ = false;
  Stage stage_ = Stage::other;
  bool in_step_ = false;
  TensorId step_ = 0;
  Clock::time_point last_;
  std::array<Duration, kStageCount> times_{}, loose_{};
  std::map<TensorId, Duration> products_, steps_;
};

// The stage of a scope. A tensor begins a step, which lasts as long as the scope; scopes without one stay in the step
// that they are in.
class StageTimer {
 public:
  StageTimer(StageProfile* profile, Stage stage, std::optional<TensorId> tensor = std::nullopt) {
    if (profile == nullptr || !profile->listening_) return;
    profile_ = profile;
    profile->charge();
    outer_stage_ = profile->stage_;
    outer_in_step_ = profile->in_step_;
    outer_step_ = profile->step_;
    profile->stage_ = stage;
    if (!tensor) return;
    profile->in_step_ = true;
    profile->step_ = *tensor;
  }
  ~StageTimer() {
    if (profile_ == nullptr) return;
    profile_->charge();
    profile_->stage_ = outer_stage_;
    profile_->in_step_ = outer_in_step_;
    profile_->step_ = outer_step_;
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageProfile* profile_ = nullptr;
  Stage outer_stage_ = Stage::other;
  bool outer_in_step_ = false;
  TensorId outer_step_ = 0;
};

}  // namespace ridge
