// Time on a machine of tiers: DMA engines fill buffers in the inner SRAM tile by tile while the array computes on what
// is there. A tile is a buffer; a transfer waits for an engine, for a buffer and for its memory's bus, and takes the
// memory's latency before its first byte; several engines hide one another's latency, buffers hide transfers behind
// computing. So a long pass takes max(computing, transfers) with two buffers or more, and their sum with one.
//
//   NpuPipeline pipeline(machine);
//   pipeline.visit({.compute_s = 1e-3, .dram = {.bytes = 1e6, .bus_s = 1e-3}});
//   pipeline.end();                        // seconds from the beginning
//
// Memory: a few words for each engine and buffer, whatever the number of visits. Not for: which bytes come from where
// (npu_run.h).
#pragma once

#include <array>
#include <vector>

#include "sim/npu_machine.h"

namespace ridge::sim {

// What DMA brings from one memory for a visit: bytes into the buffers, seconds that the bus is busy.
struct NpuTransfer {
  double bytes = 0, bus_s = 0;
};

struct NpuStretch {
  double compute_s = 0;   // multiply-adds, or reading operands from inner SRAM if that takes longer
  double here_bytes = 0;  // that lie in inner SRAM
  NpuTransfer shared, dram;
  bool on_demand = false;  // transfers begin when the last visit that was not chosen is done, at the soonest
  bool block = true;       // counts among those that prefetch may be ahead; false: rides along (keys and values)
};

class NpuPipeline {
 public:
  explicit NpuPipeline(const NpuMachine& machine);

  void visit(const NpuStretch& stretch);
  double end() const { return end_; }        // of the last computation
  double waited() const { return waited_; }  // the array stood still for transfers

 private:
  enum Bus : uint8_t { kShared, kDram };
  void transfer(const NpuTransfer& what, Bus bus, double compute_s);

  double tile_bytes_;
  std::array<double, 2> latency_s_;
  std::array<double, 2> bus_free_{};
  // Used in turn: transfers are issued in the order of the pass.
  std::vector<double> engine_free_, buffer_free_;
  std::vector<double> block_ends_;  // of the last blocks that prefetch may pass
  size_t tiles_ = 0, blocks_ = 0;
  double earliest_ = 0;  // that a transfer of this visit may begin
  double chosen_at_ = 0;
  double end_ = 0, waited_ = 0;
};

}  // namespace ridge::sim
