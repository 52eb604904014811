// The points of a roofline and what they are made from: scenarios of prompt and answer lengths, phases, operators.
// Plain data; roofline_run.h measures them, roofline_analytic.h computes them for machines that are not here.
//
//   for (const Scenario& s : scenarios({.short_tokens = 128, .long_tokens = 4096})) s.name, s.prompt, s.answer;
//   RooflinePoint p = …;
//   describe(p);                        // p.sentence
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/bench.h"
#include "analyze/compat_point.h"
#include "analyze/phase_cost.h"
#include "analyze/roofline.h"
#include "base/result.h"

namespace ridge {

// A prompt and an answer, in tokens. SISO: short input, short output, and so on.
struct Scenario {
  std::string name;
  uint64_t prompt = 0, answer = 0;
};
struct ScenarioLengths {
  uint64_t short_tokens = 128, long_tokens = 4096;
};
// SISO, LISO, SILO, LILO.
std::vector<Scenario> scenarios(const ScenarioLengths& lengths);
// Those of a list like "siso,lilo"; usage error for another name.
Result<std::vector<Scenario>> pick_scenarios(std::string_view list, const ScenarioLengths& lengths);

// The tokens of a phase that stand for all of it: the whole prompt; of the answer at most `most` around its middle,
// since what a token costs grows evenly with its depth.
struct PhaseShape {
  BenchTest phase = BenchTest::prefill;
  TestShape shape;  // tokens after `depth` others
  uint64_t middle() const { return shape.depth + shape.tokens / 2; }
  bool operator==(const PhaseShape& o) const {
    return phase == o.phase && shape.tokens == o.shape.tokens && shape.depth == o.shape.depth;
  }
};
PhaseShape prefill_shape(const Scenario& scenario);
PhaseShape decode_shape(const Scenario& scenario, uint64_t most);

// One way to make a decode that memory bounds faster: fewer bytes.
struct Advice {
  std::string what;  // "Q4_K weights", "a q8_0 cache"
  double gain = 1;   // times as fast, if the share of the roof stays
};

struct RooflinePoint {
  std::string model, scenario;
  uint64_t prompt = 0, answer = 0;  // of the scenario
  BenchTest phase = BenchTest::prefill;
  std::string op = "all";  // "all", or an operator's name
  uint64_t tokens = 0, depth = 0;
  int threads = 1;
  std::string machine;
  bool measured = true;  // false: seconds are what the machine's roofs allow at least
  Work work;
  uint64_t passes = 0;
  // Of models whose router chooses: what the experts' bytes in `work` would be if all were chosen alike, less what was
  // read. The bytes of `work` are those of the experts that this run chose.
  std::optional<double> experts_saved_bytes;
  uint64_t footprint_bytes = 0;  // weights, keys and values that a pass goes through
  std::string level;             // of memory where the footprint lives: "L3", "DRAM"
  double seconds = 0;            // median; with `samples`: their interval
  double seconds_low = 0, seconds_high = 0, coverage = 0;
  std::vector<double> samples;
  double share = 1;    // of the phase's time
  double bound_s = 0;  // the least time that the roofs allow; of a phase: summed over its operators
  MachineRoofs roofs;  // medians of those around each repetition
  MachineRoofs upper;  // upper limits
  Placed placed;
  std::optional<AboveRoof> above;
  std::optional<Advice> advice;
  std::string contention, sentence;

  double tokens_per_s() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// "decode at depth 192 is bound by DRAM: 91 % of 16.2 GB/s; Q4_K weights would give 1.8 ×"
std::string describe(const RooflinePoint& point);

// What would make this phase faster, at the same share of its roof; nothing below a tenth, or where memory does not
// bind it. `program`: of one decode pass.
std::optional<Advice> advice_for(const Work& work, const MachineRoofs& roofs, const Program& program, uint64_t passes,
                                 KvType kv_type);

struct RooflineModel {
  std::string name, architecture, path;
  uint64_t weight_bytes = 0;  // that a decode pass reads, as panels
};

// One scenario of a model by the formulas of RooflineBench's code and physically (paper_compat.h).
struct CompatRow {
  std::string model, machine, scenario;
  int threads = 1;
  CompatPoint compat;
  PhysicalPoint physical;
};

struct RooflineReport {
  BenchMachine machine;
  std::string version, numerics = "default", label;
  std::string kv_type;         // of the keys and values
  uint64_t memory_budget = 0;  // 0: none
  std::vector<RooflineModel> models;
  std::vector<RooflinePoint> points;
  std::vector<CompatRow> compat;   // with --paper-compat
  std::vector<std::string> notes;  // what a sweep shows
  bool interrupted = false;
  bool above() const;  // some point is above its roof
};

}  // namespace ridge
