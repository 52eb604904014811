#include "sim/context_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ridge::sim {
namespace {

template <class Of>
double sum(const std::vector<Context>& contexts, Of of) {
  double total = 0;
  for (const Context& c : contexts) total += of(c);
  return total;
}

}  // namespace

Program ContextDevice::program() const {
  Program p;
  for (const Context& c : contexts) {
    const uint64_t bytes = static_cast<uint64_t>(std::llround(c.weight_mib * 1024 * 1024));
    const Cost cost{.storage_bytes = bytes, .memory_bytes = bytes};
    p.visits.push_back({.block = static_cast<BlockId>(p.blocks.size()), .cost = cost});
    p.blocks.push_back({.name = c.name, .pieces = {}, .storage_bytes = bytes, .memory_bytes = bytes});
  }
  return p;
}

double ContextDevice::pass_run_s() const {
  return sum(contexts, [](const Context& c) { return c.run_s; });
}
double ContextDevice::pass_host_s() const {
  return sum(contexts, [](const Context& c) { return c.host_s; });
}
double ContextDevice::pass_lifecycle_s() const {
  return sum(contexts, [](const Context& c) { return c.lifecycle_s(); });
}

// Least squares of lifecycle over weights. Three kinds give a line that none of them lies on, so this is an estimate
// of little weight: docs/simulator.md says what it means for fused graphs.
double ContextDevice::fixed_s() const {
  if (fixed_lifecycle_s) return *fixed_lifecycle_s;
  const double n = static_cast<double>(contexts.size());
  const double x = sum(contexts, [](const Context&c) { return c.weight_mib; }) / n, y = pass_lifecycle_s() / n;
  const double xx = sum(contexts, [&](const Context& c) { return (c.weight_mib - x) * (c.weight_mib - x); });
  if (xx <= 0) return 0;
  const double xy = sum(contexts, [&](const Context& c) { return (c.weight_mib - x) * (c.lifecycle_s() - y); });
  const double least = std::min_element(contexts.begin(), contexts.end(), [](const Context& a, const Context& b) {
                         return a.lifecycle_s() < b.lifecycle_s();
                       })->lifecycle_s();
  return std::clamp(y - xy / xx * x, 0.0, least);
}

ContextDevice merged(const ContextDevice& device, uint32_t k) {
  RIDGE_CHECK(k > 0, "at least one context makes one");
  const double fixed = device.fixed_s();
  ContextDevice out = device;
  out.fixed_lifecycle_s = fixed;
  out.contexts.clear();
  for (size_t begin = 0; begin < device.contexts.size(); begin += k) {
    const size_t end = std::min(begin + k, device.contexts.size());
    Context fused = device.contexts[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      const Context& c = device.contexts[i];
      fused.name += "+" + c.name;
      fused.weight_mib += c.weight_mib;
      fused.load_s += c.load_s;
      fused.init_s += c.init_s;
      fused.release_s += c.release_s;
      fused.run_s += c.run_s;
      fused.host_s += c.host_s;
    }
    const double before = fused.lifecycle_s();
    if (before > 0) {
      const double share = 1 - fixed * static_cast<double>(end - begin - 1) / before;
      fused.load_s *= share;
      fused.init_s *= share;
      fused.release_s *= share;
    }
    out.contexts.push_back(std::move(fused));
  }
  return out;
}

ContextDevice averaged(const ContextDevice& device) {
  ContextDevice out = device;
  const double n = static_cast<double>(device.contexts.size());
  Context mean;
  for (const Context& c : device.contexts) {
    mean.weight_mib += c.weight_mib / n;
    mean.load_s += c.load_s / n;
    mean.init_s += c.init_s / n;
    mean.release_s += c.release_s / n;
    mean.run_s += c.run_s / n;
    mean.host_s += c.host_s / n;
  }
  for (Context& c : out.contexts) {
    mean.name = c.name;
    mean.kind = c.kind;
    c = mean;
  }
  return out;
}

}  // namespace ridge::sim
