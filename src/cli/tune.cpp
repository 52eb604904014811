// ridge tune: trains low-rank adapters for a model, on a text, within a memory budget (docs/tune.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/log.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/common.h"
#include "cli/distill.h"
#include "cli/training_flags.h"
#include "report/csv.h"
#include "report/line_chart.h"

namespace ridge::cli {
namespace {

using distill::CurvePoint;
using distill::TuneJob;
using distill::TuneReport;
using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge tune model.gguf --data notes.txt -o notes.gguf\n"
    "  ridge tune model.gguf --data notes.txt -o notes.gguf --rank 4 \\\n"
    "    --targets attn_q,attn_v -c 128 --batch 2 --memory 1G\n"
    "  ridge run model.gguf --lora notes.gguf -p \"What did I note?\"";

struct Flags {
  TuneJob job;
  EngineFlags machine;  // memory, threads
  std::string targets;
  TrainingFlags training{
      .steps = 200, .batch = 4, .checkpoint_every = 50, .evaluate_every = 25, .validation_tokens = 4096};
  int64_t rank = 8, context = 256;
  bool json = false;
};

void add_tune_flags(CLI::App& c, Flags& f) {
  c.add_option("MODEL", f.machine.model, "GGUF file, or a name from `ridge models`")->type_name("")->required();
  c.add_option("--data", f.job.data, "a text file, or a folder of them")->type_name("PATH");
  c.add_option("-o,--output", f.job.adapter, "the adapter that is written, GGUF")->type_name("FILE");
  c.add_option("--rank", f.rank, "columns of what is learned")->type_name("N")->capture_default_str();
  c.add_option("--alpha", f.job.alpha, "what is added is alpha / rank · B (A x)")
      ->type_name("X")
      ->capture_default_str();
  c.add_option("--targets", f.targets, "matrices: attn_q,attn_v… (default: all)")->type_name("LIST");
  c.add_option("-c,--context", f.context, "tokens of a window")->type_name("N")->capture_default_str();
  c.add_option("--held-out", f.job.held_out, "share of the text, at its end")->type_name("X")->capture_default_str();
  add_training_flags(c, f.training, f.job.optimizer, "of the adapters' start and of windows");
  c.add_option("-m,--memory", f.machine.memory, "hard limit for the whole process")->type_name("SIZE");
  c.add_option("-t,--threads", f.machine.threads, "(default: all usable CPUs)")->type_name("N");
  c.add_flag("--json", f.json, "print one JSON object");
}

Result<void> fill_tune_job(Flags& f) {
  TuneJob& job = f.job;
  if (job.data.empty()) return usage_error("--data is missing: name a text file, or a folder of them");
  if (job.adapter.empty()) return usage_error("-o is missing: name the adapter that is written");
  job.rank = RIDGE_TRY(whole_number(f.rank, "--rank"));
  job.context = RIDGE_TRY(whole_number(f.context, "--context"));
  RIDGE_TRY(read_training_flags(f.training, job));
  if (!f.targets.empty()) {
    job.targets.clear();
    std::istringstream list(f.targets);
    for (std::string name; std::getline(list, name, ',');) job.targets.push_back(name);
  }
  RIDGE_TRY(distill::check_tune_job(job));
  const EngineOptions machine = RIDGE_TRY(machine_options(f.machine));
  job.memory = machine.memory;
  job.threads = machine.threads;
  job.model = RIDGE_TRY(resolve_model(f.machine.model));
  RIDGE_TRY(refuse_overwriting(job.adapter, job.model));
  RIDGE_TRY(refuse_overwriting(job.adapter, job.data));
  return check_output(job.adapter, "-o");
}

// Beside the adapter: notes.gguf has notes.curve.csv and notes.curve.svg.
std::string beside(const std::string& adapter, const char* ending) {
  constexpr std::string_view kGguf = ".gguf";
  const std::string_view name = adapter;
  return std::string(name.ends_with(kGguf) ? name.substr(0, name.size() - kGguf.size()) : name) + ending;
}

Json json_of_point(const CurvePoint& p) {
  Json out = {{"step", p.step}, {"loss", nullptr}, {"held_out", p.held_out}, {"norm", nullptr}, {"rate", nullptr}};
  if (p.step == 0) return out;  // nothing was learned yet
  out["loss"] = p.loss;
  out["norm"] = p.norm;
  out["rate"] = p.rate;
  return out;
}

Result<void> write_tune_curve(const std::string& adapter, std::span<const CurvePoint> curve) {
  std::vector<Json> rows;
  LineChart chart{.title = "Loss of " + adapter,
                  .x = "steps",
                  .y = "nats per token",
                  .lines = {{"training", {}}, {"held out", {}}}};
  for (const CurvePoint& p : curve) {
    rows.push_back(json_of_point(p));
    if (p.step > 0) chart.lines[0].points.emplace_back(static_cast<double>(p.step), p.loss);
    chart.lines[1].points.emplace_back(static_cast<double>(p.step), p.held_out);
  }
  RIDGE_TRY(write_text(beside(adapter, ".curve.csv"), csv_table(rows)));
  return write_text(beside(adapter, ".curve.svg"), line_chart(chart));
}

Json json_of_report(const TuneReport& r) {
  Json out = {{"architecture", r.architecture},
              {"parameters", r.parameters},
              {"steps", r.steps},
              {"tokens", r.tokens},
              {"seconds", r.seconds},
              {"held_out_before", r.held_out_before},
              {"held_out", r.held_out},
              {"needed_bytes", r.needed},
              {"peak_bytes", r.peak}};
  out["curve"] = Json::array();
  for (const CurvePoint& p : r.curve) out["curve"].push_back(json_of_point(p));
  return out;
}

Result<void> run_tune(Flags& f) {
  RIDGE_TRY(fill_tune_job(f));
  const auto curve = [&](std::span<const CurvePoint> points) { return write_tune_curve(f.job.adapter, points); };
  const TuneReport r = RIDGE_TRY(start_tuning(f.job, {.interrupted = &interrupt_flag(), .curve = curve}));
  if (f.json) return print(json_of_report(r).dump(2) + "\n");
  return print(
      fmt::format("{}: {} numbers learned in {:.0f} s; held-out loss {:.4f} nats per token, {:.4f} before; at "
                  "most {} of {} taken\n",
                  f.job.adapter, format_count(r.parameters), r.seconds, r.held_out, r.held_out_before,
                  format_bytes(r.peak), format_bytes(r.needed)));
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("tune", "adapt a model to a text, within a memory budget");
  add_tune_flags(*command, *flags);
  command->footer(kExamples);
  on_run(*command, [flags] { return run_tune(*flags); });
}

}  // namespace ridge::cli
