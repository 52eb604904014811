#include "analyze/roofline_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "analyze/bench_stats.h"
#include "analyze/chosen_experts.h"
#include "analyze/format_roof.h"
#include "analyze/roofs.h"
#include "analyze/stream_reads.h"
#include "machine/cpu.h"
#include "machine/probe_contention.h"
#include "machine/sched_watch.h"
#include "model/operators.h"
#include "plan/pass_model.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kWarmUpDecode = 4;

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// The roofs of one moment; memory at the footprint of all that a pass reads, and at that of each operator alone.
struct RoofsNow {
  MachineRoofs whole;
  std::array<double, kOperators> read_gb_per_s{}, format_gb_per_s{};
  MachineRoofs of(Operator op) const {
    MachineRoofs roofs = whole;
    roofs.format_gb_per_s = format_gb_per_s[static_cast<size_t>(op)];
    const double own = read_gb_per_s[static_cast<size_t>(op)];
    if (own > 0) roofs.read_gb_per_s = own;
    return roofs;
  }
};

// The better of two measurements, as a disturbance only ever lowers a roof.
RoofsNow better(const RoofsNow& a, const RoofsNow& b) {
  RoofsNow best{.whole = {.read_gb_per_s = std::max(a.whole.read_gb_per_s, b.whole.read_gb_per_s),
                          .storage_gb_per_s = std::max(a.whole.storage_gb_per_s, b.whole.storage_gb_per_s),
                          .int8_gops = std::max(a.whole.int8_gops, b.whole.int8_gops),
                          .float_gops = std::max(a.whole.float_gops, b.whole.float_gops),
                          .format_gb_per_s = std::max(a.whole.format_gb_per_s, b.whole.format_gb_per_s)},
                .format_gb_per_s = a.format_gb_per_s};
  for (size_t i = 0; i < kOperators; ++i) best.read_gb_per_s[i] = std::max(a.read_gb_per_s[i], b.read_gb_per_s[i]);
  return best;
}

struct Sample {
  double seconds = 0;
  std::array<double, kOperators> operators{};
  RoofsNow roofs;
};

// A phase at a depth, which several scenarios may share.
struct Test {
  PhaseShape phase;
  PhaseCost cost;
  std::array<double, kOperators> streamed_bytes{};
  std::optional<double> experts_saved_bytes;  // RooflinePoint's, once it ran; `cost` then has what was chosen
  MemoryReads reads;                          // of everything, and of each operator's own weights, keys and values
  std::array<MemoryReads, kOperators> operator_reads;
  FormatRoofs formats, upper_formats;  // of decode; prompts unpack once for many tokens
  SchedWatch watch;
  std::vector<Sample> samples;
  std::vector<RoofsNow> roofs;  // every measurement

  Work work(Operator op) const { return {cost[op], streamed_bytes[static_cast<size_t>(op)]}; }
  Work work() const {
    Work all{cost.total(), 0};
    for (double bytes : streamed_bytes) all.streamed_bytes += bytes;
    return all;
  }
};

template <class Value>
std::vector<double> over(const std::vector<Sample>& samples, Value value) {
  std::vector<double> values;
  for (const Sample& s : samples) values.push_back(value(s));
  return values;
}

class Run {
 public:
  explicit Run(const RooflineOptions& options) : options_(options) {}
  Result<void> measure(RooflineReport& report);

