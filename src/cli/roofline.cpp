// ridge roofline: every phase and operator of a model under the roofs of a machine, and what limits it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyze/kernel_bench.h"
#include "analyze/paper_compat.h"
#include "analyze/roofline_analytic.h"
#include "analyze/roofline_run.h"
#include "analyze/roofline_sweep.h"
#include "analyze/shape_model.h"
#include "analyze/sweep_models.h"
#include "base/log.h"
#include "base/number_list.h"
#include "base/progress.h"
#include "cli/command_line.h"
#include "cli/common.h"
#include "cli/sim.h"
#include "machine/cpu.h"
#include "model/model_file.h"
#include "report/paper_report.h"
#include "report/roofline_history.h"
#include "report/roofline_html.h"
#include "report/roofline_report.h"
#include "report/roofline_store.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge roofline smollm2-135m\n"
    "  ridge roofline a.gguf b.gguf --scenarios siso,liso --lengths 64,1024\n"
    "  ridge roofline model.gguf --memory 300M --json\n"
    "  ridge roofline shape:llama-3.2-1b --machine m1-pro.toml rtx-3090.toml\n"
    "  ridge roofline model.gguf --sweep depth -o report.html\n"
    "  ridge roofline model.gguf --db runs.sqlite --label before\n"
    "  ridge roofline --history --db runs.sqlite\n"
    "  ridge roofline --paper-compat\n"
    "  ridge roofline model.gguf --sweep type --paper-compat\n\n"
    "A model may be a shape without weights: shape:NAME, or a .json file that\n"
    "describes one; without --machine it is run with random weights.\n"
    "Exit code 70: a point lies above its roof, so something is counted or\n"
    "measured wrong; the report is written all the same.";

struct Flags {
  EngineFlags engine;
  std::vector<std::string> models, machines;
  std::string scenarios = "siso,liso,silo,lilo", lengths = "128,4096";
  uint64_t decode_tokens = 32;
  int repetitions = 3;
  std::optional<std::string> sweep, html, svg, db, label;
  bool json = false, csv = false, paper = false, history = false;
};

Result<RooflineFormat> format_of(const Flags& flags) {
  if (flags.json && flags.csv) return usage_error("--json and --csv exclude one another: give one");
  if (flags.json) return RooflineFormat::json;
  return flags.csv ? RooflineFormat::csv : RooflineFormat::table;
}

Result<ScenarioLengths> lengths_of(const Flags& flags) {
  // Longer texts than any context has would only overflow sums.
  constexpr uint64_t kMost = uint64_t{1} << 24;
  const std::vector<uint64_t> numbers = RIDGE_TRY(parse_numbers(flags.lengths, "--lengths"));
  if (numbers.size() != 2) {
    return usage_error(fmt::format("--lengths {}: give two numbers of tokens, short and long", flags.lengths));
  }
  for (uint64_t n : numbers) {
    if (n < 1 || n > kMost) {
      return usage_error(fmt::format("--lengths {}: {} is no usable length: give 1 to {}", flags.lengths, n, kMost));
    }
  }
  return ScenarioLengths{.short_tokens = numbers[0], .long_tokens = numbers[1]};
}

Result<std::vector<Scenario>> scenarios_of(const Flags& flags, const std::optional<Sweep>& sweep) {
  const ScenarioLengths lengths = RIDGE_TRY(lengths_of(flags));
  if (sweep == Sweep::context) return context_scenarios(lengths);
  return pick_scenarios(flags.scenarios, lengths);
}

bool is_shape(const std::string& model) { return model.starts_with("shape:") || model.ends_with(".json"); }

Result<ModelShape> shape_named(const std::string& model) {
  constexpr std::string_view kPrefix = "shape:";
  if (!model.starts_with(kPrefix)) return parse_shape(RIDGE_TRY(read_text(model)), model);
  if (const ModelShape* shape = find_shape(model.substr(kPrefix.size()))) return *shape;
  return usage_error(fmt::format("{}: no such shape; there are {}, or name a .json file", model, shape_names()));
}

struct CountedModel {
  std::unique_ptr<Model> model;
  std::optional<ModelShape> shape;  // where it is nothing else
};

// The models of an argument: one, or the variants of a sweep.
Result<std::vector<CountedModel>> models_of(const std::string& name, const std::optional<Sweep>& sweep) {
  std::vector<CountedModel> models;
  if (!is_shape(name)) {
    if (sweep && is_of_shapes(*sweep)) {
      return usage_error(
          fmt::format("--sweep {} on a --machine varies a shape: give shape:NAME or a .json file "
                      "instead of {}, or leave --machine out to measure it",
                      name_of(*sweep), name));
    }
    models.push_back({RIDGE_TRY(Model::open(RIDGE_TRY(resolve_model(name)))), std::nullopt});
    return models;
  }
  const ModelShape shape = RIDGE_TRY(shape_named(name));
  std::vector<ModelShape> variants = {shape};
  if (sweep && is_of_shapes(*sweep)) variants = sweep_shapes(*sweep, shape);
  for (const ModelShape& v : variants) models.push_back({RIDGE_TRY(make_shape_model(v)), v});
  return models;
}

