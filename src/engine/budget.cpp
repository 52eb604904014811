#include "engine/budget.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"

namespace ridge {

Budget choose_budget(std::optional<uint64_t> wish, const ProcessMemory& process) {
  MemoryLimits limits = memory_limits();
  // What we already hold is part of the charge that the limits leave us; pages of the program itself may be charged to
  // whoever ran it first.
  const uint64_t offered = limits.available + process.anonymous;
  // A container of exactly the budget offers a little less, by what the kernel has charged to it before.
  constexpr uint64_t kTolerance = 3 * kMiB;
  if (wish && *wish <= offered + kTolerance) return {*wish, "--memory"};
  if (wish) {
    note(fmt::format("--memory {} is more than there is ({}): planning for {}", format_bytes(*wish), limits.reason,
                     format_bytes(offered)));
  }
  return {offered, limits.reason};
}

Rates machine_rates(const MachineProfile& machine, int threads, uint64_t footprint) {
  Rates rates;
  if (auto storage = machine.storage_gb_per_s()) {
    rates.storage = *storage * 1e9;
    rates.storage_measured = true;
  }
  if (auto read = machine.read_gb_per_s(footprint, threads)) {
    rates.memory = *read * 1e9;
    rates.memory_measured = true;
  }
  // What products reach of the peak of multiply-adds (docs/measurements.md).
  constexpr double kKernelShare = 0.5;
  if (machine.contended) rates.contention = machine.contention.empty() ? "it says no more" : machine.contention;
  rates.int8_ops = machine.int8_gops_per_core * 1e9 * threads * kKernelShare;
  rates.float_ops = machine.float_gops_per_core * 1e9 * threads * kKernelShare;
  return rates;
}

}  // namespace ridge
