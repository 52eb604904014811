// ridge distill: trains a small model, from a text and a teacher, as GGUF and safetensors (docs/distill.md).
#include "cli/distill.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/common.h"
#include "cli/training_flags.h"
#include "distill/corpus.h"
#include "report/csv.h"
#include "report/line_chart.h"

namespace ridge::cli {
namespace {

using distill::CurvePoint;
using distill::DistillJob;
using distill::StudentShape;
using distill::TrainReport;
using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge distill --make-corpus stories.txt\n"
    "  ridge distill stories.txt -o teacher --dim 160 --ffn-dim 480\n"
    "  ridge distill stories.txt -o student --ffn reglu --l1 0.3 \\\n"
    "    --teacher teacher/checkpoint.safetensors\n"
    "  ridge run student/student.gguf -p \"One day\"\n\n"
    "A name that ends in .gguf, or of `ridge models`, is a teacher that the engine\n"
    "runs; --memory, --threads are for it too.";

struct Flags {
  DistillJob job;
  EngineFlags engine;
  TrainingFlags training{
      .steps = 1000, .batch = 16, .checkpoint_every = 200, .evaluate_every = 100, .validation_tokens = 8192};
  std::string ffn = "swiglu", divergence = "forward", corpus, rationale_file;
  std::optional<double> kd;
  std::optional<std::string> bytes;
  int64_t layers = 4, dim = 64, heads = 4, ffn_dim = 0, context = 128, exit_layer = 0, on_policy_tokens = 32;
  int64_t items = 2000, neurons = 16, fisher_windows = 64;
  std::optional<int64_t> kv_heads;
  bool untied = false, json = false;
};

void add_data_flags(CLI::App& c, Flags& f) {
  c.add_option("DATA", f.job.data, "a text file, or a folder of them")->type_name("");
  c.add_option("-o,--output", f.job.folder, "folder for all that is written")->type_name("DIR");
  c.add_option("--make-corpus", f.corpus, "write a text to train on, and do no more")->type_name("FILE");
  c.add_option("--make-rationales", f.rationale_file, "the same of questions with steps")->type_name("FILE");
  c.add_option("--bytes", f.bytes, "of --make-corpus (default 3M)")->type_name("SIZE");
  c.add_option("--items", f.items, "of --make-rationales")->type_name("N")->capture_default_str();
  c.add_option("--teacher", f.job.teacher, "checkpoint.safetensors, or a model to run")->type_name("MODEL");
  c.add_option("--tokenizer", f.job.tokenizer, "byte, or a GGUF file (default: the teacher's)")->type_name("NAME");
  c.add_option("--rationales", f.job.rationales, "questions, steps, answers: JSON lines")->type_name("FILE");
  c.add_option("--rationale-share", f.job.rationale_share, "of the windows")->type_name("X")->capture_default_str();
  c.add_option("--held-out", f.job.held_out, "share of the text, at its end")->type_name("X")->capture_default_str();
}

void add_shape_flags(CLI::App& c, Flags& f) {
  c.add_option("--layers", f.layers, "blocks")->type_name("N")->capture_default_str();
  c.add_option("--dim", f.dim, "width")->type_name("N")->capture_default_str();
  c.add_option("--heads", f.heads, "attention heads")->type_name("N")->capture_default_str();
  c.add_option("--kv-heads", f.kv_heads, "of keys and values (default: as --heads)")->type_name("N");
  c.add_option("--ffn-dim", f.ffn_dim, "neurons of a block (default: 4 × --dim)")->type_name("N");
  c.add_option("--ffn", f.ffn, "swiglu, reglu or relu2")->type_name("NAME")->capture_default_str();
  c.add_option("-c,--context", f.context, "tokens of a window")->type_name("N")->capture_default_str();
  c.add_flag("--untied", f.untied, "a head of its own, not the embedding");
  c.add_flag("--share-blocks", f.job.shape.shared, "run every block twice in a row");
  c.add_option("--exit-layer", f.exit_layer, "early exit after so many blocks; 0: none")->type_name("N");
  c.add_option("--exit-weight", f.job.losses.exit, "of its loss")->type_name("X")->capture_default_str();
}

void add_loss_flags(CLI::App& c, Flags& f) {
  auto& l = f.job.losses;
  c.add_option("--kd", f.kd, "share of the teacher in the loss (0.5 with one)")->type_name("X");
  c.add_option("--divergence", f.divergence, "forward, reverse, skew-forward, skew-reverse")->type_name("NAME");
  c.add_option("--skew", l.skew, "of the skewed ones")->type_name("X")->capture_default_str();
  c.add_option("--temperature", l.temperature, "of both distributions")->type_name("X")->capture_default_str();
  c.add_option("--hidden", l.hidden, "weight of matching hidden states")->type_name("X")->capture_default_str();
  c.add_option("--l1", l.l1, "weight of the mean gate (reglu, relu2)")->type_name("X")->capture_default_str();
  c.add_option("--l1-ramp", l.l1_ramp, "share of the steps in which it rises")->type_name("X")->capture_default_str();
  c.add_option("--on-policy", f.job.on_policy, "share of steps on the student's text")->type_name("X");
  c.add_option("--on-policy-tokens", f.on_policy_tokens, "that it writes")->type_name("N")->capture_default_str();
  c.add_option("--weights", f.job.map, "importance of layers and neurons: JSON")->type_name("FILE");
}

void add_recording_flags(CLI::App& c, Flags& f) {
  c.add_option("--record", f.job.record, "visits: NAME.train.json, NAME.judge.json")->type_name("NAME");
  c.add_option("--neurons", f.neurons, "of a block of visits")->type_name("N")->capture_default_str();
  c.add_option("--fisher", f.job.fisher, "diagonal of the Fisher information")->type_name("FILE");
  c.add_option("--fisher-windows", f.fisher_windows, "windows that it is a mean of")
      ->type_name("N")
      ->capture_default_str();
  c.add_flag("--natural", f.job.natural, "blocks of neighbours, not sorted by use");
  c.add_option("-m,--memory", f.engine.memory, "hard limit of a teacher that is run")->type_name("SIZE");
  c.add_option("-t,--threads", f.engine.threads, "(default: all usable CPUs)")->type_name("N");
  c.add_flag("--json", f.json, "print one JSON object");
}

Result<void> fill_shape(Flags& f) {
  StudentShape& s = f.job.shape;
  s.layers = RIDGE_TRY(whole_number(f.layers, "--layers"));
  s.dim = RIDGE_TRY(whole_number(f.dim, "--dim"));
  s.heads = RIDGE_TRY(whole_number(f.heads, "--heads"));
  s.kv_heads = RIDGE_TRY(whole_number(f.kv_heads.value_or(f.heads), "--kv-heads"));
  s.ffn = RIDGE_TRY(whole_number(f.ffn_dim == 0 ? std::min<int64_t>(4 * f.dim, INT32_MAX) : f.ffn_dim, "--ffn-dim"));
  s.context = RIDGE_TRY(whole_number(f.context, "--context"));
  s.exit_layer = RIDGE_TRY(whole_number(f.exit_layer, "--exit-layer"));
  s.ffn_kind = RIDGE_TRY(distill::parse_ffn_kind(f.ffn));
  s.tied = !f.untied;
  return distill::check_shape(s);
}

Result<void> fill_job(Flags& f) {
  DistillJob& job = f.job;
  if (job.data.empty()) return usage_error("no text to learn from: give a file or a folder (--make-corpus writes one)");
  if (job.folder.empty()) return usage_error("-o is missing: name the folder for what is written");
  RIDGE_TRY(fill_shape(f));
  RIDGE_TRY(read_training_flags(f.training, job));
  job.on_policy_tokens = RIDGE_TRY(whole_number(f.on_policy_tokens, "--on-policy-tokens"));
  job.neurons = RIDGE_TRY(whole_number(f.neurons, "--neurons"));
  job.fisher_windows = RIDGE_TRY(whole_number(f.fisher_windows, "--fisher-windows"));
  if (!job.fisher.empty()) RIDGE_TRY(check_output(job.fisher, "--fisher"));
  job.losses.divergence = RIDGE_TRY(distill::parse_divergence(f.divergence));
  job.losses.kd = f.kd.value_or(job.teacher.empty() ? 0 : 0.5);
  if (!job.record.empty() && job.shape.ffn_kind == distill::FfnKind::swiglu) {
    return usage_error("--record: every neuron of SwiGLU is on at every token; give --ffn reglu or --ffn relu2");
  }
  job.engine = RIDGE_TRY(machine_options(f.engine));
  job.threads = job.engine.threads;
  const bool file = job.teacher.ends_with(".safetensors");
  if (!job.teacher.empty() && !file) job.teacher = RIDGE_TRY(resolve_model(job.teacher));
  return {};
}

Result<void> write_made_texts(const Flags& f) {
  constexpr int64_t kMostItems = 10'000'000;
  if (f.items < 1 || f.items > kMostItems) {
    return usage_error(fmt::format("--items {} cannot be used: give 1 to {}", f.items, kMostItems));
  }
  const uint64_t bytes = f.bytes ? RIDGE_TRY(parse_bytes(*f.bytes)) : 3 * kMiB,
                 seed = static_cast<uint64_t>(f.training.seed);
  if (bytes > kGiB - kMiB) return usage_error(fmt::format("--bytes {}: give less than 1G", *f.bytes));
  if (!f.corpus.empty()) {
    RIDGE_TRY(check_output(f.corpus, "--make-corpus"));
    RIDGE_TRY(write_text(f.corpus, distill::make_corpus({.bytes = bytes, .seed = seed})));
    note(fmt::format("{} is written", f.corpus));
  }
  if (!f.rationale_file.empty()) {
    RIDGE_TRY(check_output(f.rationale_file, "--make-rationales"));
    const distill::RationaleOptions options{.items = static_cast<uint64_t>(f.items), .seed = seed};
    RIDGE_TRY(write_text(f.rationale_file, distill::make_rationales(options)));
    note(fmt::format("{} is written", f.rationale_file));
  }
  return {};
}

Json json_of(const CurvePoint& p) {
  return {{"step", p.step},
          {"loss", p.loss},
          {"cross_entropy", p.cross_entropy},
          {"divergence", p.divergence},
          {"hidden", p.hidden},
          {"gates", p.gates},
          {"exit", p.exit},
          {"norm", p.norm},
          {"rate", p.rate},
          {"held_out", p.held_out}};
}

Result<void> write_curves(const std::string& folder, std::span<const CurvePoint> curve) {
  std::vector<Json> rows;
  LineChart chart{
      .title = "Loss of " + folder, .x = "steps", .y = "nats per token", .lines = {{"training", {}}, {"held out", {}}}};
  for (const CurvePoint& p : curve) {
    rows.push_back(json_of(p));
    chart.lines[0].points.emplace_back(static_cast<double>(p.step), p.loss);
    chart.lines[1].points.emplace_back(static_cast<double>(p.step), p.held_out);
  }
  RIDGE_TRY(write_text(folder + "/curves.csv", csv_table(rows)));
  return write_text(folder + "/curves.svg", line_chart(chart));
}

Json json_of(const TrainReport& r, uint32_t neurons) {
  const StudentShape& s = r.shape;
  Json out = {{"architecture", distill::architecture_of(s.ffn_kind)},
              {"parameters", s.parameters()},
              {"steps", r.steps},
              {"tokens", r.tokens},
              {"seconds", r.seconds},
              {"held_out", r.held_out},
              {"held_out_per_byte", r.held_out_per_byte}};
  if (r.right_answers) out["right_answers"] = *r.right_answers;
  if (r.touches) {
    const distill::TouchStats& t = *r.touches;
    out["gates"] = {{"sparsity", t.sparsity},
                    {"never_on", t.dead},
                    {"busiest_26_percent", t.busiest},
                    {"stays_on", t.stays_on},
                    {"block_neurons", neurons},
                    {"touched_natural", t.touched_natural},
                    {"touched_sorted", t.touched_sorted},
                    {"dram_cut", distill::dram_cut(s, t.touched_sorted, 0)},
                    {"dram_cut_sram_10_percent", distill::dram_cut(s, t.touched_sorted, 0.1)}};
  }
  out["curve"] = Json::array();
  for (const CurvePoint& p : r.curve) out["curve"].push_back(json_of(p));
  return out;
}

std::string text_of(const TrainReport& r, const DistillJob& job) {
  std::string out = fmt::format(
      "{}/student.gguf: {} with {} parameters, held-out loss {:.4f} nats per token ({:.4f} per byte)\n", job.folder,
      distill::architecture_of(r.shape.ffn_kind), format_count(r.shape.parameters()), r.held_out, r.held_out_per_byte);
  if (r.right_answers) out += fmt::format("answers: {:.1f} % right of those held out\n", *r.right_answers * 100);
  if (!r.touches) return out;
  const distill::TouchStats& t = *r.touches;
  out +=
      fmt::format("gates: {:.1f} % of the neurons off ({:.1f} % never on); the busiest 26 % do {:.1f} % of the work\n",
                  t.sparsity * 100, t.dead * 100, t.busiest * 100);
  out += fmt::format("blocks of {}: {:.1f} % touched by a token, {:.1f} % when sorted by use\n",
                     counted(job.neurons, "neuron"), t.touched_natural * 100, t.touched_sorted * 100);
  out += fmt::format("bytes of a pass: {:.1f} % fewer; {:.1f} % with SRAM for a tenth of the model\n",
                     distill::dram_cut(r.shape, t.touched_sorted, 0) * 100,
                     distill::dram_cut(r.shape, t.touched_sorted, 0.1) * 100);
  return out;
}

Result<void> run(Flags& f) {
  if (!f.corpus.empty() || !f.rationale_file.empty()) {
    if (!f.job.data.empty() || !f.job.folder.empty()) {
      return usage_error("--make-corpus and --make-rationales write a text and do no more: leave DATA and -o out");
    }
    return write_made_texts(f);
  }
  RIDGE_TRY(fill_job(f));
  const auto curves = [&](std::span<const CurvePoint> curve) { return write_curves(f.job.folder, curve); };
  const TrainReport report = RIDGE_TRY(start_training(f.job, {.interrupted = &interrupt_flag(), .curve = curves}));
  if (f.json) return print(json_of(report, f.job.neurons).dump(2) + "\n");
  return print(text_of(report, f.job));
}

}  // namespace

void add_distill(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("distill", "train a small model, from a text and a teacher");
  add_data_flags(*command, *flags);
  add_shape_flags(*command, *flags);
  add_loss_flags(*command, *flags);
  add_training_flags(*command, flags->training, flags->job.optimizer, "of weights, windows and corpus");
  add_recording_flags(*command, *flags);
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
