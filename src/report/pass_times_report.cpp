#include "report/pass_times_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/seconds.h"

namespace ridge {
namespace {

constexpr const char* kNames[kPartKinds] = {"self", "cross", "ffn", "first, last"};
constexpr const char* kKeys[kPartKinds] = {"self", "cross", "ffn", "other"};

std::string row(const std::string& name, const PartCost& c, double divisor) {
  const double load = seconds(c.load) / divisor, init = seconds(c.init) / divisor;
  const double execute = seconds(c.execute) / divisor, release = seconds(c.release) / divisor;
  return fmt::format("{:<12}{:>10.4f}{:>10.4f}{:>10.4f}{:>10.4f}{:>10.4f}\n", name, load, init, execute, release,
                     load + init + execute + release);
}

}  // namespace

std::string pass_times_table(std::span<const PassCost> passes) {
  auto head = [](const char* what) {
    return fmt::format("{:<12}{:>10}{:>10}{:>10}{:>10}{:>10}\n", what, "load", "init", "execute", "release", "sum");
  };
  PassCost sums{};
  std::string steps;
  for (size_t i = 0; i < passes.size(); ++i) {
    PartCost of_step;
    for (size_t kind = 0; kind < kPartKinds; ++kind) {
      sums[kind] += passes[i][kind];
      of_step += passes[i][kind];
    }
    steps += row(fmt::format("step {}", i), of_step, 1);
  }
  std::string out = head("s per step");
  PartCost all;
  for (size_t kind = 0; kind < kPartKinds; ++kind) {
    out += row(kNames[kind], sums[kind], static_cast<double>(passes.size()));
    all += sums[kind];
  }
  out += row("all", all, static_cast<double>(passes.size()));
  return out + head("s") + steps;
}

nlohmann::ordered_json pass_times_json(std::span<const PassCost> passes) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const PassCost& pass : passes) {
    nlohmann::ordered_json step;
    for (size_t kind = 0; kind < kPartKinds; ++kind) {
      const PartCost& c = pass[kind];
      step[kKeys[kind]] = {{"load", seconds(c.load)},
                           {"init", seconds(c.init)},
                           {"execute", seconds(c.execute)},
                           {"release", seconds(c.release)}};
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace ridge
