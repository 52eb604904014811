#include "analyze/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "analyze/bench_cost.h"
#include "analyze/bench_stages.h"
#include "analyze/bench_stats.h"
#include "analyze/roofs.h"
#include "analyze/stream_reads.h"
#include "base/utc_now.h"
#include "machine/cpu.h"
#include "machine/peak_memory.h"
#include "machine/probe_contention.h"
#include "machine/sched_watch.h"
#include "text/rng.h"
#include "text/sampler.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

// Enough to touch every weight and wake every thread.
constexpr uint64_t kWarmUpDecode = 8;

// The roofs around one repetition: the better of before and after, since a disturbance only ever lowers them.
struct Roofs {
  double read_gb_per_s = 0, storage_gb_per_s = 0;
  ComputePeaks peaks;
  static Roofs better(const Roofs& a, const Roofs& b) {
    return {std::max(a.read_gb_per_s, b.read_gb_per_s),
            std::max(a.storage_gb_per_s, b.storage_gb_per_s),
            {std::max(a.peaks.int8_gops, b.peaks.int8_gops), std::max(a.peaks.float_gops, b.peaks.float_gops)}};
  }
};

struct Sample {
  double seconds = 0;
  Roofs roofs;
};

struct Trial {
  BenchTest test = BenchTest::prefill;
  uint64_t tokens = 0;
  TestCost cost;
  SchedWatch watch;
  std::vector<Sample> samples;
  std::vector<StageTime> stages;
};

// All tests of one thread count and one depth: they share an engine, and its context up to the depth.
class Group {
 public:
  Group(const BenchOptions& options, int threads, uint64_t depth)
      : options_(options), threads_(threads), depth_(depth) {
    for (uint64_t n : options.prompts) {
      if (n > 0) trials_.push_back({.test = BenchTest::prefill, .tokens = n});
    }
    for (uint64_t n : options.generated) {
      if (n > 0) trials_.push_back({.test = BenchTest::decode, .tokens = n});
    }
  }

  Result<void> run(BenchReport& report);

 private:
  bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }
  void advance(uint64_t tokens) const {
    if (options_.progress) options_.progress(tokens);
  }
  Result<void> open();
  Result<void> bring_to_depth();
  Result<double> evaluate(const Trial& trial, uint64_t tokens, Sampler* sampler);
  Result<void> repeat();
  Result<void> take_profiles();
  Result<Roofs> roofs_now() const;
  BenchResult result_of(const Trial& trial) const;
  void describe(BenchReport& report) const;

  const BenchOptions& options_;
  int threads_;
  uint64_t depth_;
  std::vector<Trial> trials_;
  StageProfile profile_;  // outlives the engine, which holds a pointer to it
  std::unique_ptr<Engine> engine_;
  std::optional<WeightReads> reads_;
  std::optional<StreamReads> stream_reads_;
  std::vector<TokenId> ids_;
  CpuWatch others_;
  uint64_t peak_ = 0;
};

Result<void> Group::open() {
  reset_peak_memory();
  uint64_t longest = 0;
  for (const Trial& trial : trials_) longest = std::max(longest, trial.tokens);
  EngineOptions engine = options_.engine;
  engine.threads = threads_;
  if (engine.context == 0) engine.context = depth_ + longest;
  if (engine.context < depth_ + longest) {
    return usage_error(fmt::format("--context {} has no room for {} tokens at depth {}: give {} or leave it out",
                                   engine.context, longest, depth_, depth_ + longest));
  }
  engine.need_tokenizer = false;
  engine.profile = &profile_;
  engine_ = RIDGE_TRY(Engine::open(engine));
  reads_.emplace(*engine_);
  stream_reads_.emplace(*engine_);
  ids_ = bench_tokens(*engine_, depth_ + longest);
  for (Trial& trial : trials_) {
    TestShape shape{.tokens = trial.tokens, .depth = depth_};
    trial.cost = trial.test == BenchTest::prefill ? prefill_cost(*engine_, shape) : decode_cost(*engine_, shape);
  }
  return {};
}

// Back to the depth; what a sliding window has forgotten is evaluated again.
Result<void> Group::bring_to_depth() {
  if (engine_->position() > depth_) (void)engine_->rewind(depth_);
  uint64_t at = engine_->position();
  if (at < depth_) RIDGE_TRY(engine_->evaluate(std::span(ids_).subspan(at, depth_ - at), options_.interrupted));
  return {};
}

