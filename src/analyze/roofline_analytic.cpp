#include "analyze/roofline_analytic.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/format_roof.h"

namespace ridge {
namespace {

double first_of(const MachineProfile& machine, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const Figure* f = machine.figure(name)) return f->value;
  }
  return 0;
}

class Analytic {
 public:
  Analytic(const Model& model, const MachineProfile& machine, const AnalyticOptions& options)
      : model_(model),
        machine_(machine),
        rules_(options.rules),
        decode_program_(model.program({.tokens = 1, .outputs = 1, .role = TokenRole::generated},
                                      {.exact = rules_.exact, .kv_type = rules_.kv_type})) {
    if (rules_.exact) return;  // the rates are those of the usual kernels
    formats_ = format_roofs(decode_program_, model.head().id, machine.formats, machine.most_threads());
  }

  void add(const Scenario& scenario, const PhaseShape& phase, RooflineReport& report) const {
    const bool prefill = phase.phase == BenchTest::prefill;
    const PhaseCost cost =
        prefill ? prefill_phase(model_, phase.shape, rules_) : decode_phase(model_, phase.shape, rules_);
    if (cost.passes == 0) return;
    RooflinePoint all = point(scenario, phase, cost, {cost.total(), 0}, prefill ? 0 : formats_.whole);
    auto format_of = [&](size_t op) { return prefill ? 0 : formats_.of[op]; };
    // One operator after the other: each is under its own roof.
    double seconds = 0;
    for (size_t i = 0; i < kOperators; ++i) {
      MachineRoofs roofs = all.roofs;
      roofs.format_gb_per_s = format_of(i);
      seconds += roof_times({cost.operators[i], 0}, roofs).bound_s();
    }
    all.seconds = all.seconds_low = all.seconds_high = seconds;
    all.bound_s = seconds;
    all.placed = place(all.work, seconds, all.roofs);
    if (!prefill) all.advice = advice_for(all.work, all.roofs, decode_program_, cost.passes, rules_.kv_type);
    all.sentence = describe(all);
    report.points.push_back(all);
    for (size_t i = 0; i < kOperators; ++i) {
      const Operator op = static_cast<Operator>(i);
      if (op == Operator::other || Work{cost[op], 0}.ops() == 0) continue;
      RooflinePoint p = point(scenario, phase, cost, {cost[op], 0}, format_of(i));
      p.op = name_of(op);
      p.share = p.seconds / all.seconds;
      p.sentence = describe(p);
      report.points.push_back(p);
    }
  }

 private:
  RooflinePoint point(const Scenario& scenario, const PhaseShape& phase, const PhaseCost& cost, const Work& work,
                      double format_gb_per_s) const {
    RooflinePoint p;
    p.model = model_.config().name;
    p.machine = machine_.name;
    p.measured = false;
    p.scenario = scenario.name;
    p.prompt = scenario.prompt;
    p.answer = scenario.answer;
    p.phase = phase.phase;
    p.tokens = phase.shape.tokens;
    p.depth = phase.phase == BenchTest::prefill ? phase.shape.depth : phase.middle();
    p.threads = machine_.most_threads();
    p.passes = cost.passes;
    const Work whole{cost.total(), 0};
    p.footprint_bytes = static_cast<uint64_t>(whole.bytes() / static_cast<double>(cost.passes));
    p.level = machine_.reads.empty() ? "DRAM" : "memory";
    p.work = work;
    p.roofs = roofs_of(machine_, p.footprint_bytes);
    p.roofs.format_gb_per_s = format_gb_per_s;
    p.upper = p.roofs;
    p.bound_s = p.seconds = p.seconds_low = p.seconds_high = roof_times(work, p.roofs).bound_s();
    if (p.seconds > 0) p.placed = place(work, p.seconds, p.roofs);
    return p;
  }

  const Model& model_;
  const MachineProfile& machine_;
  CostRules rules_;
  Program decode_program_;
  FormatRoofs formats_;
};

}  // namespace

MachineRoofs roofs_of(const MachineProfile& machine, uint64_t footprint_bytes) {
  MachineRoofs roofs;
  const int threads = machine.most_threads();
  roofs.read_gb_per_s = machine.read_gb_per_s(footprint_bytes, threads).value_or(0);
  roofs.storage_gb_per_s = machine.storage_gb_per_s().value_or(0);
  roofs.int8_gops = first_of(machine, {"int8_gops", "f16_gops", "f32_gops"});
  roofs.float_gops = first_of(machine, {"f16_gops", "f32_gops"});
  // Units without products of bytes multiply them as floats.
  auto peak = [&](std::initializer_list<const char*> types, double per_core) {
    for (const char* type : types) {
      if (const auto gops = machine.peak_gops(type, threads)) return *gops;
    }
    return per_core * threads;
  };
  if (roofs.int8_gops <= 0) roofs.int8_gops = peak({"int8", "f16", "f32"}, machine.int8_gops_per_core);
  if (roofs.float_gops <= 0) roofs.float_gops = peak({"f32"}, machine.float_gops_per_core);
  return roofs;
}

Result<void> add_analytic_points(const Model& model, const MachineProfile& machine, const AnalyticOptions& options,
                                 RooflineReport& report) {
  if (roofs_of(machine, 1).read_gb_per_s <= 0) {
    return bad_input(
        fmt::format("{}: has neither reads nor the figure memory_gb_per_s: there is no roof to place a "
                    "model under; add one",
                    machine.name));
  }
  const Analytic analytic(model, machine, options);
  for (const Scenario& s : options.scenarios) {
    analytic.add(s, prefill_shape(s), report);
    analytic.add(s, decode_shape(s, s.answer), report);
  }
  return {};
}

}  // namespace ridge
