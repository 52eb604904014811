#include "report/sim_trace_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/engine_trace.h"
#include "sim/lifecycle.h"

namespace ridge {
namespace {

// Lower bounds of a pass that finds the pinned contexts there.
std::vector<std::pair<std::string, double>> bounds_with_pins(const DeviceTrace& t) {
  sim::ContextDevice device = *t.device;
  for (sim::Context& c : device.contexts) {
    const bool pinned = std::find(t.plan->pinned.begin(), t.plan->pinned.end(), c.name) != t.plan->pinned.end();
    if (pinned) c.load_s = c.init_s = c.release_s = 0;
  }
  return sim::pass_bounds(device, t.plan->best.options.lock);
}

}  // namespace

TraceInfo host_trace_info(const HostTrace& t) {
  const Plan& plan = *t.plan;
  TraceInfo info;
  info.title = t.title;
  auto fact = [&](const char* name, std::string value) { info.facts.emplace_back(name, std::move(value)); };
  fact("simulated", "decode passes of one token; nothing was run");
  fact("model", fmt::format("{} blocks, {} of weights in the file", plan.program.blocks.size(),
                            format_bytes(plan.program.storage_bytes())));
  fact("machine", t.machine);
  fact("threads", std::to_string(t.threads));
  fact("kept", t.policy.empty() ? "as the plan says" : "by the policy " + t.policy);
  if (t.policy.empty()) {
    fact("plan", fmt::format("{} pinned, {} streamed per pass", format_bytes(plan.placement.pinned_bytes(plan.program)),
                             format_bytes(plan.placement.streamed_bytes(plan.program))));
    info.placement = &plan.placement;
  }
  info.program = &plan.program;
  info.budget_bytes = t.budget_bytes;
  for (const AccountItem& item : plan.account.items()) info.account.emplace_back(item.name, item.bytes);
  // A policy may keep more or less than the plan, which the terms of its bound depend on.
  if (t.policy.empty()) {
    info.bounds = {{"storage", plan.bound.storage_s},
                   {"memory", plan.bound.memory_s},
                   {"memory and rearranging", plan.bound.rearrange_s}};
  }
  info.rates = rates_words(t.rates);
  info.storage_roof_bytes_per_s = t.storage_roof_bytes_per_s;
  return info;
}

TraceInfo device_trace_info(const DeviceTrace& t) {
  const sim::DevicePlan& plan = *t.plan;
  TraceInfo info;
  info.title = t.title;
  info.bound_pass = "denoising";
  auto fact = [&](const char* name, std::string value) { info.facts.emplace_back(name, std::move(value)); };
  fact("simulated", "passes of one image; nothing was run");
  fact("device", t.device->name);
  fact("contexts", std::to_string(t.device->contexts.size()));
  fact("plan", plan.best.what);
  fact("pinned", plan.pinned.empty() ? "nothing" : fmt::format("{} contexts", plan.pinned.size()));
  fact("image",
       fmt::format("{:.1f} s, of which {:.1f} s are no pass of these contexts", plan.best.image_s, t.device->other_s));
  fact("memory",
       fmt::format("{:.0f} MiB by the fit of the ladder, of {:.0f} MiB", plan.best.added_mib, plan.budget_mib));
  info.program = t.program;
  info.budget_bytes = static_cast<uint64_t>(plan.budget_mib * static_cast<double>(kMiB));
  info.bounds = bounds_with_pins(t);
  info.rates = "those of the profile";
  return info;
}

}  // namespace ridge