// Seconds of `tokens` tokens after the depth.
Result<double> Group::evaluate(const Trial& trial, uint64_t tokens, Sampler* sampler) {
  std::span<const TokenId> ids = std::span(ids_).subspan(depth_, tokens);
  Clock::time_point start = Clock::now();
  if (trial.test == BenchTest::prefill) {
    RIDGE_TRY(engine_->evaluate(ids, options_.interrupted));
    advance(tokens);
  } else {
    for (size_t i = 0; i < ids.size() && !interrupted(); ++i) {
      std::span<float> logits = RIDGE_TRY(engine_->decode(ids[i]));
      if (sampler != nullptr) {
        StageTimer timer(&profile_, Stage::sampling);
        sampler->accept(sampler->sample(logits));
      }
      advance(1);
    }
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<Roofs> Group::roofs_now() const {
  Roofs roofs;
  if (reads_->possible()) {
    roofs.read_gb_per_s = reads_->measure();
  } else if (engine_->rates().memory_measured) {
    roofs.read_gb_per_s = engine_->rates().memory / 1e9;
  }
  if (stream_reads_->possible()) {
    roofs.storage_gb_per_s = RIDGE_TRY(stream_reads_->measure());
  } else if (engine_->rates().storage_measured) {
    roofs.storage_gb_per_s = engine_->rates().storage / 1e9;
  }
  roofs.peaks = measure_peaks(*engine_->machinery().pool, engine_->numerics());
  return roofs;
}

// A warm-up of each test, then rounds in which each has its turn, with the roofs between them.
Result<void> Group::repeat() {
  for (Trial& trial : trials_) {
    if (interrupted()) return {};
    RIDGE_TRY(bring_to_depth());
    uint64_t tokens = trial.test == BenchTest::prefill ? trial.tokens : std::min(trial.tokens, kWarmUpDecode);
    RIDGE_TRY(evaluate(trial, tokens, nullptr));
  }
  Roofs before = RIDGE_TRY(roofs_now());
  for (int r = 0; r < options_.repetitions; ++r) {
    for (Trial& trial : trials_) {
      RIDGE_TRY(bring_to_depth());
      if (interrupted()) return {};
      trial.watch.start();
      double seconds = RIDGE_TRY(evaluate(trial, trial.tokens, nullptr));
      trial.watch.stop(threads_);
      if (interrupted()) return {};
      Roofs after = RIDGE_TRY(roofs_now());
      trial.samples.push_back({seconds, Roofs::better(before, after)});
      before = after;
    }
  }
  return {};
}

Result<void> Group::take_profiles() {
  for (Trial& trial : trials_) {
    RIDGE_TRY(bring_to_depth());
    if (interrupted()) return {};
    Sampler sampler({.seed = 1}, engine_->model().config().vocabulary);
    profile_ = {};
    profile_.start();
    auto done = evaluate(trial, trial.tokens, &sampler);
    profile_.stop();
    RIDGE_TRY(std::move(done));
    if (interrupted()) return {};
    trial.stages = stage_times(profile_, *engine_, trial.tokens);
  }
  return {};
}

template <class Value>
double median_over(const std::vector<Sample>& samples, Value value) {
  std::vector<double> values;
  for (const Sample& s : samples) values.push_back(value(s));
  return median(values);
}

BenchResult Group::result_of(const Trial& trial) const {
  BenchResult r{.test = trial.test, .tokens = trial.tokens, .depth = depth_, .threads = threads_};
  const Cost& cost = trial.cost.cost;
  double tokens = static_cast<double>(trial.tokens), bytes = trial.cost.memory_bytes();
  double int_ops = static_cast<double>(cost.int_ops), flops = static_cast<double>(cost.flops);
  const Plan& plan = engine_->plan();
  double streamed = trial.cost.streamed_bytes;
  for (const Sample& s : trial.samples) r.samples.push_back(tokens / s.seconds);
  MedianInterval interval = median_interval(r.samples);
  r.tokens_per_s = median(r.samples);
  r.ci_low = interval.low;
  r.ci_high = interval.high;
  r.ci_coverage = interval.coverage;
  double per_s = r.tokens_per_s / tokens;
  r.gb_per_s = bytes * per_s / 1e9;
  r.storage_gb_per_s = streamed * per_s / 1e9;
  r.gop_per_s = (int_ops + flops) * per_s / 1e9;
  r.read_roof_gb_per_s = median_over(trial.samples, [](const Sample& s) { return s.roofs.read_gb_per_s; });
  r.int8_peak_gop_per_s = median_over(trial.samples, [](const Sample& s) { return s.roofs.peaks.int8_gops; });
  r.float_peak_gop_per_s = median_over(trial.samples, [](const Sample& s) { return s.roofs.peaks.float_gops; });
  auto share = [&](double roof, auto seconds_at_roof) -> std::optional<double> {
    if (roof <= 0) return std::nullopt;
    return median_over(trial.samples, [&](const Sample& s) { return seconds_at_roof(s) / s.seconds; });
  };
  r.memory_share = share(r.read_roof_gb_per_s, [&](const Sample& s) { return bytes / (s.roofs.read_gb_per_s * 1e9); });
  // The same units multiply bytes and floats, so their times add up.
  r.compute_share = share(std::min(r.int8_peak_gop_per_s, r.float_peak_gop_per_s), [&](const Sample& s) {
    return int_ops / (s.roofs.peaks.int8_gops * 1e9) + flops / (s.roofs.peaks.float_gops * 1e9);
  });
  bool streams = plan.placement.streams();
  r.storage_roof_gb_per_s = median_over(trial.samples, [](const Sample& s) { return s.roofs.storage_gb_per_s; });
  if (streams) {
    r.storage_share =
        share(r.storage_roof_gb_per_s, [&](const Sample& s) { return streamed / (s.roofs.storage_gb_per_s * 1e9); });
  }
  if (streams && !r.storage_share) {
    r.roof_share = std::nullopt;  // the roof that matters is not known
  } else {
    for (const auto& part : {r.memory_share, r.compute_share, r.storage_share}) {
      if (part && (!r.roof_share || *part > *r.roof_share)) r.roof_share = part;
    }
  }
  r.peak_bytes = peak_;
  r.contention = trial.watch.contention();
  if (r.contention.empty()) r.contention = others_.contention();
  r.stages = trial.stages;
  return r;
}

void Group::describe(BenchReport& report) const {
  const Model& model = engine_->model();
  report.machine.isa = name_of(engine_->kernels().kernels.isa);
  report.kv_type = name_of(engine_->kv_type());
  // Not every file says what its model is called.
  const std::string& name = model.config().name;
  report.model = {.path = options_.engine.path,
                  .name = name.empty() ? std::filesystem::path(options_.engine.path).filename().string() : name,
                  .architecture = model.config().architecture,
                  .weight_bytes = engine_->plan().program.memory_bytes_of_a_pass()};
}

Result<void> Group::run(BenchReport& report) {
  RIDGE_TRY(open());
  describe(report);
  if (options_.opened) RIDGE_TRY(options_.opened(*engine_));
  RIDGE_TRY(repeat());
  if (options_.profile && !interrupted()) RIDGE_TRY(take_profiles());
  if (options_.measured) RIDGE_TRY(options_.measured(*engine_));
  peak_ = peak_memory();
  for (const Trial& trial : trials_) {
    if (!trial.samples.empty()) report.results.push_back(result_of(trial));
  }
  report.interrupted = interrupted();
  return {};
}

Result<void> check(const BenchOptions& options) {
  if (options.repetitions < 1 || options.repetitions > static_cast<int>(kMostRanked)) {
    return usage_error(
        fmt::format("-r {}: that many repetitions cannot be made: give 1 to {}", options.repetitions, kMostRanked));
  }
  auto none = [](const std::vector<uint64_t>& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](uint64_t n) { return n == 0; });
  };
  if (none(options.prompts) && none(options.generated)) {
    return usage_error("there is nothing to measure: give --prompt or --generate a number above 0");
  }
  return {};
}