// The paper's column beside the points from `first` on.
void add_compat(const Model& model, const std::optional<ModelShape>& known, size_t first, RooflineReport& report) {
  std::optional<ModelShape> shape = known;
  if (!shape) {
    Result<ModelShape> read = shape_of(model);
    if (read.ok()) shape = std::move(read).value();
  }
  if (shape && shape->experts == 0) {
    add_compat_rows(model, *shape, first, report);
    return;
  }
  const std::string& name = first < report.points.size() ? report.points[first].model : model.config().architecture;
  note(
      fmt::format("{}: --paper-compat has no column for it: of files it knows plain attention (no latents, windows or "
                  "experts, three matrices of the feed-forward part)",
                  name));
}

// Over depth, the time of a token is that of the head and the start, and as much again for every layer.
void note_depth(RooflineReport& report, const std::string& machine, const std::map<std::string, uint32_t>& layers) {
  std::map<std::string, std::vector<TimeSample>> by_scenario;
  for (const RooflinePoint& p : report.points) {
    if (p.op != "all" || p.phase != BenchTest::decode || p.machine != machine || !layers.contains(p.model)) continue;
    by_scenario[p.scenario].push_back(
        {static_cast<double>(layers.at(p.model)), p.seconds / static_cast<double>(p.tokens)});
  }
  for (const auto& [scenario, samples] : by_scenario) {
    const auto fit = fit_time(samples);
    if (!fit) continue;
    report.notes.push_back(fmt::format("{} on {}: a token of decode takes {:.3g} ms + {:.3g} ms for each layer",
                                       scenario, machine, fit->t0 * 1e3, fit->tau * 1e3));
  }
}

// Nothing is run: the bounds by the figures of each machine.
Result<void> compute(const Flags& flags, const std::optional<Sweep>& sweep, RooflineReport& report) {
  if (sweep == Sweep::threads) return usage_error("--sweep threads measures: leave --machine out");
  AnalyticOptions options;
  options.scenarios = RIDGE_TRY(scenarios_of(flags, sweep));
  if (flags.engine.kv_type) options.rules.kv_type = RIDGE_TRY(parse_kv_type(*flags.engine.kv_type));
  report.kv_type = name_of(options.rules.kv_type);
  options.rules.exact = RIDGE_TRY(parse_numerics(flags.engine.numerics)) == Numerics::exact;
  std::vector<MachineProfile> machines;
  for (const std::string& machine : flags.machines)
    machines.push_back(RIDGE_TRY(load_profile(RIDGE_TRY(resolve_profile(machine)))));
  for (const std::string& name : flags.models) {
    std::map<std::string, uint32_t> layers;
    for (const auto& [model, shape] : RIDGE_TRY(models_of(name, sweep))) {
      const size_t first = report.points.size();
      report.models.push_back({.name = model->config().name,
                               .architecture = model->config().architecture,
                               .path = name,
                               .weight_bytes = model->program({}, {}).memory_bytes_of_a_pass()});
      layers[model->config().name] = model->config().layers;
      for (const MachineProfile& machine : machines) {
        RIDGE_TRY(add_analytic_points(*model, machine, options, report));
      }
      if (flags.paper) add_compat(*model, shape, first, report);
    }
    if (sweep != Sweep::depth) continue;
    for (const MachineProfile& machine : machines) note_depth(report, machine.name, layers);
  }
  return {};
}

// 1, 2, 4 … and all of them.
std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

// One engine to measure: a model as it is, or one that is made for it.
struct Job {
  std::string model;  // as the user named it
  std::optional<SweepModel> made;
};

Result<std::vector<Job>> jobs_of(const Flags& flags, const std::optional<Sweep>& sweep) {
  std::vector<Job> jobs;
  for (const std::string& model : flags.models) {
    const bool shape = is_shape(model), varied = sweep && is_of_shapes(*sweep);
    if (!shape && !varied) {
      jobs.push_back({.model = model, .made = std::nullopt});
      continue;
    }
    const std::optional<Sweep> of_models = varied ? sweep : std::nullopt;
    for (SweepModel& m : RIDGE_TRY(shape ? sweep_models(of_models, RIDGE_TRY(shape_named(model)))
                                         : sweep_models(*sweep, RIDGE_TRY(resolve_model(model))))) {
      jobs.push_back({.model = model, .made = std::move(m)});
    }
  }
  return jobs;
}