 private:
  bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }
  void list_tests();
  Result<void> open();
  void count();
  Result<void> bring_to(uint64_t depth);
  Result<double> evaluate(const PhaseShape& phase, uint64_t tokens);
  void find_memory(Test& test);
  Result<RoofsNow> roofs_now(Test& test);
  void count_chosen(Test& test);
  Result<void> round();
  Result<void> look_again();
  RooflinePoint base_point(const Scenario& scenario, const Test& test) const;
  RooflinePoint point(const Scenario& scenario, const Test& test) const;
  RooflinePoint point(const Scenario& scenario, const Test& test, Operator op) const;
  void finish(RooflinePoint& point, const Test& test, std::optional<Operator> op) const;
  void add_points(RooflineReport& report) const;

  const RooflineOptions& options_;
  std::vector<Test> tests_;
  StageProfile profile_;  // outlives the engine, which holds a pointer to it
  std::unique_ptr<Engine> engine_;
  std::optional<StreamReads> stream_reads_;
  std::vector<TokenId> ids_;
  Program decode_program_;
  CpuWatch others_;
  std::string name_;
};

// Prompts ascending, then answers from the deepest on: each needs little more than the context that is there.
void Run::list_tests() {
  auto add = [&](const PhaseShape& phase) {
    auto same = [&](const Test& t) { return t.phase == phase; };
    if (phase.shape.tokens > 0 && std::none_of(tests_.begin(), tests_.end(), same)) tests_.push_back({.phase = phase});
  };
  for (const Scenario& s : options_.scenarios) {
    add(prefill_shape(s));
    add(decode_shape(s, options_.decode_tokens));
  }
  std::stable_sort(tests_.begin(), tests_.end(), [](const Test& a, const Test& b) {
    if (a.phase.phase != b.phase.phase) return a.phase.phase == BenchTest::prefill;
    if (a.phase.phase == BenchTest::prefill) return a.phase.shape.tokens < b.phase.shape.tokens;
    return a.phase.shape.depth > b.phase.shape.depth;
  });
}

Result<void> Run::open() {
  uint64_t longest = 0;
  for (const Test& t : tests_) longest = std::max(longest, t.phase.shape.depth + t.phase.shape.tokens);
  EngineOptions engine = options_.engine;
  if (engine.context == 0) engine.context = longest;
  if (engine.context < longest) {
    return usage_error(
        fmt::format("--context {} has no room for the {} tokens of these scenarios: give {} or leave it "
                    "out, or make the scenarios shorter with --lengths",
                    engine.context, longest, longest));
  }
  engine.need_tokenizer = false;
  // What a router chose is only known from the run itself.
  const std::unique_ptr<Model> model = RIDGE_TRY(Model::open(engine.path));
  engine.record = has_experts(model->program({.tokens = 1, .outputs = 1, .role = TokenRole::generated}, {}));
  engine.profile = &profile_;
  engine_ = RIDGE_TRY(Engine::open(engine));
  stream_reads_.emplace(*engine_);
  ids_ = bench_tokens(*engine_, longest);
  const std::string& name = engine_->model().config().name;
  name_ = name.empty() ? std::filesystem::path(options_.engine.path).filename().string() : name;
  return {};
}

// What each operator reads of blocks that are not pinned, in one pass of the plan's program.
std::array<double, kOperators> streamed_of_a_pass(const Engine& engine, uint32_t tokens) {
  const Plan& plan = engine.plan();
  std::array<double, kOperators> sum{};
  for (const Visit& visit : plan.program.visits) {
    if (plan.placement.pinned[visit.block]) continue;
    const Block& block = plan.program.blocks[visit.block];
    for (const Piece& piece : block.pieces) {
      const StoredTensor& tensor = plan.program.tensors[piece.tensor];
      const Operator op = operator_of(plan.program, piece.tensor, engine.model().head().id);
      sum[static_cast<size_t>(op)] +=
          chance_of(visit, tokens) * static_cast<double>(tensor.stored_bytes(piece.row_begin, piece.row_end));
    }
  }
  return sum;
}

