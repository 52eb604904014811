// ridge sim and ridge plan for a device of contexts (a profile).
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/units.h"
#include "cli/sim.h"
#include "cli/trace_file.h"
#include "program/spectrum_steps.h"
#include "report/device_report.h"
#include "report/sim_trace_info.h"
#include "sim/sim_trace.h"

namespace ridge::cli {
namespace {

constexpr int64_t kMostSteps = 10'000, kMostMerged = 1'000;

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<uint32_t> whole(const std::optional<int64_t>& value, int64_t otherwise, int64_t least, int64_t most,
                       const char* flag) {
  const int64_t n = value.value_or(otherwise);
  if (n < least || n > most) {
    return usage_error(fmt::format("{} {} is no usable number: give {} to {}", flag, n, least, most));
  }
  return static_cast<uint32_t>(n);
}

// Steps that run the network.
Result<uint32_t> computed_steps(const SimFlags& flags, const sim::ContextDevice& device) {
  const uint32_t steps = RIDGE_TRY(whole(flags.steps, device.steps, 1, kMostSteps, "--steps"));
  if (flags.computed) {
    if (flags.spectrum) return usage_error("--computed and --spectrum exclude one another: give one");
    return whole(flags.computed, steps, 1, steps, "--computed");
  }
  if (!flags.spectrum) return steps;
  const std::vector<bool> computed = spectrum_steps(steps);
  return static_cast<uint32_t>(std::count(computed.begin(), computed.end(), true));
}

Result<void> only_of_devices(const SimFlags& flags) {
  if (flags.machine || flags.policy || flags.passes || flags.export_path) {
    return usage_error("--machine, --policy, --passes and --export are for models and traces: leave them out");
  }
  return {};
}

}  // namespace

// PREFIX/share/ridge/profiles beside PREFIX/bin/ridge, wherever that was installed.
std::string installed_profiles() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return "";
  const std::filesystem::path program(std::string(path.data(), static_cast<size_t>(size)));
  return (program.parent_path().parent_path() / "share/ridge/profiles").string();
}

bool is_profile(const std::string& name) {
  if (name.ends_with(".toml")) return true;
  return !exists(name) && name.find('/') == std::string::npos && exists(installed_profiles() + "/" + name + ".toml");
}

Result<std::string> resolve_profile(const std::string& name) {
  if (exists(name)) return name;
  std::string file = std::filesystem::path(name).filename().string();
  if (!file.ends_with(".toml")) file += ".toml";
  const std::string installed = installed_profiles() + "/" + file;
  if (exists(installed)) return installed;
  return bad_input(
      fmt::format("{}: no such profile, neither here nor in {}: name a file, such as "
                  "profiles/rk3588-anima.toml",
                  name, installed_profiles()));
}

Result<sim::DriverLock> parse_lock(const std::string& name) {
  if (name == "none") return sim::DriverLock::none;
  if (name == "init") return sim::DriverLock::init;
  if (name == "init-and-release") return sim::DriverLock::init_and_release;
  return usage_error(fmt::format("--lock {} is not known: give none, init or init-and-release", name));
}

namespace {

Result<sim::DevicePlan> planned(const SimFlags& flags, const sim::ContextDevice& device) {
  sim::DevicePlanOptions options;
  options.computed_steps = RIDGE_TRY(computed_steps(flags, device));
  options.merge = RIDGE_TRY(whole(flags.merge, 1, 1, kMostMerged, "--merge"));
  if (flags.engine.memory) {
    options.budget_mib = static_cast<double>(RIDGE_TRY(parse_bytes(*flags.engine.memory))) / static_cast<double>(kMiB);
  }
  options.lock = RIDGE_TRY(parse_lock(flags.lock.value_or("none")));
  return sim::plan_device(device, options);
}

// A study has many runs; the trace is of the one that a plan would choose.
Result<void> trace_plan(const SimFlags& flags, const sim::ContextDevice& whole_device) {
  TraceFile file = RIDGE_TRY(TraceFile::create(*flags.trace, "ridge sim"));
  const sim::DevicePlan plan = RIDGE_TRY(planned(flags, whole_device));
  const uint32_t merge = static_cast<uint32_t>(flags.merge.value_or(1));
  const sim::ContextDevice device = merge > 1 ? sim::merged(whole_device, merge) : whole_device;
  const sim::LadderFit fit = sim::fit_ladder(whole_device);
  const sim::LifecycleRun run = sim::run_lifecycle(device, fit, plan.best.options);
  const Program program = device.program();
  sim::write_trace(run.sim, run.result,
                   {.ends = run.pass_ends,
                    .name = "denoising",
                    .base_bytes = static_cast<uint64_t>(std::max(0.0, fit.base_mib) * static_cast<double>(kMiB))},
                   *file.trace());
  return file.finish(device_trace_info({.title = std::filesystem::path(flags.engine.model).filename().string(),
                                        .device = &device,
                                        .program = &program,
                                        .plan = &plan}));
}

}  // namespace

Result<void> sim_device(const SimFlags& flags) {
  RIDGE_TRY(only_of_devices(flags));
  if (!flags.trace && flags.lock)
    return usage_error("--lock is for --trace here: the table shows every lock; leave it out");
  const sim::ContextDevice device = RIDGE_TRY(sim::load_context_device(RIDGE_TRY(resolve_profile(flags.engine.model))));
  sim::StudyOptions options;
  options.computed_steps = RIDGE_TRY(computed_steps(flags, device));
  options.merge = RIDGE_TRY(whole(flags.merge, 1, 1, kMostMerged, "--merge"));
  if (flags.trace) RIDGE_TRY(trace_plan(flags, device));
  const sim::DeviceStudy study = sim::study_device(device, options);
  return print(flags.json ? study_json(device, study).dump(2) + "\n" : study_table(device, study));
}

Result<void> plan_device(const SimFlags& flags) {
  const sim::ContextDevice device = RIDGE_TRY(sim::load_context_device(RIDGE_TRY(resolve_profile(flags.engine.model))));
  const sim::DevicePlan plan = RIDGE_TRY(planned(flags, device));
  return print(flags.json ? device_plan_json(device, plan).dump(2) + "\n" : device_plan_table(device, plan));
}

}  // namespace ridge::cli
