// Measures a model's speed: prompts (prefill) and generation (decode) apart, at any depth of context, beside the roofs
// of the machine in the same run. Plain data in, plain data out; docs/bench.md says what each figure means.
//
// Not for: printing (report/bench_report.h), comparing runs (bench_compare.h), quality (quality.h).
//
//   BenchReport report = RIDGE_TRY(run_bench({.engine = {.path = "model.gguf"}, .threads = {1, 2}}));
//   for (const BenchResult& r : report.results) r.tokens_per_s;
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace ridge {

struct BenchOptions {
  EngineOptions engine;                   // threads, context, tokenizer and profile are set per test
  std::vector<uint64_t> prompts = {512};  // tokens of a prefill test; 0 is left out
  std::vector<uint64_t> generated = {128};
  std::vector<uint64_t> depths = {0};  // tokens in the context before a test begins
  std::vector<int> threads = {};       // empty: the engine's default
  int repetitions = 5;
  bool profile = false;  // afterwards run each test once more and say where its time goes
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(uint64_t tokens)> progress = nullptr;  // so many tokens more are done
  // The engine of one thread count and depth has opened, and has measured all of its tests; its error ends the run.
  std::function<Result<void>(const Engine&)> opened = nullptr, measured = nullptr;
};

enum class BenchTest : uint8_t { prefill, decode };
std::string_view name_of(BenchTest test);  // "prefill", "decode"

// Where the time of one token goes.
struct StageTime {
  std::string stage;  // "attention", or the tensors of a matrix product: "ffn_gate ffn_up"
  double us_per_token = 0;
  double share = 0;  // of all stages
};

struct BenchResult {
  BenchTest test = BenchTest::prefill;
  uint64_t tokens = 0, depth = 0;
  int threads = 1;
  std::vector<double> samples;  // tokens per second, a repetition each
  double tokens_per_s = 0;      // their median
  double ci_low = 0, ci_high = 0, ci_coverage = 0;
  // By the counts of Cost at the median speed.
  double gb_per_s = 0;          // weights and key/value cache, read from memory
  double storage_gb_per_s = 0;  // weights streamed
  double gop_per_s = 0;         // int8 and float operations
  // Roofs measured right before and after the repetitions: medians. 0: not known here.
  double read_roof_gb_per_s = 0, int8_peak_gop_per_s = 0, float_peak_gop_per_s = 0;
  double storage_roof_gb_per_s = 0;  // of the run's own reads without computing; with experts, what the probe found
  // Medians over repetitions of what the repetition's own roofs would have taken, by what it took.
  std::optional<double> memory_share, compute_share, storage_share;
  std::optional<double> roof_share;  // the largest of them: the roof this test is under
  uint64_t peak_bytes = 0;           // of the process since the model was opened for these threads and this depth
  std::string contention;            // why the figures are not to be trusted, empty if they are
  std::vector<StageTime> stages;     // with `profile`
};

struct BenchMachine {
  std::string cpu, isa;
  int cpus = 1;             // that this process may use
  std::string measured_at;  // UTC, ISO 8601
};
// Where and when this is called; without the ISA, which is the engine's choice.
BenchMachine this_machine();

struct BenchModel {
  std::string path, name, architecture;
  uint64_t weight_bytes = 0;  // that a decode pass reads, as panels
};

struct BenchReport {
  BenchMachine machine;
  BenchModel model;
  // Words of whoever runs the benchmark: the version of ridge, a name for the run, the arithmetic.
  std::string version, label, numerics = "default";
  std::string kv_type;         // of the keys and values
  uint64_t memory_budget = 0;  // 0: none
  std::vector<BenchResult> results;
  bool interrupted = false;  // some tests are missing
};

// Tokens that a run evaluates at most, for a progress bar.
uint64_t bench_work(const BenchOptions& options);

// Errors: those of Engine::open and evaluate; usage errors for options that make no test. When interrupted, what was
// finished.
Result<BenchReport> run_bench(const BenchOptions& options);

// Token ids that mean nothing, the same in every run: ordinary ones of the tokenizer (all, without one), drawn by
// Rng(1).
std::vector<TokenId> bench_tokens(const Engine& engine, uint64_t count);

}  // namespace ridge
