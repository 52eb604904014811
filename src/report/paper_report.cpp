#include "report/paper_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analyze/paper_compat.h"
#include "base/printable.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

// Why the two columns differ, once for all rows.
constexpr const char* kDifferences[] = {
    "traffic is peak memory x run time there, bytes x seconds; here it is the bytes of weights, keys and values",
    "its W counts a multiply-add once, leaves out the feed-forward part, the head and every generated token",
    "its time is the whole process: loading, warm-ups and five repetitions of two tests; here each phase has its own",
    "its decode starts with an empty context in all scenarios, so a long prompt never shows in it",
    "so performance / OI is the peak memory of the process, whatever was measured: one line for each model",
    "its Phi adds FLOP/byte and FLOP/s under one root: it is the distance to the peak, to machine precision",
};
constexpr const char* kAssumed =
    "assumed for the compat columns, as the paper does not print them: 0.9 s to start, 0.2 GB of memory beside "
    "weights\n"
    "and cache, llama-bench's five repetitions after a warm-up; Q4_K_M as Q4_K with head and embedding in Q6_K";

std::string si(double value) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T"};
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string machines_table() {
  std::string text = fmt::format("{:<24}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}{:>10}\n", "machine", "GB/s", "measured",
                                 "TFLOPS", "measured", "ridge", "printed", "measured");
  for (const PaperDevice& d : paper_devices()) {
    text += fmt::format("{:<24}{:>10}{:>10}{:>10}{:>10}{:>9.2f}{:>9.2f}{:>10.2f}\n", d.name, d.memory_gb_per_s,
                        d.memory_measured_gb_per_s, d.f32_tflops, d.f32_measured_tflops,
                        d.f32_tflops * 1e3 / d.memory_gb_per_s, d.ridge, d.ridge_measured);
  }
  return text;
}

std::string columns_heading(std::string_view title) {
  return fmt::format("\n{}\n{:<22}{:<6}{:>9}{:>10}{:>8} |{:>9}{:>10}{:>10}{:>10}\n", title, "", "", "OI", "FLOP/s",
                     "of BW", "dec. OI", "op/s", "B/s", "pre. op/s");
}

std::string columns(std::string_view name, std::string_view scenario, const CompatPoint& c, const PhysicalPoint& p) {
  return fmt::format("{:<22}{:<6}{:>9.2g}{:>10}{:>7.1f}% |{:>9.2f}{:>10}{:>10}{:>10}\n", name, scenario, c.oi,
                     si(c.ops_per_s), 100 * c.roof_share, p.decode_oi, si(p.decode_ops_per_s), si(p.decode_bytes_per_s),
                     si(p.prefill_ops_per_s));
}

Json columns_json(const CompatPoint& c, const PhysicalPoint& p) {
  return {{"compat",
           {{"oi", c.oi},
            {"flops_per_s", c.ops_per_s},
            {"w", c.ops},
            {"seconds", c.seconds},
            {"peak_bytes", c.peak_bytes},
            {"roof_share", c.roof_share},
            {"phi", c.phi}}},
          {"physical",
           {{"prefill_oi", p.prefill_oi},
            {"prefill_flops_per_s", p.prefill_ops_per_s},
            {"decode_oi", p.decode_oi},
            {"decode_flops_per_s", p.decode_ops_per_s},
            {"decode_bytes_per_s", p.decode_bytes_per_s}}}};
}

std::string points_table() {
  std::string text, last;
  for (const PaperRow& row : paper_rows()) {
    if (row.device != last) {
      text += columns_heading(row.device);
      last = row.device;
    }
    for (size_t s = 0; s < kPaperScenarios; ++s) {
      text += columns(s == 0 ? fmt::format("{} {}", row.model, row.type) : "", paper_scenario(s).name,
                      compat_point(row, s), physical_point(row, s));
    }
  }
  return text;
}

const PaperRow& depth_row() { return *find_paper_row("M1 Pro", "qwen2.5-1.5b", "F16"); }

std::string depth_table() {
  const PaperRow& row = depth_row();
  std::string text = fmt::format("{:<8}", "layers");
  for (uint32_t layers : {1, 2, 4, 8, 16, 28, 64}) text += fmt::format("{:>9}", layers);
  text += "     L*\n";
  for (size_t s = 0; s < kPaperScenarios; ++s) {
    const DepthPeak d = depth_peak(row, s);
    const double ops = compat_layer_ops(shape_of(row), paper_scenario(s).prompt).sum();
    text += fmt::format("{:<8}", paper_scenario(s).name);
    for (int layers : {1, 2, 4, 8, 16, 28, 64}) text += fmt::format("{:>9.2g}", d.oi_at(layers, ops));
    text += fmt::format("{:>7.1f}\n", d.layers);
  }
  text += fmt::format("{:<8}", "decode");
  for (uint32_t layers : {1, 2, 4, 8, 16, 28, 64}) text += fmt::format("{:>9.2f}", physical_decode_oi(row, layers));
  return text + "   none (physical)\n";
}

}  // namespace

