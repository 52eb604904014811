#include "report/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "report/curve_chart.h"
#include "report/wrapped.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

// A plan without a limit has a budget that means nothing.
bool limited(const PlanStudy& study) { return study.engine->budget() < (uint64_t{1} << 60); }

// What a block costs in a decode pass.
struct BlockRow {
  double compute_s = 0, read_s = 0, wait_s = 0;
};

std::vector<BlockRow> block_rows(const PlanStudy& study) {
  const Plan& plan = study.engine->plan();
  const PassModel model(plan.program, study.engine->rates(), 1);
  const std::vector<double> waits =
      model.waits({.pinned = plan.placement.pinned, .slots = plan.placement.slots, .expert_hits = plan.expert_hits});
  std::vector<BlockRow> rows(plan.program.blocks.size());
  for (size_t i = 0; i < waits.size(); ++i) {
    const VisitTime& v = model.visits()[i];
    const bool pinned = plan.placement.pinned[v.block] != 0;
    rows[v.block].compute_s += v.compute + (pinned ? 0 : v.rearrange);
    rows[v.block].read_s += pinned ? 0 : v.read;
    rows[v.block].wait_s += waits[i];
  }
  return rows;
}

std::string pass_line(std::string_view name, const PassForecast& f) {
  return fmt::format("  {:<26} {:>9.2f} ms  {:>9.2f}  {:>9.2f}  {:>9.2f}  {:>9.2f}\n", name, f.seconds * 1e3,
                     f.bound.seconds() * 1e3, f.bound.storage_s * 1e3, f.bound.memory_s * 1e3,
                     f.bound.rearrange_s * 1e3);
}

std::string forecast_table(const Plan& plan) {
  std::string text = fmt::format("  {:<26} {:>12}  {:>9}  {:>9}  {:>9}  {:>9}\n", "", "predicted", "bound T*",
                                 "storage", "memory", "computing");
  text += pass_line("decode, a token", plan.decode);
  text += pass_line(fmt::format("prompt, a pass of {}", plan.prompt.tokens), plan.prompt);
  return text;
}

std::string blocks_table(const PlanStudy& study) {
  const Plan& plan = study.engine->plan();
  const std::vector<BlockRow> rows = block_rows(study);
  std::string text = fmt::format("blocks\n  {:<28} {:<9} {:>9}  {:>10}  {:>8}  {:>8}\n", "", "", "size", "compute ms",
                                 "read ms", "wait ms");
  for (BlockId b = 0; b < rows.size(); ++b) {
    const Block& block = plan.program.blocks[b];
    const char* how = plan.placement.pinned[b] ? "pinned" : block.on_demand ? "on demand" : "streamed";
    text += fmt::format("  {:<28} {:<9} {:>9}  {:>10.3f}  {:>8.3f}  {:>8.3f}\n", block.name, how,
                        format_bytes(block.memory_bytes), rows[b].compute_s * 1e3, rows[b].read_s * 1e3,
                        rows[b].wait_s * 1e3);
  }
  return text;
}

std::string name_of_model(const Engine& engine) {
  const std::string name = printable(engine.model().config().name);
  return name.empty() ? engine.model().config().architecture : name;
}

ChartOptions chart_options(const PlanStudy& study) {
  ChartOptions o{.title = name_of_model(*study.engine)};
  o.marks.push_back({"smallest", named_budget(study.curve.smallest)});
  o.marks.push_back({"useful", study.curve.useful});
  if (limited(study)) o.marks.push_back({"this budget", study.engine->budget()});
  return o;
}

std::string useful_sentence(const BudgetCurve& curve) {
  if (curve.points.back().tokens_per_s <= curve.points.front().tokens_per_s) {
    return fmt::format("useful budget {}: more memory buys nothing", budget_text(named_budget(curve.useful)));
  }
  if (curve.useful >= curve.resident) {
    return fmt::format("useful budget {}: every MiB up to it counts ({:.3g} tok/s each on average)",
                       budget_text(named_budget(curve.useful)), curve.before_useful);
  }
  if (curve.after_useful < 1e-3 * curve.before_useful) {
    return fmt::format("useful budget {}: beyond it more memory buys nothing ({:.3g} tok/s a MiB before)",
                       budget_text(named_budget(curve.useful)), curve.before_useful);
  }
  return fmt::format(
      "useful budget {}: beyond it a MiB buys {:.2g} tok/s on average, less than a tenth of the {:.2g} before",
      budget_text(named_budget(curve.useful)), curve.after_useful, curve.before_useful);
}

Json forecast_json(const PassForecast& f) {
  return {{"tokens", f.tokens},
          {"seconds", f.seconds},
          {"compute_s", f.compute_s},
          {"read_s", f.read_s},
          {"bound",
           {{"seconds", f.bound.seconds()},
            {"storage_s", f.bound.storage_s},
            {"memory_s", f.bound.memory_s},
            {"compute_s", f.bound.rearrange_s}}}};
}

