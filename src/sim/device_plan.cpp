// The plan for a device of contexts: how many are read ahead, what is pinned beside them, within a memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

#include "sim/device_study.h"

namespace ridge::sim {
namespace {

constexpr uint32_t kMostAhead = 4;
// Closer runs count as equal, and the smaller one wins: half a percent is less than such figures are good for.
constexpr double kAlike = 1.005;

double largest_context_mib(const ContextDevice& device, const LadderFit& fit) {
  double most = 0;
  for (const Context& c : device.contexts) most = std::max(most, fit.context_mib(c.weight_mib));
  return most;
}

std::string lock_words(DriverLock lock) {
  if (lock == DriverLock::none) return "preparing and running overlap";
  return lock == DriverLock::init ? "the driver does not initialise while it runs"
                                  : "the driver neither initialises nor releases while it runs";
}

// The names that a run kept: those whose release came in the end.
std::vector<std::string> pinned_names(const ContextDevice& device, const LadderFit& fit, LifecycleOptions options) {
  std::vector<std::string> names;
  if (options.policy == "none") return names;
  options.passes = 2;
  const LifecycleRun run = run_lifecycle(device, fit, options);
  std::vector<uint32_t> loads(device.contexts.size(), 0);
  for (OpId id = 0; id < run.sim.size(); ++id) {
    if (run.sim.op(id).lane == Lane::read) ++loads[run.sim.op(id).block];
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] == 1) names.push_back(device.contexts[i].name);
  }
  return names;
}

void explain(DevicePlan& plan, const ContextDevice& device, const StudyRun& none, const DevicePlanOptions& options,
             double gate) {
  const StudyRun& best = plan.best;
  auto say = [&](std::string sentence) { plan.reasons.push_back(std::move(sentence)); };
  say(options.budget_mib ? fmt::format("{:.0f} MiB of added memory are given; the gate of the ladder is at {:.0f} MiB",
                                       *options.budget_mib, gate)
                         : fmt::format("{:.0f} MiB of added memory: where swap reached the gate of the ladder", gate));
  if (best.options.contexts > 1) {
    say(fmt::format("{} contexts are used in turn: while one runs, those after it are loaded and initialised ({})",
                    best.options.contexts, lock_words(options.lock)));
  } else {
    say("contexts are loaded when their turn comes: a second one would not fit, or would not pay");
  }
  if (plan.pinned.empty()) {
    say("nothing is pinned: it would save no more than half a percent");
  } else {
    say(fmt::format("{} of {} pinned, by seconds of lifecycle per MiB", plan.pinned.size(),
                    counted(device.contexts.size(), "context is", "contexts are")));
  }
  const double bound = device.other_s + options.computed_steps * pass_bound_s(device, options.lock);
  say(fmt::format(
      "{:.1f} s per image instead of {:.1f} s; no order of loads that keeps nothing is faster than {:.1f} s",
      best.image_s, none.image_s, bound));
  say("a cache that evicts by recency would hit nothing: each context comes back after all others");
}

}  // namespace

Result<DevicePlan> plan_device(const ContextDevice& whole, const DevicePlanOptions& options) {
  const LadderFit fit = fit_ladder(whole);
  const double gate = gate_mib(whole);
  const ContextDevice device = options.merge > 1 ? merged(whole, options.merge) : whole;
  DevicePlan plan;
  plan.budget_mib = options.budget_mib.value_or(gate);
  const double largest = largest_context_mib(device, fit);
  if (fit.base_mib + largest > plan.budget_mib) {
    return does_not_fit(
        fmt::format("{}: the largest context takes {:.0f} MiB of added memory, and {:.0f} MiB are "
                    "given: give --memory {}M or more, or merge fewer contexts",
                    device.name, fit.base_mib + largest, plan.budget_mib, std::ceil(fit.base_mib + largest)));
  }
  const StudyRun none = study_run(device, fit, gate, {.passes = options.computed_steps, .lock = options.lock});
  auto consider = [&](std::string what, const LifecycleOptions& run_options) {
    StudyRun run = study_run(device, fit, gate, run_options);
    run.group = "plan";
    run.what = std::move(what);
    run.saved_s = none.image_s - run.image_s;
    if (run.added_mib <= plan.budget_mib) plan.considered.push_back(std::move(run));
  };
  for (uint32_t contexts = 1; contexts <= kMostAhead; ++contexts) {
    const std::string words =
        contexts == 1 ? "load, run, release" : fmt::format("read ahead with {} contexts", contexts);
    LifecycleOptions o{.passes = options.computed_steps, .contexts = contexts, .lock = options.lock};
    consider(words, o);
    o.policy = "pin-worth";
    o.pinned_mib = plan.budget_mib - fit.base_mib - contexts * largest;
    if (o.pinned_mib > 0) consider("pins, " + words, o);
  }
  std::stable_sort(plan.considered.begin(), plan.considered.end(),
                   [](const StudyRun& a, const StudyRun& b) { return a.image_s < b.image_s; });
  plan.best = plan.considered.front();
  for (const StudyRun& run : plan.considered) {
    if (run.image_s <= plan.considered.front().image_s * kAlike && run.added_mib < plan.best.added_mib) plan.best = run;
  }
  plan.pinned = pinned_names(device, fit, plan.best.options);
  explain(plan, device, none, options, gate);
  return plan;
}

}  // namespace ridge::sim
