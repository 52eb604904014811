// Load, init, execution and release of the parts of a diffusion transformer, pass by pass: the table that tells what a
// lifecycle costs (`ridge image --stats`).
//
// Parts are told apart by the end of their name: "blocks.3.self", "blocks.3.cross", "blocks.3.ffn"; all others are one.
// Execution is all that passes between two parts and is neither of the others: products, attention, norms.
//
//   PassTimes times;
//   times.begin();                                  // a pass
//   times.enter("blocks.0.self");
//   times.away(waited);                             // the weights were not there
//   times.end();
//   times.passes()[0][size_t(PartKind::self)].execute
//
// 128 bytes a pass. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ridge {

enum class PartKind : uint8_t { self, cross, ffn, other };
inline constexpr size_t kPartKinds = 4;

// Of a part's name, or of the name of one of its blocks ("blocks.3.ffn/1").
inline PartKind part_kind(std::string_view name) {
  name = name.substr(0, name.find('/'));
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (last == "self") return PartKind::self;
  if (last == "cross") return PartKind::cross;
  return last == "ffn" ? PartKind::ffn : PartKind::other;
}

struct PartCost {
  std::chrono::nanoseconds load{0}, init{0}, execute{0}, release{0};
  PartCost& operator+=(const PartCost& o) {
    load += o.load;
    init += o.init;
    execute += o.execute;
    release += o.release;
    return *this;
  }
};
using PassCost = std::array<PartCost, kPartKinds>;

class PassTimes {
 public:
  using Clock = std::chrono::steady_clock;

  // The source tells load, init and release itself (add()); else time away is load.
  void source_tells() { source_tells_ = true; }

  void begin() {
    passes_.emplace_back();
    part_ = PartKind::other;
    since_ = Clock::now();
  }
  void enter(std::string_view part) {
    charge();
    part_ = part_kind(part);
  }
  void end() { charge(); }
  // Of the time of this part so much was no execution.
  void away(std::chrono::nanoseconds time) {
    since_ += time;
    if (!source_tells_) current().load += time;
  }
  // Of a block, from the source; outside of a pass nothing is counted.
  void add(std::string_view block, const PartCost& cost) {
    if (!passes_.empty()) passes_.back()[static_cast<size_t>(part_kind(block))] += cost;
  }

  std::span<const PassCost> passes() const { return passes_; }

 private:
  PartCost& current() { return passes_.back()[static_cast<size_t>(part_)]; }
  void charge() {
    const Clock::time_point now = Clock::now();
    current().execute += now - since_;
    since_ = now;
  }

  std::vector<PassCost> passes_;
  PartKind part_ = PartKind::other;
  Clock::time_point since_;
  bool source_tells_ = false;
};

}  // namespace ridge
