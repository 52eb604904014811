// ridge plan: what a run would keep in memory, what it would stream, and what a larger budget would buy.
#include <langinfo.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "format/output_file.h"
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
  EngineFlags engine;
  std::optional<std::string> machine, svg;
  bool explain = false, json = false;
};

bool utf8_terminal() {
  return std::setlocale(LC_CTYPE, "") != nullptr && std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

Result<void> write_svg(const PlanStudy& study, const std::string& path) {
  RIDGE_TRY(refuse_overwriting(path, study.engine->model().file().files(), "--svg"));
  const std::string svg = plan_svg(study);
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(out.write(svg));
  return out.commit();
}

Result<void> run(const Flags& flags) {
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  options.machine = flags.machine.value_or("");
  std::unique_ptr<Engine> engine = RIDGE_TRY(Engine::plan_only(options));
  PlanStudy study{.engine = engine.get(), .curve = RIDGE_TRY(budget_curve(engine->planning()))};
  if (flags.svg) RIDGE_TRY(write_svg(study, *flags.svg));
  if (flags.json) {
    return print(plan_json(study, flags.explain).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return print(plan_text(study, {.explain = flags.explain, .utf8 = utf8_terminal()}));
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("plan", "what a budget keeps, streams and costs");
  add_engine_flags(*command, flags->engine);
  command->add_option("--machine", flags->machine, "plan for this machine (TOML of `ridge probe`)")->type_name("FILE");
  command->add_flag("--explain", flags->explain, "also the account and every block");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->add_option("--svg", flags->svg, "draw speed over the budget")->type_name("FILE");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