Json rates_json(const Rates& r) {
  return {{"storage_bytes_per_s", r.storage},       {"memory_bytes_per_s", r.memory},
          {"rearrange_bytes_per_s", r.rearrange},   {"block_overhead_s", r.block_overhead_s},
          {"int8_ops_per_s", r.int8_ops},           {"float_ops_per_s", r.float_ops},
          {"storage_measured", r.storage_measured}, {"memory_measured", r.memory_measured},
          {"contended", !r.contention.empty()},     {"contention", r.contention}};
}

}  // namespace

std::string plan_text(const PlanStudy& study, const PlanTextOptions& options) {
  const Engine& engine = *study.engine;
  const Plan& plan = engine.plan();
  const std::string budget = limited(study)
                                 ? fmt::format("{} ({})", format_bytes(engine.budget()), engine.budget_reason())
                                 : "without a limit";
  std::string text = wrapped(fmt::format("{}, context {}, {}, {}", name_of_model(engine), engine.context(),
                                         counted(static_cast<uint64_t>(engine.threads()), "thread"), budget),
                             0) +
                     "\n";
  const Rates& r = engine.rates();
  text += wrapped(
      fmt::format("machine: {}; storage {:.2f} GB/s ({}), memory {:.1f} GB/s ({})",
                  engine.machine_name().empty() ? "this one, not probed" : printable(engine.machine_name()),
                  r.storage / 1e9, rate_word(r, r.storage_measured), r.memory / 1e9, rate_word(r, r.memory_measured)),
      0);
  if (!r.contention.empty()) text += "\n" + wrapped(contention_sentence(r), 0);
  text += "\n\n";
  text += forecast_table(plan) + "\n";
  for (const std::string& reason : plan.reasons) text += fmt::format("  {}\n", wrapped(reason, 4));
  if (options.explain) text += "\nmemory\n" + plan.account.table() + "\n" + blocks_table(study);
  ChartOptions chart = chart_options(study);
  chart.utf8 = options.utf8;
  text += "\n" + terminal_chart(study.curve, chart) + "\n";
  text += fmt::format("  smallest budget {}; all in memory from {} on\n  {}\n",
                      budget_text(named_budget(study.curve.smallest)), budget_text(named_budget(study.curve.resident)),
                      wrapped(useful_sentence(study.curve), 4));
  return text;
}

Json plan_json(const PlanStudy& study, bool blocks) {
  const Engine& engine = *study.engine;
  const Plan& plan = engine.plan();
  Json j;
  j["model"] = name_of_model(engine);
  j["context"] = engine.context();
  j["threads"] = engine.threads();
  j["budget_bytes"] = limited(study) ? Json(engine.budget()) : Json(nullptr);
  j["budget_reason"] = engine.budget_reason();
  j["machine"] = engine.machine_name();
  j["rates"] = rates_json(engine.rates());
  j["resident"] = !plan.placement.streams();
  j["pinned_bytes"] = plan.placement.pinned_bytes(plan.program);
  j["streamed_bytes_per_pass"] = plan.placement.streamed_bytes(plan.program);
  j["slots"] = {{"count", plan.placement.slots}, {"bytes", plan.placement.slot_bytes}};
  j["experts"] = {{"slots", plan.placement.expert_slots},
                  {"cache_per_layer", plan.placement.expert_cache},
                  {"policy", name_of(plan.placement.expert_policy)},
                  {"expected_hits", plan.expert_hits}};
  j["pins"] = {{"exact", plan.pins_exact}, {"gap", plan.pin_gap}};
  j["decode"] = forecast_json(plan.decode);
  j["prompt"] = forecast_json(plan.prompt);
  j["reasons"] = plan.reasons;
  j["account"] = Json::array();
  for (const AccountItem& i : plan.account.items()) j["account"].push_back({{"name", i.name}, {"bytes", i.bytes}});
  j["account_bytes"] = plan.account.total();
  j["smallest_budget"] = named_budget(study.curve.smallest);
  j["useful_budget"] = named_budget(study.curve.useful);
  j["resident_budget"] = named_budget(study.curve.resident);
  j["curve"] = Json::array();
  for (const CurvePoint& p : study.curve.points) {
    j["curve"].push_back({{"budget_bytes", p.budget},
                          {"tokens_per_s", p.tokens_per_s},
                          {"pinned_bytes", p.pinned_bytes},
                          {"streamed_bytes", p.streamed_bytes}});
  }
  if (!blocks) return j;
  const std::vector<BlockRow> rows = block_rows(study);
  j["blocks"] = Json::array();
  for (BlockId b = 0; b < rows.size(); ++b) {
    const Block& block = plan.program.blocks[b];
    j["blocks"].push_back({{"name", block.name},
                           {"pinned", plan.placement.pinned[b] != 0},
                           {"on_demand", block.on_demand},
                           {"storage_bytes", block.storage_bytes},
                           {"memory_bytes", block.memory_bytes},
                           {"compute_s", rows[b].compute_s},
                           {"read_s", rows[b].read_s},
                           {"wait_s", rows[b].wait_s}});
  }
  return j;
}

std::string plan_svg(const PlanStudy& study) { return svg_chart(study.curve, chart_options(study)); }

}  // namespace ridge
