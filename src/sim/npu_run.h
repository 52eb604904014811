// Passes on a machine of tiers: what is kept in SRAM, by a policy or by a knapsack over what a kept byte saves; the
// time of a pass, what it moves at every level, its energy by part, and what bounds it.
//
//   NpuRun run = run_npu(work, machine, {.policy = "pin-worth", .worth = NpuWorth::energy});
//   run.pass_s; run.dram_bytes; run.energy.total(); run.bound();
//
// Figures are means over the second half of the passes. The formulas stand in docs/npu.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/npu_machine.h"
#include "sim/npu_work.h"

namespace ridge::sim {

// What makes a piece worth keeping. For seconds a shared SRAM before a
// local one is left empty where a pass is faster so: filling buffers from it takes its turn with DRAM.
enum class NpuWorth : uint8_t { seconds, energy };

struct NpuOptions {
  std::string_view policy = "pin-worth";  // one of policies() that does not read ahead: prefetch is the machine's
  NpuWorth worth = NpuWorth::energy;
  uint64_t seed = 1;
};

// Joules of a pass.
struct NpuEnergy {
  double macs = 0, registers = 0, local = 0, shared = 0, dram = 0, rows = 0, leakage = 0;
  double total() const { return macs + registers + local + shared + dram + rows + leakage; }
};

// Seconds that each part of the machine is busy in a pass. The inner SRAM is read while computing: a visit computes for
// as long as the slower of the two takes.
struct NpuBusy {
  double macs = 0, inner_sram = 0, compute = 0, shared_sram = 0, dram = 0;
};

// Where the bytes of an object lie after the last pass.
struct NpuHome {
  uint64_t local = 0, shared = 0, dram = 0;
};

// A stretch of an object that stays in SRAM, the inner one's part first.
struct NpuKept {
  uint32_t object = 0;
  uint64_t offset = 0;  // in the object
  uint64_t inner = 0, outer = 0;
};

struct NpuRun {
  double pass_s = 0, waited_s = 0;
  double dram_bytes = 0;     // moved, whole bursts
  double visited_bytes = 0;  // of weights and key/value cache
  double hit_bytes = 0;      // of these, found in SRAM
  double row_opens = 0;      // of DRAM
  NpuEnergy energy;
  NpuBusy busy;
  uint64_t room_bytes = 0;     // of SRAM that may keep something
  uint64_t grain_bytes = 0;    // that objects are cut into to be kept
  std::vector<NpuHome> homes;  // by object
  std::vector<NpuKept> kept;   // after the last pass, in the order of the objects

  double hit_ratio() const { return visited_bytes > 0 ? hit_bytes / visited_bytes : 0; }
  // No schedule is faster: the busiest part.
  double bound_s() const;
  // "DRAM bandwidth", "MACs", "inner SRAM bandwidth", "shared SRAM bandwidth", or "waiting" where a pass takes more
  // than 5 % longer than its busiest part.
  std::string_view bound() const;
};

// At least two passes, each with a visit.
NpuRun run_npu(const NpuWork& work, const NpuMachine& machine, const NpuOptions& options);

}  // namespace ridge::sim