void Run::count() {
  const CostRules rules{
      .batch = engine_->plan().batch, .exact = engine_->machinery().exact, .kv_type = engine_->kv_type()};
  const Model& model = engine_->model();
  for (Test& t : tests_) {
    const bool prefill = t.phase.phase == BenchTest::prefill;
    t.cost = prefill ? prefill_phase(model, t.phase.shape, rules) : decode_phase(model, t.phase.shape, rules);
    const uint64_t tokens = prefill ? std::min<uint64_t>(rules.batch, t.phase.shape.tokens) : 1;
    t.streamed_bytes = streamed_of_a_pass(*engine_, static_cast<uint32_t>(tokens));
    for (double& bytes : t.streamed_bytes) bytes *= static_cast<double>(t.cost.passes);
  }
  decode_program_ = model.program({.tokens = 1, .outputs = 1, .role = TokenRole::generated},
                                  {.exact = rules.exact, .kv_type = rules.kv_type});
  if (options_.formats.empty() || rules.exact) return;  // the rates are those of the usual kernels
  auto of = [&](std::span<const FormatPoint> rates) {
    return format_roofs(decode_program_, model.head().id, rates, engine_->threads());
  };
  for (Test& t : tests_) {
    if (t.phase.phase != BenchTest::decode) continue;
    t.formats = of(options_.formats);
    t.upper_formats = of(upper_rates(options_.formats));
  }
}

Result<void> Run::bring_to(uint64_t depth) {
  if (engine_->position() > depth) (void)engine_->rewind(depth);
  const uint64_t at = engine_->position();
  if (at < depth) RIDGE_TRY(engine_->evaluate(std::span(ids_).subspan(at, depth - at), options_.interrupted));
  return {};
}

Result<double> Run::evaluate(const PhaseShape& phase, uint64_t tokens) {
  const std::span<const TokenId> ids = std::span(ids_).subspan(phase.shape.depth, tokens);
  const Clock::time_point start = Clock::now();
  if (phase.phase == BenchTest::prefill) {
    RIDGE_TRY(engine_->evaluate(ids, options_.interrupted));
  } else {
    for (size_t i = 0; i < ids.size() && !interrupted(); ++i) RIDGE_TRY(engine_->decode(ids[i]));
  }
  const double seconds = seconds_of(Clock::now() - start);
  if (options_.progress) options_.progress(tokens);
  return seconds;
}

// What the test reads, where it lies; nothing of weights that stream.
void Run::find_memory(Test& test) {
  ThreadPool& pool = *engine_->machinery().pool;
  const std::vector<MemoryReads::Stretch> cache =
      cache_stretches(*engine_, test.phase.shape.depth + test.phase.shape.tokens);
  auto with_cache = [&](std::vector<MemoryReads::Stretch> weights) {
    weights.insert(weights.end(), cache.begin(), cache.end());
    return MemoryReads(pool, weights);
  };
  const std::vector<MemoryReads::Stretch> weights = weight_stretches(*engine_);
  if (!weights.empty()) test.reads = with_cache(weights);
  for (size_t i = 0; i < kOperators; ++i) {
    const Operator op = static_cast<Operator>(i);
    if (op == Operator::other) continue;
    std::vector<MemoryReads::Stretch> own = weight_stretches(*engine_, op);
    test.operator_reads[i] = op == Operator::attention ? with_cache(own) : MemoryReads(pool, own);
  }
}

Result<RoofsNow> Run::roofs_now(Test& test) {
  RoofsNow now;
  const Rates& rates = engine_->rates();
  if (test.reads.possible()) {
    now.whole.read_gb_per_s = test.reads.measure();
  } else if (rates.memory_measured) {
    now.whole.read_gb_per_s = rates.memory / 1e9;
  }
  for (size_t i = 0; i < kOperators; ++i) {
    if (test.operator_reads[i].possible()) now.read_gb_per_s[i] = test.operator_reads[i].measure();
  }
  if (stream_reads_->possible()) {
    now.whole.storage_gb_per_s = RIDGE_TRY(stream_reads_->measure());
  } else if (engine_->plan().placement.streams() && rates.storage_measured) {
    now.whole.storage_gb_per_s = rates.storage / 1e9;
  }
  const ComputePeaks peaks = measure_peaks(*engine_->machinery().pool, engine_->numerics());
  now.whole.int8_gops = peaks.int8_gops;
  now.whole.float_gops = peaks.float_gops;
  now.whole.format_gb_per_s = test.formats.whole;
  now.format_gb_per_s = test.formats.of;
  test.roofs.push_back(now);
  return now;
}