Result<void> measure(const Flags& flags, const std::optional<Sweep>& sweep, RooflineReport& report) {
  RooflineOptions options;
  options.scenarios = RIDGE_TRY(scenarios_of(flags, sweep));
  options.decode_tokens = flags.decode_tokens;
  options.repetitions = flags.repetitions;
  options.interrupted = &interrupt_flag();
  const std::vector<Job> jobs = RIDGE_TRY(jobs_of(flags, sweep));
  // Before an engine opens, so that what this takes does not come on top of its budget.
  options.formats = RIDGE_TRY(measure_formats(true));
  std::vector<int> threads = {0};  // as the engine's flags say
  if (sweep == Sweep::threads) threads = thread_counts(flags.engine.threads.value_or(report.machine.cpus));
  Progress bar("measuring", roofline_work(options) * jobs.size() * threads.size(), ProgressUnit::items);
  options.progress = [&](uint64_t tokens) { bar.advance(tokens); };
  std::map<std::string, uint32_t> layers;
  for (const Job& job : jobs) {
    EngineFlags engine = flags.engine;
    engine.model = job.model;
    std::optional<MadeModel> made;
    if (job.made) {
      Result<MadeModel> file = job.made->make(options.interrupted);
      report.interrupted = interrupt_flag();
      if (report.interrupted) return {};
      made.emplace(RIDGE_TRY(std::move(file)));
      engine.model = made->path();
      layers[job.made->name] = job.made->layers;
    }
    options.engine = RIDGE_TRY(engine_options(engine));
    for (int count : threads) {
      if (count > 0) options.engine.threads = count;
      const size_t first = report.points.size();
      RIDGE_TRY(measure_roofline(options, report));
      report.models.back().path = job.model;
      if (flags.paper) {
        const std::unique_ptr<Model> model = RIDGE_TRY(Model::open(options.engine.path));
        add_compat(*model, job.made ? job.made->shape : std::nullopt, first, report);
      }
      if (report.interrupted) return {};
    }
  }
  if (sweep == Sweep::depth) note_depth(report, report.machine.cpu, layers);
  return {};
}

// Before minutes of measuring: what will be written can be, and replaces no input and no other result.
Result<void> check_outputs(const Flags& flags) {
  std::vector<OutputName> outputs;
  if (flags.db) outputs.push_back({"--db", *flags.db});
  for (const auto& [flag, path] : {std::pair("-o", flags.html), {"--svg", flags.svg}}) {
    if (!path) continue;
    for (const std::string& name : flags.models) {
      if (is_shape(name)) {
        RIDGE_TRY(refuse_overwriting(*path, name, flag));
        continue;
      }
      const ModelFile model = RIDGE_TRY(open_model_file(RIDGE_TRY(resolve_model(name)), Verify::headers));
      RIDGE_TRY(refuse_overwriting(*path, model.header.files(), flag));
    }
    for (const std::string& machine : flags.machines) {
      RIDGE_TRY(refuse_overwriting(*path, RIDGE_TRY(resolve_profile(machine)), flag));
    }
    RIDGE_TRY(check_output(*path, flag));
    outputs.push_back({flag, *path});
  }
  return refuse_twice(outputs);
}

// The command that would give the same report.
std::string command_of(const Flags& flags) {
  std::string text = "ridge roofline";
  for (const std::string& model : flags.models) text += " " + model;
  if (!flags.machines.empty()) text += fmt::format(" --machine {}", fmt::join(flags.machines, " "));
  if (flags.sweep) text += " --sweep " + *flags.sweep;
  if (flags.paper) text += " --paper-compat";
  text += fmt::format(" --scenarios {} --lengths {} -n {} -r {}", flags.scenarios, flags.lengths, flags.decode_tokens,
                      flags.repetitions);
  if (flags.engine.threads) text += fmt::format(" -t {}", *flags.engine.threads);
  if (flags.engine.memory) text += " -m " + *flags.engine.memory;
  return text;
}

// Said on stderr too: the result may have gone into a file.
Result<void> verdict(const RooflineReport& report) {
  uint64_t count = 0;
  const RooflinePoint* first = nullptr;
  for (const RooflinePoint& p : report.points) {
    if (!p.above) continue;
    if (first == nullptr) first = &p;
    ++count;
  }
  if (first == nullptr) return {};
  // Where others used the machine, roofs that are too low explain it better than a wrong count.
  const std::string contended =
      first->contention.empty() ? "" : fmt::format("; contended while measured: {}", first->contention);
  return Error{ErrorCode::bug,
               fmt::format("{} of {} points above their roofs; {}, {}: {}{}", count, report.points.size(), first->model,
                           first->scenario, first->sentence, contended)};
}

