// ridge importance: which blocks of a model tokens touch, and how much the loss depends on them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/importance_map.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/window_flags.h"
#include "format/ridge_pack.h"
#include "report/importance_chart.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge importance model.gguf --data notes.txt -o map.json\n"
    "  ridge importance model.gguf --task code=a.c --task chat=b.txt --svg map.svg\n"
    "  ridge importance model.gguf --data notes.txt --leave-out 24\n"
    "  ridge importance model.gguf --data notes.txt --imatrix model.imatrix.gguf\n\n"
    "Chances of a touch and sensitivity are two numbers: docs/importance.md.";

struct Flags {
  EngineFlags engine;
  std::optional<std::string> data, out, svg, imatrix, from_imatrix, fisher;
  std::vector<std::string> tasks;
  WindowFlags windows;
  int64_t neurons = 64, leave_out = 0;
  bool json = false;
};

struct TaskText {
  std::string name, path;
};

Result<std::vector<TaskText>> task_texts(const Flags& flags) {
  std::vector<TaskText> out;
  if (flags.data) out.push_back({"data", *flags.data});
  for (const std::string& word : flags.tasks) {
    const size_t cut = word.find('=');
    if (cut == std::string::npos || cut == 0 || cut + 1 == word.size())
      return usage_error(fmt::format("--task {} is not understood: write NAME=FILE, such as code=main.c", word));
    out.push_back({word.substr(0, cut), word.substr(cut + 1)});
    const bool twice =
        std::count_if(out.begin(), out.end(), [&](const TaskText& t) { return t.name == out.back().name; }) > 1;
    if (twice) return usage_error(fmt::format("--task {}: two tasks have this name", out.back().name));
  }
  if (out.empty()) return usage_error("no text: give --data FILE, or --task NAME=FILE for each task");
  return out;
}

Result<void> check_numbers(const Flags& f) {
  auto in_range = [](const char* flag, int64_t value, int64_t least, int64_t most) -> Result<void> {
    if (value >= least && value <= most) return {};
    return usage_error(fmt::format("{} {} is no usable number: give {} to {}", flag, value, least, most));
  };
  RIDGE_TRY(in_range("--neurons", f.neurons, 1, 1 << 20));
  return in_range("--leave-out", f.leave_out, 0, 1 << 20);
}

std::string table(const ImportanceMap& map, const std::optional<LeaveOneOut>& left) {
  std::string text =
      fmt::format("{:<10} {:>7} {:>10}  {}\n", "", "blocks", "bytes", "chance of a touch by task: mean, least, most");
  for (MapKind kind : {MapKind::part, MapKind::head, MapKind::neurons, MapKind::expert}) {
    std::vector<const MapBlock*> blocks;
    uint64_t bytes = 0;
    for (const MapBlock& b : map.blocks) {
      if (b.kind != kind) continue;
      blocks.push_back(&b);
      bytes += b.bytes;
    }
    if (blocks.empty()) continue;
    std::string touches;
    for (size_t t = 0; t < map.tasks.size(); ++t) {
      double sum = 0, least = 1, most = 0;
      for (const MapBlock* b : blocks) {
        sum += b->touch[t];
        least = std::min(least, b->touch[t]);
        most = std::max(most, b->touch[t]);
      }
      touches += fmt::format("{}{} {:.3f} {:.3f} {:.3f}", t == 0 ? "" : " · ", map.tasks[t].name,
                             sum / static_cast<double>(blocks.size()), least, most);
    }
    text += fmt::format("{:<10} {:>7} {:>10}  {}\n", name_of(kind), blocks.size(), format_bytes(bytes), touches);
  }
  if (left) {
    text +=
        fmt::format("leaving {} out: the loss of {:.4f} rises by ranks that correlate by {:.2f} with the estimate\n",
                    counted(left->sample.size(), "block"), left->loss, left->rank_correlation);
  }
  return text;
}

nlohmann::ordered_json summary(const ImportanceMap& map, const std::optional<LeaveOneOut>& left) {
  nlohmann::ordered_json j = {{"model", map.model}, {"fingerprint", fmt::format("{:016x}", map.fingerprint)}};
  j["blocks"] = map.blocks.size();
  j["tasks"] = nlohmann::ordered_json::array();
  for (size_t t = 0; t < map.tasks.size(); ++t) {
    double sum = 0;
    size_t count = 0;
    for (const MapBlock& b : map.blocks) {
      if (b.kind != MapKind::neurons && b.kind != MapKind::expert) continue;
      sum += b.touch[t];
      ++count;
    }
    j["tasks"].push_back({{"name", map.tasks[t].name},
                          {"tokens", map.tasks[t].tokens},
                          {"touched", count == 0 ? 1.0 : sum / static_cast<double>(count)}});
  }
  if (!left) return j;
  j["leave_out"] = {{"loss", left->loss}, {"rank_correlation", left->rank_correlation}};
  for (const LeftOut& l : left->sample) {
    j["leave_out"]["sample"].push_back({{"block", map.blocks[l.block].name},
                                        {"sensitivity", map.blocks[l.block].sensitivity},
                                        {"loss_rise", l.loss_rise}});
  }
  return j;
}

