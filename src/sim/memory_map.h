// Where everything of a pass lies in a machine of tiers, by address: buffers and what is kept in its SRAMs, and the
// image of the file, keys and values in DRAM.
//
//   NpuRun run = run_npu(work, machine, {});                       // decides what is kept: pins by worth and touch
//   MemoryMap map = memory_map(work, machine, run, dram_image(program, file_bytes));
//   for (const MapRange& r : map.ranges) …                          // r.tier, r.address, r.bytes, r.what
//
// DRAM holds the file as it is, at address 0: what is kept in SRAM is a copy that is made once. Not for: choosing
// (npu_run.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "sim/npu_run.h"

namespace ridge::sim {

struct MapExtent {
  uint64_t address = 0, bytes = 0;
};

// The file in DRAM: where the bytes of each block of weights lie, in the order of the program.
struct DramImage {
  uint64_t bytes = 0;  // of the file
  std::vector<std::vector<MapExtent>> blocks;
};
DramImage dram_image(const Program& program, uint64_t file_bytes);

struct MapRange {
  TierKind tier = TierKind::dram;
  uint64_t address = 0, bytes = 0;
  std::string what;
  int64_t object = -1;  // of NpuWork; -1: buffers and the like
  uint64_t offset = 0;  // in the object
  double touch = 0;     // passes that read it, of all: 0 to 1
  double reads = 0;     // bytes of it that a pass reads from this tier, as a mean
};

struct MemoryMap {
  std::vector<MapRange> ranges;          // registers first, DRAM last; ascending addresses within a tier
  std::array<uint64_t, kTiers> bytes{};  // used of each tier; of DRAM the file, keys and values
  std::array<double, kTiers> reads{};    // bytes of a pass that each serves: weights, keys and values, rows
  double all_reads() const;
};

// Ranges of SRAM begin at its bursts; what that leaves no room for stays in DRAM.
MemoryMap memory_map(const NpuWork& work, const NpuMachine& machine, const NpuRun& run, const DramImage& image);

// What a packer aligns tensors and bundles to: bursts and rows of DRAM, and the 4,096 bytes of a pack. Rows are left
// out where all together would be more than 1 MiB.
uint64_t pack_alignment(const NpuMachine& machine);

}  // namespace ridge::sim
