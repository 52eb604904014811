// ridge sim: passes over models, devices of contexts, and traces, in simulated time.
#include "cli/sim.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/npu_machine.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge sim rk3588-anima --steps 28 --spectrum      (a device of contexts)\n"
    "  ridge sim profiles/rk3588-anima.toml --merge 3 --json\n"
    "  ridge sim model.gguf --memory 300M                (the engine's own plan)\n"
    "  ridge sim model.gguf --memory 300M --policy all --machine board.toml\n"
    "  ridge sim model.gguf --machine ethos-u85          (tiers: SRAM, DRAM, DMA)\n"
    "  ridge sim shape:llama-3.2-1b:Q4_K --machine hexagon-v75 --policy all\n"
    "  ridge run model.gguf -p Hi --record visits.json\n"
    "  ridge sim visits.json --memory 200M --policy all\n"
    "  ridge sim visits.json --memory 200M --policy importance --train other.json\n"
    "  ridge sim a.json --task code --mix chat=b.json --map map.json --memory 64M\n"
    "  ridge sim model.gguf --memory 300M --trace sim.json\n"
    "  ridge sim visits.json --export visits.oracleGeneral  (for libCacheSim)";

Result<void> run(const SimFlags& flags) {
  if (flags.export_path) {
    RIDGE_TRY(refuse_overwriting(*flags.export_path, flags.engine.model, "--export"));
    RIDGE_TRY(check_output(*flags.export_path, "--export"));
  }
  const std::string& input = flags.engine.model;
  if (flags.train && !is_trace(input)) {
    return usage_error(fmt::format("--train is for traces, and {} is none: leave it out", input));
  }
  if (flags.map) return sim_tasks(flags);
  if (flags.task || !flags.mix.empty() || flags.turn)
    return usage_error("--task, --mix and --turn need --map: which blocks a task touches is in a map");
  if (is_profile(input)) {
    if (flags.worth) return usage_error("--worth is for a --machine of tiers, such as ethos-u85: leave it out");
    return sim_device(flags);
  }
  if (flags.steps || flags.computed || flags.spectrum || flags.merge || flags.lock) {
    return usage_error(
        fmt::format("--steps, --spectrum, --computed, --merge and --lock are for devices of contexts, such as "
                    "rk3588-anima, and {} is none: leave them out",
                    input));
  }
  if (flags.machine) {
    const std::string profile = RIDGE_TRY(resolve_profile(*flags.machine));
    // What is no profile at all is told by those who read the rest of it.
    const Result<bool> tiers = sim::has_tiers(profile);
    if (tiers.ok() && tiers.value()) {
      if (flags.train) return usage_error("--train is not for a --machine of tiers: leave one of them out");
      return sim_npu(flags, profile);
    }
  }
  if (flags.worth) return usage_error("--worth is for a --machine of tiers, such as ethos-u85: leave it out");
  return is_trace(input) ? sim_trace(flags) : sim_model(flags);
}

}  // namespace

void add_sim(CLI::App& app) {
  auto flags = std::make_shared<SimFlags>();
  auto* command = app.add_subcommand("sim", "simulate a model, a device of contexts, or a trace");
  add_engine_flags(*command, flags->engine);
  command->get_option("MODEL")->description("model, device profile (.toml), or trace");
  auto add = [&](const char* name, auto& value, const char* type, const char* what) {
    command->add_option(name, value, what)->type_name(type);
  };
  add("--machine", flags->machine, "FILE", "machine profile (default: that of `ridge probe`)");
  add("--policy", flags->policy, "NAME", "what is kept, or all: a table of all of them");
  add("--train", flags->train, "TRACE", "another trace, to choose pins and parameters from");
  add("--map", flags->map, "FILE", "an importance map: what it is worth to know the task");
  add("--task", flags->task, "NAME", "with --map: the task of the trace");
  command->add_option("--mix", flags->mix, "with --map: TASK=TRACE, may be repeated")
      ->type_name("T=F")
      ->expected(1)
      ->take_all();
  add("--turn", flags->turn, "N", "with --map: passes of a turn (default 32)");
  add("--worth", flags->worth, "NAME", "tiers: SRAM keeps what saves energy (default), seconds");
  add("--passes", flags->passes, "N", "passes to simulate (default 8)");
  add("--export", flags->export_path, "FILE", "write the order of visits as oracleGeneral");
  add("--trace", flags->trace, "FILE", "write what would happen when, for `ridge report`");
  add("--steps", flags->steps, "N", "steps of an image (default: the profile's)");
  command->add_flag("--spectrum", flags->spectrum, "Spectrum predicts most steps");
  add("--computed", flags->computed, "N", "so many steps are computed, whatever the rule");
  add("--merge", flags->merge, "K", "fuse K neighbouring contexts into one");
  add("--lock", flags->lock, "NAME", "driver of --trace: none, init, init-and-release");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
