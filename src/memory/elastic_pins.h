// Which pinned blocks go when memory becomes short while a model runs, and which come back when there is room again.
//
// Neighbours in memory go together, in groups of at least two units of 2 MiB, since the kernel takes whole units; the
// groups go in an order that spreads those gone evenly over the pass, as planned pins are spread. What went first comes
// back last.
//
// Not for: when to do it (plan/live_budget.h), or reading blocks again (pin_loader.h).
//
//   ElasticPins pins({.program = &program, .layout = &layout, .pins = &slab}, placement);
//   uint64_t freed = pins.give_back(8 * kMiB);                 // placement.pinned is 0 for what went
//   std::vector<BlockId> again = pins.next_back(8 * kMiB);     // read these into their places, then:
//   pins.take_back(again);
//
// One thread, between passes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/slab.h"
#include "memory/source_layout.h"
#include "program/program.h"

namespace ridge {

struct ElasticPinsOptions {
  const Program* program = nullptr;
  const SourceLayout* layout = nullptr;
  const Slab* pins = nullptr;
};

class ElasticPins {
 public:
  // `placement` says which blocks are elastic, and is told what is pinned.
  ElasticPins(const ElasticPinsOptions& options, Placement& placement);

  // Unpins groups until they have freed `bytes`, or none is left; returns what the kernel got.
  uint64_t give_back(uint64_t bytes);
  // Blocks whose return would take at most `bytes`, the last that went first. Their memory may be written.
  std::vector<BlockId> next_back(uint64_t bytes) const;
  // They have been read into their places.
  void take_back(std::span<const BlockId> blocks);

  // Their reading failed: what was written of them goes to the kernel again.
  void discard_gone() const;

  ElasticState state() const { return state_; }
  uint64_t given_back() const { return given_back_; }  // bytes that the kernel has now

 private:
  struct Group {
    std::vector<BlockId> blocks;
  };
  struct Units {
    uint64_t begin = 0, end = 0;
  };
  Units units_of(BlockId block) const;

  const Program& program_;
  const SourceLayout& layout_;
  const Slab& pins_;
  Placement& placement_;
  uint64_t unit_;
  std::vector<Group> groups_;    // in the order in which they go
  size_t gone_ = 0;              // the first so many of them
  std::vector<uint32_t> users_;  // by unit: pinned blocks that lie in it
  uint64_t given_back_ = 0;
  ElasticState state_;
};

}  // namespace ridge
