// ridge plan: what a run would keep in memory, what it would stream, and what a larger budget would buy.
#include <langinfo.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/sim.h"
#include "report/plan_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge plan model.gguf                          (for what this machine offers)\n"
    "  ridge plan model.gguf --memory 480M --context 512 --explain\n"
    "  ridge plan model.gguf --memory 2G --machine board.toml --svg curve.svg\n"
    "  ridge plan model.gguf --memory 480M --json";

struct Flags {
  SimFlags sim;  // what a device of contexts takes, and of it what a model takes
  std::optional<std::string> svg;
  bool explain = false;
};

bool utf8_terminal() {
  return std::setlocale(LC_CTYPE, "") != nullptr && std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

Result<void> write_svg(const PlanStudy& study, const std::string& path) {
  RIDGE_TRY(refuse_overwriting(path, study.engine->model().file().files(), "--svg"));
  return write_text(path, plan_svg(study));
}

Result<void> run(const Flags& flags) {
  if (is_profile(flags.sim.engine.model)) {
    if (flags.svg || flags.explain || flags.sim.machine) {
      return usage_error("--svg, --explain and --machine are for models: leave them out for a device profile");
    }
    return plan_device(flags.sim);
  }
  if (flags.sim.steps || flags.sim.computed || flags.sim.merge || flags.sim.lock || flags.sim.spectrum) {
    return usage_error("--steps, --spectrum, --computed, --merge and --lock are for device profiles (.toml)");
  }
  EngineOptions options = RIDGE_TRY(engine_options(flags.sim.engine));
  if (flags.svg) RIDGE_TRY(check_output(*flags.svg, "--svg"));
  if (flags.sim.machine) options.machine = RIDGE_TRY(resolve_profile(*flags.sim.machine));
  std::unique_ptr<Engine> engine = RIDGE_TRY(Engine::plan_only(options));
  PlanStudy study{.engine = engine.get(), .curve = RIDGE_TRY(budget_curve(engine->planning()))};
  if (flags.svg) RIDGE_TRY(write_svg(study, *flags.svg));
  if (flags.sim.json) {
    return print(plan_json(study, flags.explain).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return print(plan_text(study, {.explain = flags.explain, .utf8 = utf8_terminal()}));
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("plan", "what a budget keeps, streams and costs");
  add_engine_flags(*command, flags->sim.engine);
  add_lora_flag(*command, flags->sim.engine);
  command->get_option("MODEL")->description("model, or a device profile (.toml)");
  auto add = [&](const char* name, auto& value, const char* type, const char* what) {
    command->add_option(name, value, what)->type_name(type);
  };
  add("--machine", flags->sim.machine, "FILE", "plan for this machine (TOML of `ridge probe`)");
  command->add_flag("--explain", flags->explain, "also the account and every block");
  command->add_flag("--json", flags->sim.json, "print one JSON object");
  add("--svg", flags->svg, "FILE", "draw speed over the budget");
  add("--steps", flags->sim.steps, "N", "device: steps of an image (default: the profile's)");
  command->add_flag("--spectrum", flags->sim.spectrum, "device: Spectrum predicts most steps");
  add("--computed", flags->sim.computed, "N", "device: so many steps are computed");
  add("--merge", flags->sim.merge, "K", "device: fuse K neighbouring contexts into one");
  add("--lock", flags->sim.lock, "NAME", "device: a run excludes: none, init, init-and-release");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
