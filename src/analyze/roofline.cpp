#include "analyze/roofline.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

double seconds_at(double amount, double giga_per_s) { return giga_per_s > 0 ? amount / (giga_per_s * 1e9) : 0; }

double square(double x) { return x * x; }

}  // namespace

std::string_view name_of(Roof roof) {
  constexpr std::string_view kNames[] = {"none", "memory", "storage", "int8", "float", "format"};
  return kNames[static_cast<size_t>(roof)];
}

double RoofTimes::bound_s() const { return std::max({memory_s, storage_s, compute_s(), format_s}); }

Roof RoofTimes::roof() const {
  const double bound = bound_s();
  if (bound <= 0) return Roof::none;
  if (bound == storage_s) return Roof::storage;
  if (bound == memory_s) return Roof::memory;
  if (bound == format_s) return Roof::format;
  return int8_s >= float_s ? Roof::int8 : Roof::floats;
}

RoofTimes roof_times(const Work& work, const MachineRoofs& roofs) {
  return {.memory_s = seconds_at(work.bytes(), roofs.read_gb_per_s),
          .storage_s = seconds_at(work.streamed_bytes, roofs.storage_gb_per_s),
          .int8_s = seconds_at(static_cast<double>(work.cost.int_ops), roofs.int8_gops),
          .float_s = seconds_at(static_cast<double>(work.cost.flops), roofs.float_gops),
          .format_s = seconds_at(static_cast<double>(work.cost.memory_bytes), roofs.format_gb_per_s)};
}

Placed place(const Work& work, double seconds, const MachineRoofs& roofs) {
  const RoofTimes times = roof_times(work, roofs);
  Placed p;
  p.ops_per_s = work.ops() / seconds;
  p.bytes_per_s = work.bytes() / seconds;
  if (work.bytes() > 0) p.oi = work.ops() / work.bytes();
  if (times.compute_s() > 0) p.peak = work.ops() / times.compute_s();
  if (roofs.read_gb_per_s > 0) {
    p.ridge = p.peak / (roofs.read_gb_per_s * 1e9);
    p.mbu = p.bytes_per_s / (roofs.read_gb_per_s * 1e9);
  }
  const double highest = std::max(roofs.int8_gops, roofs.float_gops) * 1e9;
  if (highest > 0) p.mfu = p.ops_per_s / highest;
  p.roof = times.roof();
  if (p.roof == Roof::none) return p;
  p.roof_ops_per_s = work.ops() / times.bound_s();
  p.eta = times.bound_s() / seconds;
  if (p.ridge <= 0 || p.ops_per_s <= 0) return p;
  const double octaves_below = std::log2(p.peak / p.ops_per_s), share_below = 1 - p.ops_per_s / p.peak;
  const bool left = p.oi > 0 && p.oi < p.ridge;
  p.phi = left ? std::sqrt(square(std::log2(p.ridge / p.oi)) + square(octaves_below)) : octaves_below;
  p.phi_normalised = left ? std::sqrt(square(1 - p.oi / p.ridge) + square(share_below)) : share_below;
  return p;
}

std::optional<AboveRoof> above_roof(const Work& work, double seconds, const MachineRoofs& upper) {
  const double bound = roof_times(work, upper).bound_s();
  if (bound <= seconds) return std::nullopt;
  return AboveRoof{.ops_per_s = work.ops() / seconds, .limit_ops_per_s = work.ops() / bound};
}

}  // namespace ridge
