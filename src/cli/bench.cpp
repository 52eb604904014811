// ridge bench: how fast a model reads prompts and generates, beside the roofs of the machine; and two such runs
// compared.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/bench.h"
#include "base/log.h"
#include "base/number_list.h"
#include "base/progress.h"
#include "cli/common.h"
#include "cli/trace_file.h"
#include "report/bench_report.h"
#include "report/bench_store.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge bench model.gguf -p 512 -n 128 -d 0,1024 -t 1,2\n"
    "  ridge bench model.gguf -p 128-1024*2 -n 0 --json\n"
    "  ridge bench model.gguf --memory 300M --profile\n"
    "  ridge bench model.gguf --db runs.sqlite --label before\n"
    "  ridge bench --compare before after --db runs.sqlite\n\n"
    "Lists: 1,2 or 1-4 or 0-512+128 or 128-1024*2.";

struct Flags {
  EngineFlags engine;
  std::string prompts = "512", generated = "128", depths = "0";
  std::optional<std::string> threads, db, label, trace;
  int repetitions = 5;
  bool profile = false, json = false, jsonl = false, csv = false, sql = false;
  std::vector<std::string> compare;
};

Result<BenchFormat> format_of(const Flags& flags) {
  if (flags.json + flags.jsonl + flags.csv + flags.sql > 1) {
    return usage_error("--json, --jsonl, --csv and --sql exclude one another: give one");
  }
  if (flags.profile && (flags.csv || flags.sql)) {
    return usage_error("--csv and --sql have no place for --profile: use --json, --jsonl or the table");
  }
  if (flags.json) return BenchFormat::json;
  if (flags.jsonl) return BenchFormat::jsonl;
  if (flags.csv) return BenchFormat::csv;
  return flags.sql ? BenchFormat::sql : BenchFormat::table;
}

Result<std::vector<int>> parse_threads(const std::string& text) {
  std::vector<int> threads;
  for (uint64_t n : RIDGE_TRY(parse_numbers(text, "--threads"))) {
    if (n < 1 || n > static_cast<uint64_t>(kMostThreads)) {
      return usage_error(fmt::format("--threads {}: {} is no usable number: give 1 to {}", text, n, kMostThreads));
    }
    threads.push_back(static_cast<int>(n));
  }
  return threads;
}

// A test named twice would be measured twice and compared with itself.
template <class Number>
std::vector<Number> once(const std::vector<Number>& numbers) {
  std::vector<Number> out;
  for (Number n : numbers) {
    if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  }
  return out;
}

// Longer texts than any context has would only overflow sums.
Result<std::vector<uint64_t>> parse_tokens(const std::string& text, const char* flag) {
  constexpr uint64_t kMost = uint64_t{1} << 24;
  std::vector<uint64_t> numbers = RIDGE_TRY(parse_numbers(text, flag));
  for (uint64_t n : numbers) {
    if (n > kMost) return usage_error(fmt::format("{} {}: {} is too long: give at most {}", flag, text, n, kMost));
  }
  return once(numbers);
}

Result<BenchOptions> bench_options(const Flags& flags) {
  BenchOptions options;
  options.prompts = RIDGE_TRY(parse_tokens(flags.prompts, "--prompt"));
  options.generated = RIDGE_TRY(parse_tokens(flags.generated, "--generate"));
  options.depths = RIDGE_TRY(parse_tokens(flags.depths, "--depth"));
  if (flags.threads) options.threads = once(RIDGE_TRY(parse_threads(*flags.threads)));
  options.engine = RIDGE_TRY(engine_options(flags.engine));
  options.repetitions = flags.repetitions;
  options.profile = flags.profile;
  options.interrupted = &interrupt_flag();
  return options;
}

// A trace belongs to one engine.
Result<TraceFile> trace_file(const Flags& flags, BenchOptions& options) {
  if (options.threads.size() > 1 || options.depths.size() > 1) {
    return usage_error("--trace follows one engine: give one --threads and one --depth");
  }
  TraceFile file = RIDGE_TRY(TraceFile::create(*flags.trace, "ridge bench"));
  options.engine.trace = file.trace();
  options.opened = [path = *flags.trace, with = options.engine](const Engine& engine) {
    return refuse_overwriting(path, engine, with, "--trace");
  };
  return file;
}

// The table says it itself.
void say_contention(const BenchReport& report) {
  auto contended = [](const BenchResult& r) { return !r.contention.empty(); };
  auto first = std::find_if(report.results.begin(), report.results.end(), contended);
  if (first == report.results.end()) return;
  auto count = std::count_if(report.results.begin(), report.results.end(), contended);
  note(fmt::format("{} of {} results are contended: {}", count, report.results.size(), first->contention));
}