std::vector<int> threads_of(const BenchOptions& options) {
  return options.threads.empty() ? std::vector<int>{options.engine.threads} : options.threads;
}

}  // namespace

std::string_view name_of(BenchTest test) { return test == BenchTest::prefill ? "prefill" : "decode"; }

uint64_t bench_work(const BenchOptions& options) {
  uint64_t prompts = 0, generated = 0, warm = 0;
  for (uint64_t n : options.prompts) prompts += n;
  for (uint64_t n : options.generated) {
    generated += n;
    warm += std::min(n, kWarmUpDecode);
  }
  uint64_t repetitions = static_cast<uint64_t>(options.repetitions) + (options.profile ? 1 : 0);
  return (prompts + warm + (prompts + generated) * repetitions) * options.depths.size() * threads_of(options).size();
}

std::vector<TokenId> bench_tokens(const Engine& engine, uint64_t count) {
  const Tokenizer* tokenizer = engine.tokenizer();
  uint64_t vocabulary = engine.model().config().vocabulary;
  if (tokenizer != nullptr) vocabulary = std::min<uint64_t>(vocabulary, tokenizer->size());
  auto ordinary = [&](TokenId id) {
    return tokenizer == nullptr || (tokenizer->kind(id) == TokenKind::normal && !tokenizer->is_end_of_generation(id));
  };
  // A vocabulary may hold few ordinary tokens, or none at all.
  constexpr int kMostDraws = 64;
  Rng rng(1);
  std::vector<TokenId> ids;
  ids.reserve(count);
  while (ids.size() < count) {
    TokenId id = 0;
    for (int draw = 0; draw < kMostDraws; ++draw) {
      id = static_cast<TokenId>(rng.next() % vocabulary);
      if (ordinary(id)) break;
    }
    ids.push_back(id);
  }
  return ids;
}

BenchMachine this_machine() {
  return {.cpu = cpu_info().model, .isa = {}, .cpus = static_cast<int>(usable_cpus().size()), .measured_at = utc_now()};
}

Result<BenchReport> run_bench(const BenchOptions& options) {
  RIDGE_TRY(check(options));
  BenchReport report;
  report.machine = this_machine();
  report.memory_budget = options.engine.memory.value_or(0);
  for (int threads : threads_of(options)) {
    for (uint64_t depth : options.depths) {
      int count = threads > 0 ? threads : report.machine.cpus;
      RIDGE_TRY(Group(options, count, depth).run(report));
      if (report.interrupted) return report;
    }
  }
  return report;
}

}  // namespace ridge