Result<void> check_outputs(const Flags& flags) {
  if (flags.fisher && flags.from_imatrix) {
    return usage_error("--fisher and --from-imatrix: sensitivities come from one of them, not both");
  }
  std::vector<OutputName> outputs;
  for (const auto& [flag, path] :
       {std::pair("-o", &flags.out), std::pair("--svg", &flags.svg), std::pair("--imatrix", &flags.imatrix)}) {
    if (!*path) continue;
    RIDGE_TRY(check_output(**path, flag));
    RIDGE_TRY(refuse_overwriting(**path, flags.engine.model, flag));
    outputs.push_back({flag, **path});
  }
  return refuse_twice(outputs);
}

Result<std::optional<LeaveOneOut>> leave_out(const Flags& flags, EngineOptions options, const ImportanceMap& map,
                                             const TaskText& text, const WindowOptions& windows) {
  if (flags.leave_out == 0) return std::optional<LeaveOneOut>{};
  Ablation ablation;
  options.probe = &ablation;
  auto engine = RIDGE_TRY(Engine::open(options));
  const std::vector<TokenId> ids = RIDGE_TRY(tokens_of_file(*engine, text.path));
  return std::optional(
      RIDGE_TRY(leave_one_out(*engine, ablation, map, ids, windows, static_cast<uint32_t>(flags.leave_out))));
}

Result<void> run(const Flags& flags) {
  RIDGE_TRY(check_numbers(flags));
  const WindowOptions windows = RIDGE_TRY(window_options(flags.windows));
  const std::vector<TaskText> tasks = RIDGE_TRY(task_texts(flags));
  RIDGE_TRY(check_outputs(flags));
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  if (RIDGE_TRY(is_ridge_pack(options.path)))
    return bad_input(fmt::format("{}: is a pack, whose weights are no rows: give the GGUF file", options.path));
  options.default_context = windows.window;
  options.logits_rows = 16;
  ActivationStats stats(static_cast<uint32_t>(flags.neurons));
  EngineOptions watched = options;
  watched.probe = &stats;
  ImportanceMap map;
  {
    auto engine = RIDGE_TRY(Engine::open(watched));
    for (const TaskText& task : tasks) {
      RIDGE_TRY(read_task(*engine, stats, task.name, RIDGE_TRY(tokens_of_file(*engine, task.path)), windows));
    }
    if (flags.fisher) {
      map = RIDGE_TRY(importance_map(engine->model(), stats, RIDGE_TRY(Safetensors::open(*flags.fisher))));
    } else if (flags.from_imatrix) {
      map = RIDGE_TRY(
          importance_map(engine->model(), stats, RIDGE_TRY(read_imatrix(*flags.from_imatrix)), *flags.from_imatrix));
    } else {
      map = RIDGE_TRY(importance_map(engine->model(), stats));
    }
    if (flags.imatrix) RIDGE_TRY(write_imatrix(imatrix_of(engine->model(), stats), *flags.imatrix));
  }
  const std::optional<LeaveOneOut> left = RIDGE_TRY(leave_out(flags, options, map, tasks.front(), windows));
  if (flags.out) RIDGE_TRY(write_map(map, *flags.out));
  if (flags.svg) RIDGE_TRY(write_text(*flags.svg, importance_svg(map)));
  return print(flags.json ? summary(map, left).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                          : table(map, left));
}

}  // namespace

void add_importance(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("importance", "what tokens touch, and what the loss depends on");
  add_engine_flags(*command, flags->engine);
  command->get_option("MODEL")->description("GGUF file, or a name from `ridge models`");
  command->add_option("--data", flags->data, "text to read")->type_name("FILE");
  command->add_option("--task", flags->tasks, "text of one task, may be repeated")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->take_all();
  command->add_option("-o,--output", flags->out, "write the map, as JSON")->type_name("FILE");
  command->add_option("--svg", flags->svg, "write a heat map")->type_name("FILE");
  command->add_option("--imatrix", flags->imatrix, "write sums of squares, as llama.cpp does")->type_name("FILE");
  command->add_option("--from-imatrix", flags->from_imatrix, "sensitivities from these sums of squares")
      ->type_name("FILE");
  command->add_option("--fisher", flags->fisher, "from what ridge distill --fisher wrote")->type_name("FILE");
  command->add_option("--neurons", flags->neurons, "ReLU models: neurons of a group")
      ->type_name("N")
      ->capture_default_str();
  add_window_flags(*command, flags->windows);
  command->add_option("--leave-out", flags->leave_out, "leave N blocks out, one at a time, to check")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