Result<void> measure(const Flags& flags) {
  BenchFormat format = RIDGE_TRY(format_of(flags));
  BenchOptions options = RIDGE_TRY(bench_options(flags));
  std::optional<BenchStore> store;
  if (flags.db) store = RIDGE_TRY(BenchStore::open(*flags.db));
  std::optional<TraceFile> trace;
  if (flags.trace) trace.emplace(RIDGE_TRY(trace_file(flags, options)));
  if (trace) options.measured = [&](const Engine& engine) { return trace->finish(engine); };
  BenchReport report;
  {
    Progress bar("measuring", bench_work(options), ProgressUnit::items);
    options.progress = [&](uint64_t tokens) { bar.advance(tokens); };
    report = RIDGE_TRY(run_bench(options));
  }
  report.version = RIDGE_VERSION;
  report.numerics = flags.engine.numerics;
  report.label = flags.label.value_or("");
  if (report.interrupted) note("stopped by Ctrl-C: what was finished follows");
  if (format != BenchFormat::table) say_contention(report);
  RIDGE_TRY(print(bench_text(report, format)));  // first: what was measured is not lost with a full disk
  if (store && !report.results.empty()) {
    int64_t number = RIDGE_TRY(store->save(report));
    note(fmt::format("kept as run {}{} in {}", number, flags.label ? fmt::format(" ('{}')", *flags.label) : "",
                     *flags.db));
  }
  return {};
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// A .json file, or a label or number in the database.
Result<RecordedRun> recorded(const std::string& name, const Flags& flags) {
  if (name.ends_with(".json") || (!flags.db && is_file(name))) return recorded_run(RIDGE_TRY(read_text(name)), name);
  if (!flags.db) {
    return usage_error(
        fmt::format("--compare {}: is no file; for a label or a number name the database with --db", name));
  }
  return RIDGE_TRY(BenchStore::open_existing(*flags.db)).load(name);
}

Result<void> compare(const Flags& flags) {
  BenchFormat format = RIDGE_TRY(format_of(flags));
  if (format != BenchFormat::table && format != BenchFormat::json) {
    return usage_error("--compare prints a table, or JSON with --json");
  }
  RecordedRun a = RIDGE_TRY(recorded(flags.compare[0], flags));
  RecordedRun b = RIDGE_TRY(recorded(flags.compare[1], flags));
  if (format == BenchFormat::table) return print(comparison_table(a, b));
  return print(comparison_json(a, b).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Result<void> run(const Flags& flags) {
  if (!flags.compare.empty()) {
    if (!flags.engine.model.empty()) return usage_error("--compare measures nothing: leave the model out");
    return compare(flags);
  }
  if (flags.engine.model.empty()) return usage_error("a MODEL is missing; see `ridge bench --help`");
  return measure(flags);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("bench", "measure a model's speed beside the machine's roofs");
  add_engine_flags(*command, flags->engine);
  add_lora_flag(*command, flags->engine);
  // --compare needs no model, and a benchmark takes several thread counts.
  command->get_option("MODEL")->required(false);
  command->remove_option(command->get_option("--threads"));
  auto add = [&](const char* names, auto& value, const char* type, const char* what) {
    return command->add_option(names, value, what)->type_name(type);
  };
  add("-t,--threads", flags->threads, "LIST", "compute threads (default: all usable CPUs)");
  add("-p,--prompt", flags->prompts, "LIST", "prompt lengths to read; 0: none")->capture_default_str();
  add("-n,--generate", flags->generated, "LIST", "numbers of tokens to generate; 0: none")->capture_default_str();
  add("-d,--depth", flags->depths, "LIST", "tokens in the context before")->capture_default_str();
  add("-r,--repetitions", flags->repetitions, "N", "runs of each test, 1 to 50")->capture_default_str();
  command->add_flag("--profile", flags->profile, "say where the time of a token goes");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->add_flag("--jsonl", flags->jsonl, "print one JSON object per result");
  command->add_flag("--csv", flags->csv, "print comma-separated values");
  command->add_flag("--sql", flags->sql, "print SQL that creates and fills tables");
  add("--trace", flags->trace, "FILE", "write what happened when, for `ridge report`");
  add("--db", flags->db, "FILE", "also keep the results in this SQLite file");
  add("--label", flags->label, "NAME", "name of this run in it");
  add("--compare", flags->compare, "A B", "compare two runs: labels, numbers, or .json files")->expected(2);
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