// The tokens are the same in every repetition, and so are the experts that they are sent to.
void Run::count_chosen(Test& t) {
  const RecordingSource* recording = engine_->recording();
  if (recording == nullptr || recording->full() || t.experts_saved_bytes) return;
  const uint64_t chosen = chosen_expert_bytes(*recording);
  t.experts_saved_bytes = static_cast<double>(t.cost.expert_bytes) - static_cast<double>(chosen);
  Cost& experts = t.cost.operators[static_cast<size_t>(Operator::experts)];
  experts.memory_bytes = experts.memory_bytes - t.cost.expert_bytes + chosen;
}

Result<void> Run::round() {
  for (Test& t : tests_) {
    RIDGE_TRY(bring_to(t.phase.shape.depth));
    if (interrupted()) return {};
    const RoofsNow before = RIDGE_TRY(roofs_now(t));
    profile_ = {};
    if (engine_->recording() != nullptr) engine_->recording()->clear();
    t.watch.start();
    profile_.start();
    auto seconds = evaluate(t.phase, t.phase.shape.tokens);
    profile_.stop();
    t.watch.stop(engine_->threads());
    Sample sample{.seconds = RIDGE_TRY(std::move(seconds))};
    if (interrupted()) return {};
    count_chosen(t);
    const OperatorTimes times = times_by_operator(profile_, engine_->plan().program, engine_->model().head().id);
    for (size_t i = 0; i < kOperators; ++i) sample.operators[i] = seconds_of(times[i]);
    sample.roofs = better(before, RIDGE_TRY(roofs_now(t)));
    t.samples.push_back(sample);
  }
  return {};
}

// What a roof could be at most: measurements only fall short of it. The largest one, and beyond it as far again as the
// median lies below, but at least the 2 % by which clocks and timers differ.
double upper_limit(std::vector<double> measured) {
  constexpr double kLeast = 1.02;
  if (measured.empty()) return 0;
  const double most = *std::max_element(measured.begin(), measured.end());
  return std::max(kLeast * most, most + (most - median(measured)));
}

MachineRoofs roofs_of(const RoofsNow& roofs, std::optional<Operator> op) { return op ? roofs.of(*op) : roofs.whole; }

// A figure of each roof over a list of measurements.
template <class List, class Roofs, class Figure>
MachineRoofs each_roof(const List& list, Roofs roofs, Figure figure) {
  auto one = [&](double MachineRoofs::*roof) {
    std::vector<double> values;
    for (const auto& entry : list) values.push_back(roofs(entry).*roof);
    return figure(values);
  };
  return {.read_gb_per_s = one(&MachineRoofs::read_gb_per_s),
          .storage_gb_per_s = one(&MachineRoofs::storage_gb_per_s),
          .int8_gops = one(&MachineRoofs::int8_gops),
          .float_gops = one(&MachineRoofs::float_gops),
          .format_gb_per_s = one(&MachineRoofs::format_gb_per_s)};
}

MachineRoofs upper_limits(const Test& test, std::optional<Operator> op) {
  MachineRoofs limits = each_roof(
      test.roofs, [&](const RoofsNow& r) { return roofs_of(r, op); }, upper_limit);
  limits.format_gb_per_s = op ? test.upper_formats.of[static_cast<size_t>(*op)] : test.upper_formats.whole;
  return limits;
}

double median_seconds(const Test& test, std::optional<Operator> op) {
  return median(
      over(test.samples, [&](const Sample& s) { return op ? s.operators[static_cast<size_t>(*op)] : s.seconds; }));
}

