#include "sim/npu_pipeline.h"

#include <algorithm>
#include <cmath>

namespace ridge::sim {

NpuPipeline::NpuPipeline(const NpuMachine& machine)
    : tile_bytes_(static_cast<double>(machine.staging_bytes / machine.buffers)),
      latency_s_{machine.outer_room() > 0 ? machine.shared->latency_s : 0, machine.dram.latency_s},
      engine_free_(machine.engines, 0),
      buffer_free_(machine.buffers, 0),
      block_ends_(machine.prefetch + 1, 0) {}

void NpuPipeline::visit(const NpuStretch& stretch) {
  earliest_ = block_ends_[blocks_ % block_ends_.size()];
  if (stretch.on_demand) earliest_ = std::max(earliest_, chosen_at_);
  const double bytes = stretch.here_bytes + stretch.shared.bytes + stretch.dram.bytes;
  // What is here comes first: by then the first tile may have arrived.
  end_ += bytes > 0 ? stretch.compute_s * (stretch.here_bytes / bytes) : stretch.compute_s;
  if (stretch.shared.bytes > 0) transfer(stretch.shared, kShared, stretch.compute_s * (stretch.shared.bytes / bytes));
  if (stretch.dram.bytes > 0) transfer(stretch.dram, kDram, stretch.compute_s * (stretch.dram.bytes / bytes));
  if (stretch.block) block_ends_[blocks_++ % block_ends_.size()] = end_;
  if (!stretch.on_demand) chosen_at_ = end_;
}

void NpuPipeline::transfer(const NpuTransfer& what, Bus bus, double compute_s) {
  const double tiles = std::ceil(what.bytes / tile_bytes_);
  const double tile_bus_s = what.bus_s / tiles, tile_compute_s = compute_s / tiles;
  for (double i = 0; i < tiles; ++i) {
    double& engine = engine_free_[tiles_ % engine_free_.size()];
    double& buffer = buffer_free_[tiles_ % buffer_free_.size()];
    ++tiles_;
    const double issued = std::max({earliest_, engine, buffer});
    const double arrived = std::max(issued + latency_s_[bus], bus_free_[bus]) + tile_bus_s;
    engine = bus_free_[bus] = arrived;
    waited_ += std::max(0.0, arrived - end_);
    end_ = std::max(end_, arrived) + tile_compute_s;
    buffer = end_;
  }
}

}  // namespace ridge::sim