// What was kept before; nothing is measured.
Result<void> history(const Flags& flags, RooflineFormat format) {
  if (!flags.db) return usage_error("--history: name the SQLite file of earlier runs with --db");
  if (flags.html || flags.svg || flags.sweep || flags.label || flags.paper || !flags.machines.empty()) {
    return usage_error(
        "--history prints what was kept: leave -o, --svg, --sweep, --label, --paper-compat and --machine out");
  }
  const RooflineStore store = RIDGE_TRY(RooflineStore::open_existing(*flags.db));
  return print(roofline_history(RIDGE_TRY(store.history(flags.models)), format));
}

Result<void> keep(const Flags& flags, RooflineStore& store, const RooflineReport& report) {
  if (report.points.empty()) return {};
  const int64_t number = RIDGE_TRY(store.save(report));
  note(fmt::format("kept as run {}{} in {}", number, flags.label ? fmt::format(" ('{}')", *flags.label) : "",
                   *flags.db));
  return {};
}

Result<void> run(const Flags& flags) {
  const RooflineFormat format = RIDGE_TRY(format_of(flags));
  if (flags.paper && format == RooflineFormat::csv) {
    return usage_error("--paper-compat prints tables, or JSON with --json");
  }
  if (flags.paper && flags.models.empty() && !flags.history) {
    return print(format == RooflineFormat::json ? paper_json().dump(2) + "\n" : paper_text());
  }
  if (flags.history) return history(flags, format);
  if (flags.label && !flags.db) return usage_error("--label names a run that is kept: give --db FILE too");
  if (flags.models.empty()) return usage_error("a MODEL is missing; see `ridge roofline --help`");
  if (flags.decode_tokens < 1) return usage_error("--tokens 0 measures no decoding: give 1 or more");
  RooflineReport report;
  report.version = RIDGE_VERSION;
  report.numerics = flags.engine.numerics;
  report.label = flags.label.value_or("");
  report.machine = this_machine();
  std::optional<Sweep> sweep;
  if (flags.sweep) sweep = RIDGE_TRY(parse_sweep(*flags.sweep));
  RIDGE_TRY(check_outputs(flags));
  std::optional<RooflineStore> store;
  if (flags.db) store = RIDGE_TRY(RooflineStore::open(*flags.db));
  RIDGE_TRY(flags.machines.empty() ? measure(flags, sweep, report) : compute(flags, sweep, report));
  if (report.interrupted && report.points.empty()) return io_error("stopped by Ctrl-C before anything was measured");
  if (report.interrupted) note("stopped by Ctrl-C: what was finished follows");
  RIDGE_TRY(print(roofline_text(report, format)));
  if (flags.html) RIDGE_TRY(write_text(*flags.html, roofline_html(report, {.command = command_of(flags)})));
  if (flags.svg) RIDGE_TRY(write_text(*flags.svg, first_roofline_svg(report)));
  if (store) RIDGE_TRY(keep(flags, *store, report));
  return verdict(report);
}

}  // namespace

void add_roofline(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("roofline", "show what limits a model: its phases and operators under the roofs");
  add_engine_flags(*command, flags->engine);
  command->remove_option(command->get_option("MODEL"));
  auto add = [&](const char* names, auto& value, const char* type, const char* what) {
    return command->add_option(names, value, what)->type_name(type);
  };
  add("MODEL", flags->models, "", "GGUF files, .ridge packs, or names from `ridge models`");
  add("--machine", flags->machines, "FILES", "place it on these profiles instead of running it");
  add("--scenarios", flags->scenarios, "LIST", "of siso, liso, silo, lilo (default: all)");
  add("--lengths", flags->lengths, "S,L", "tokens that are short and long")->capture_default_str();
  add("-n,--tokens", flags->decode_tokens, "N", "tokens of an answer to time, in its middle")
      ->capture_default_str()
      ->check(CLI::Validator(refuse_negative, ""));
  add("-r,--repetitions", flags->repetitions, "N", "runs of each phase, 1 to 50")->capture_default_str();
  add("--sweep", flags->sweep, "AXIS", "along depth, type, attention, context or threads");
  add("-o,--output", flags->html, "FILE", "also write a page with charts (HTML)");
  add("--svg", flags->svg, "FILE", "also draw the first scenario");
  add("--db", flags->db, "FILE", "also keep the points in this SQLite file");
  add("--label", flags->label, "NAME", "name of this run in it");
  command->add_flag("--history", flags->history, "compare the runs kept in it, of these models or all");
  command->add_flag("--paper-compat", flags->paper, "RooflineBench's figures of MODEL, or the paper's own");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->add_flag("--csv", flags->csv, "print comma-separated values");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