bool has_point_above(const Test& test) {
  if (above_roof(test.work(), median_seconds(test, {}), upper_limits(test, {}))) return true;
  for (size_t i = 0; i < kOperators; ++i) {
    const Operator op = static_cast<Operator>(i);
    const double seconds = median_seconds(test, op);
    if (op != Operator::other && seconds > 0 && above_roof(test.work(op), seconds, upper_limits(test, op))) return true;
  }
  return false;
}

// On a machine that others use, roofs are low more often than wrong: before a point is called impossible they get more
// chances to be seen at their height.
Result<void> Run::look_again() {
  constexpr int kMore = 8;
  for (Test& t : tests_) {
    for (int i = 0; i < kMore && !t.samples.empty() && !interrupted() && has_point_above(t); ++i) {
      RIDGE_TRY(roofs_now(t));
    }
  }
  return {};
}

// Where a footprint lives, by the sizes that the CPU names; in a virtual machine it may name those of its host.
std::string level_of(uint64_t footprint, int threads) {
  const CpuInfo& cpu = cpu_info();
  const uint64_t cores = static_cast<uint64_t>(threads);
  if (footprint <= cpu.l1d_bytes * cores) return "L1";
  if (footprint <= cpu.l2_bytes * cores) return "L2";
  return footprint <= cpu.l3_bytes ? "L3" : "DRAM";
}

RooflinePoint Run::base_point(const Scenario& scenario, const Test& test) const {
  RooflinePoint p;
  p.model = name_;
  p.machine = cpu_info().model;
  p.scenario = scenario.name;
  p.prompt = scenario.prompt;
  p.answer = scenario.answer;
  p.phase = test.phase.phase;
  p.tokens = test.phase.shape.tokens;
  p.depth = test.phase.phase == BenchTest::prefill ? test.phase.shape.depth : test.phase.middle();
  p.threads = engine_->threads();
  p.passes = test.cost.passes;
  p.footprint_bytes =
      static_cast<uint64_t>(test.work().bytes() / static_cast<double>(std::max<uint64_t>(1, test.cost.passes)));
  p.level = level_of(p.footprint_bytes, p.threads);
  p.contention = test.watch.contention();
  if (p.contention.empty()) p.contention = others_.contention();
  return p;
}

// The share of a roof is taken repetition by repetition, each with its own roofs.
void Run::finish(RooflinePoint& p, const Test& test, std::optional<Operator> op) const {
  p.work = op ? test.work(*op) : test.work();
  if (!op || op == Operator::experts) p.experts_saved_bytes = test.experts_saved_bytes;
  p.samples =
      over(test.samples, [&](const Sample& s) { return op ? s.operators[static_cast<size_t>(*op)] : s.seconds; });
  p.seconds = median(p.samples);
  const MedianInterval interval = median_interval(p.samples);
  p.seconds_low = interval.low;
  p.seconds_high = interval.high;
  p.coverage = interval.coverage;
  p.roofs = each_roof(
      test.samples, [&](const Sample& s) { return roofs_of(s.roofs, op); },
      [](const std::vector<double>& values) { return median(values); });
  p.upper = upper_limits(test, op);
  p.bound_s = roof_times(p.work, p.roofs).bound_s();
  if (p.seconds <= 0) return;
  p.placed = place(p.work, p.seconds, p.roofs);
  std::vector<double> etas;
  for (const Sample& s : test.samples) {
    const double seconds = op ? s.operators[static_cast<size_t>(*op)] : s.seconds;
    etas.push_back(roof_times(p.work, roofs_of(s.roofs, op)).bound_s() / std::max(seconds, 1e-12));
  }
  p.placed.eta = median(etas);
  p.above = above_roof(p.work, p.seconds, p.upper);
}