std::string paper_text() {
  std::string text = "RooflineBench (arXiv:2602.11506 v3) by its own formulas | physically, from the same tok/s\n\n";
  text += machines_table() + points_table();
  text += fmt::format("\nOI over depth, {} {} on {}: by the formula, and of decode\n", depth_row().model,
                      depth_row().type, depth_row().device);
  text += depth_table() + "\nwhy they differ\n";
  for (const char* line : kDifferences) text += fmt::format("- {}\n", line);
  text += fmt::format("{}\n", kAssumed);
  for (const Insight& i : paper_insights()) {
    text += fmt::format("\n{}\n  compat:   {}\n  physical: {}\n  verdict:  {}: {}\n", i.claim, i.compat, i.physical,
                        i.verdict, i.why);
  }
  return text;
}

nlohmann::ordered_json paper_json() {
  Json machines = Json::array(), points = Json::array(), depth = Json::array(), insights = Json::array();
  for (const PaperDevice& d : paper_devices()) {
    machines.push_back({{"name", d.name},
                        {"gb_per_s", d.memory_gb_per_s},
                        {"measured_gb_per_s", d.memory_measured_gb_per_s},
                        {"f32_tflops", d.f32_tflops},
                        {"measured_f32_tflops", d.f32_measured_tflops},
                        {"ridge_oi", d.f32_tflops * 1e3 / d.memory_gb_per_s},
                        {"printed_ridge_oi", d.ridge},
                        {"printed_measured_ridge_oi", d.ridge_measured}});
  }
  for (const PaperRow& row : paper_rows()) {
    for (size_t s = 0; s < kPaperScenarios; ++s) {
      Json point = {{"machine", row.device},
                    {"model", row.model},
                    {"type", row.type},
                    {"scenario", paper_scenario(s).name},
                    {"prefill_tokens_per_s", row.rates[s].prefill},
                    {"decode_tokens_per_s", row.rates[s].decode}};
      point.update(columns_json(compat_point(row, s), physical_point(row, s)));
      points.push_back(std::move(point));
    }
  }
  for (size_t s = 0; s < kPaperScenarios; ++s) {
    const DepthPeak d = depth_peak(depth_row(), s);
    depth.push_back({{"scenario", paper_scenario(s).name},
                     {"fixed_bytes", d.fixed_bytes},
                     {"layer_bytes", d.layer_bytes},
                     {"fixed_s", d.fixed_s},
                     {"layer_s", d.layer_s},
                     {"peak_layers", d.layers}});
  }
  for (const Insight& i : paper_insights()) {
    insights.push_back(
        {{"claim", i.claim}, {"compat", i.compat}, {"physical", i.physical}, {"verdict", i.verdict}, {"why", i.why}});
  }
  return {{"machines", machines},
          {"points", points},
          {"depth", depth},
          {"insights", insights},
          {"differences", kDifferences}};
}

std::string compat_table(const RooflineReport& report) {
  std::string text, last, model;
  for (const CompatRow& row : report.compat) {
    const std::string title =
        fmt::format("{}, {} thread{}", printable(row.machine), row.threads, row.threads == 1 ? "" : "s");
    if (title != last) text += columns_heading(title);
    // Names that fill their column have a line of their own.
    constexpr size_t kColumn = 21;
    std::string name = title == last && row.model == model ? "" : printable(row.model);
    if (name.size() > kColumn) text += std::exchange(name, "") + "\n";
    text += columns(name, row.scenario, row.compat, row.physical);
    last = title;
    model = row.model;
  }
  if (text.empty()) return text;
  return "\nby RooflineBench's formulas | physically (docs/roofline.md, the paper's figures)\n" + text;
}

nlohmann::ordered_json compat_json(const RooflineReport& report) {
  Json rows = Json::array();
  for (const CompatRow& row : report.compat) {
    Json json = {{"model", row.model}, {"machine", row.machine}, {"threads", row.threads}, {"scenario", row.scenario}};
    json.update(columns_json(row.compat, row.physical));
    rows.push_back(std::move(json));
  }
  return rows;
}

}  // namespace ridge
