// Passes over a device of contexts, as operations of the event simulator: who is loaded, run and released when, under a
// policy, with as many contexts read ahead as there are, and with or without a driver that does one thing at a time.
//
//   LifecycleRun none = run_lifecycle(device, fit, {.passes = 13});                    // load, run, release
//   LifecycleRun ahead = run_lifecycle(device, fit, {.passes = 13, .contexts = 3});    // two are prepared meanwhile
//   ahead.image_s(device)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/context_device.h"
#include "sim/event_sim.h"
#include "sim/ladder_fit.h"
#include "sim/policy.h"

namespace ridge::sim {

// What excludes what in the driver: nothing; initialising and running; both and releasing.
enum class DriverLock : uint8_t { none, init, init_and_release };

struct LifecycleOptions {
  uint32_t passes = 1;
  std::string_view policy = "none";  // by name (policy.h)
  uint32_t pinned = 0;               // its capacity in contexts
  double pinned_mib = 0;             // or in MiB of memory by the fit, if above 0
  // That hold what is not kept, the running one included. 1: each is loaded when its turn comes, by the same thread;
  // more: others load, initialise and release meanwhile.
  uint32_t contexts = 1;
  DriverLock lock = DriverLock::none;
  uint32_t images = 1;  // in lock-step: each context runs once for each of them while it is there
};

struct LifecycleRun {
  EventSim sim;
  SimResult result;
  uint64_t calls = 0, hits = 0, lifecycles = 0;
  double lifecycle_s = 0;  // of all loads, initialisations and releases, overlapped or not
  double passes_s = 0;     // until everything is released
  double peak_mib = 0;     // by the fit, base included
  uint32_t images = 1;
  std::vector<double> pass_ends;  // seconds

  double image_s(const ContextDevice& device) const { return device.other_s + passes_s / images; }
};

LifecycleRun run_lifecycle(const ContextDevice& device, const LadderFit& fit, const LifecycleOptions& options);

// What no order of loads can be faster than while nothing is kept: each thing that is done one at a time, seconds of
// one pass. With a lock on initialising, what the driver does cannot overlap.
std::vector<std::pair<std::string, double>> pass_bounds(const ContextDevice& device, DriverLock lock);
// The largest of them.
double pass_bound_s(const ContextDevice& device, DriverLock lock);

}  // namespace ridge::sim