RooflinePoint Run::point(const Scenario& scenario, const Test& test) const {
  RooflinePoint p = base_point(scenario, test);
  finish(p, test, std::nullopt);
  p.bound_s = 0;
  for (size_t i = 0; i < kOperators; ++i) {
    const Operator op = static_cast<Operator>(i);
    MachineRoofs roofs = p.roofs;
    roofs.format_gb_per_s = test.formats.of[i];
    p.bound_s += roof_times(test.work(op), roofs).bound_s();
  }
  if (p.phase == BenchTest::decode) {
    p.advice = advice_for(p.work, p.roofs, decode_program_, test.cost.passes, engine_->kv_type());
  }
  p.sentence = describe(p);
  return p;
}

RooflinePoint Run::point(const Scenario& scenario, const Test& test, Operator op) const {
  const size_t i = static_cast<size_t>(op);
  RooflinePoint p = base_point(scenario, test);
  p.op = name_of(op);
  finish(p, test, op);
  if (test.operator_reads[i].possible()) {
    p.footprint_bytes = test.operator_reads[i].bytes();
    p.level = level_of(p.footprint_bytes, p.threads);
  }
  p.share = median(over(test.samples, [&](const Sample& s) { return s.operators[i] / s.seconds; }));
  if (op == Operator::other) {  // norms and sums in the caches: only its time is of interest
    p.placed = {};
    p.above = {};
  }
  p.sentence = describe(p);
  return p;
}

void Run::add_points(RooflineReport& report) const {
  for (const Scenario& s : options_.scenarios) {
    for (const PhaseShape& phase : {prefill_shape(s), decode_shape(s, options_.decode_tokens)}) {
      auto test = std::find_if(tests_.begin(), tests_.end(), [&](const Test& t) { return t.phase == phase; });
      if (test == tests_.end() || test->samples.empty()) continue;
      report.points.push_back(point(s, *test));
      for (size_t i = 0; i < kOperators; ++i) {
        const Operator op = static_cast<Operator>(i);
        if (test->work(op).ops() > 0) report.points.push_back(point(s, *test, op));
      }
    }
  }
}

Result<void> Run::measure(RooflineReport& report) {
  list_tests();
  if (tests_.empty()) return usage_error("there is nothing to measure: give --lengths numbers above 0");
  RIDGE_TRY(open());
  count();
  const uint64_t warm = std::min<uint64_t>(engine_->plan().batch, ids_.size() - std::min(ids_.size(), kWarmUpDecode));
  RIDGE_TRY(bring_to(warm));
  for (size_t i = 0; i < kWarmUpDecode && warm + i < ids_.size(); ++i) RIDGE_TRY(engine_->decode(ids_[warm + i]));
  for (Test& t : tests_) find_memory(t);
  for (int r = 0; r < options_.repetitions && !interrupted(); ++r) RIDGE_TRY(round());
  RIDGE_TRY(look_again());
  report.kv_type = name_of(engine_->kv_type());
  report.memory_budget = options_.engine.memory.value_or(0);
  report.machine.isa = name_of(engine_->kernels().kernels.isa);
  const Model& model = engine_->model();
  report.models.push_back({.name = name_,
                           .architecture = model.config().architecture,
                           .path = options_.engine.path,
                           .weight_bytes = engine_->plan().program.memory_bytes_of_a_pass()});
  add_points(report);
  report.interrupted = interrupted();
  return {};
}

}  // namespace

uint64_t roofline_work(const RooflineOptions& options) {
  uint64_t sum = 0;
  for (const Scenario& s : options.scenarios) sum += s.prompt + std::min(s.answer, options.decode_tokens);
  return sum * static_cast<uint64_t>(options.repetitions);
}

Result<void> measure_roofline(const RooflineOptions& options, RooflineReport& report) {
  if (options.repetitions < 1 || options.repetitions > static_cast<int>(kMostRanked)) {
    return usage_error(
        fmt::format("-r {}: that many repetitions cannot be made: give 1 to {}", options.repetitions, kMostRanked));
  }
  return Run(options).measure(report);
}

}  // namespace ridge
