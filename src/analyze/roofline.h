// The roofline: where a piece of work stands under the roofs of a machine, by its counts (Cost) and its time alone.
// docs/roofline.md explains the terms.
//
// Not for: measuring (roofline_run.h), counting (phase_cost.h), printing (report/roofline_report.h).
//
//   Work work{.cost = cost, .streamed_bytes = 0};
//   Placed p = place(work, seconds, {.read_gb_per_s = 16.2, .int8_gops = 400, .float_gops = 100});
//   p.oi, p.eta, p.phi, name_of(p.roof)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "program/program.h"

namespace ridge {

// 1e9 per second, all threads together; 0: not known, limits nothing. A multiply-add is two operations.
struct MachineRoofs {
  double read_gb_per_s = 0;     // of the footprint that the work reads, in whatever level it lives
  double storage_gb_per_s = 0;  // of streamed weights
  double int8_gops = 0, float_gops = 0;
  double format_gb_per_s = 0;  // of weights unpacked and multiplied in a cache, by their types (format_roof.h)
};

// What is done: counts, and what of the weights comes from storage.
struct Work {
  Cost cost;
  double streamed_bytes = 0;
  double ops() const { return static_cast<double>(cost.int_ops + cost.flops); }
  // Read from and written to memory: weights in the layout of the kernels, keys and values. Activations stay in caches.
  double bytes() const { return static_cast<double>(cost.memory_bytes + cost.kv_bytes); }
};

enum class Roof : uint8_t { none, memory, storage, int8, floats, format };
std::string_view name_of(Roof roof);  // "memory", …

// The least seconds that each roof allows; 0 where it is not known.
struct RoofTimes {
  double memory_s = 0, storage_s = 0, int8_s = 0, float_s = 0, format_s = 0;
  // The same units multiply bytes and floats, so those times add up.
  double compute_s() const { return int8_s + float_s; }
  double bound_s() const;
  Roof roof() const;  // that bound_s() comes from
};
RoofTimes roof_times(const Work& work, const MachineRoofs& roofs);

// OI, P and π in operations, bytes and seconds, without a power of ten.
struct Placed {
  double oi = 0;           // operations per byte of memory; 0 where no bytes move
  double ops_per_s = 0;    // P
  double bytes_per_s = 0;  // of memory
  double peak = 0;         // π: of the work's mix of int8 and float operations
  double ridge = 0;        // OI where π meets the memory roof
  Roof roof = Roof::none;
  double roof_ops_per_s = 0;  // min(π, OI · β), or less where storage or unpacking is slower
  double eta = 0;             // P by that: at most 1 unless something was counted or measured wrong
  // Distance to the ridge in octaves: sqrt(log2²(ridge / OI) + log2²(π / P)) left of it, log2(π / P) on its right.
  double phi = 0;
  // The same in axes divided by the ridge and π: sqrt((1 − OI / ridge)² + (1 − P / π)²), or 1 − P / π.
  double phi_normalised = 0;
  double mbu = 0;  // bytes per second by the memory roof
  double mfu = 0;  // operations per second by the higher of the compute peaks
};
// `seconds` > 0.
Placed place(const Work& work, double seconds, const MachineRoofs& roofs);

// Both sides of a point that is above its roof even at the roofs' upper limits: then a count, a unit or a roof is
// wrong. None otherwise.
struct AboveRoof {
  double ops_per_s = 0, limit_ops_per_s = 0;
};
std::optional<AboveRoof> above_roof(const Work& work, double seconds, const MachineRoofs& upper);

}  // namespace ridge
