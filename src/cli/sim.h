// ridge sim and ridge plan for devices: what their files share.
#pragma once

#include <optional>
#include <string>

#include "cli/common.h"
#include "sim/device_study.h"
#include "sim/npu_machine.h"
#include "sim/npu_work.h"

namespace ridge::cli {

struct SimFlags {
  EngineFlags engine;  // of a model; `model` is the input, whatever it is
  std::optional<std::string> machine, policy, train, export_path, lock, trace, worth, map, task;
  std::vector<std::string> mix;  // NAME=TRACE
  std::optional<int64_t> steps, computed, merge, passes, turn;
  bool spectrum = false, json = false;
};

// A path that exists, or the name of an installed profile: "rk3588-anima", "profiles/rk3588-anima.toml".
Result<std::string> resolve_profile(const std::string& name);
// The folder of the profiles that are installed with this program.
std::string installed_profiles();
// Whether an input of sim and plan is a device of contexts, by its name.
bool is_profile(const std::string& name);

Result<sim::DriverLock> parse_lock(const std::string& name);  // "none", "init", "init-and-release"

Result<void> sim_device(const SimFlags& flags);  // PROFILE.toml
Result<void> sim_trace(const SimFlags& flags);   // recorded, or oracleGeneral
Result<void> sim_model(const SimFlags& flags);   // a program
Result<void> sim_tasks(const SimFlags& flags);   // traces of several tasks in turn, with pins by a map

// The same on a machine of tiers, whose profile is the file `profile`.
Result<void> sim_npu(const SimFlags& flags, const std::string& profile);
// does_not_fit if the objects are more than the machine's DRAM.
Result<void> check_size(const std::string& input, const sim::NpuWork& work, const sim::NpuMachine& machine);
bool is_trace(const std::string& input);            // by the end of its name
Result<uint32_t> passes_of(const SimFlags& flags);  // of a model

// `ridge plan PROFILE.toml`: --memory (of added memory; default: the ladder's gate), --steps, --spectrum, --computed,
// --merge, --lock, --json.
Result<void> plan_device(const SimFlags& flags);

}  // namespace ridge::cli
