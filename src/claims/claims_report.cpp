#include "claims/claims_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "claims/verdicts.h"
#include "report/line_chart.h"
#include "report/markup.h"
#include "report/page_style.h"
#include "report/wrapped.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

std::string change_text(double value, double base) { return fmt::format("{:+.0f} %", (value / base - 1) * 100); }

// Every cost against int8 with nothing kept.
struct CostColumn {
  const char* title;
  double MethodCost::*cost;
};
constexpr CostColumn kCosts[] = {
    {"bytes from DRAM", &MethodCost::dram_bytes}, {"time", &MethodCost::seconds}, {"energy", &MethodCost::joules}};

// Names of vendors' machines are long.
std::string cut(const std::string& name, size_t columns) {
  return name.size() <= columns ? name : name.substr(0, columns - 1) + "~";
}

// All but the one that the others are compared with.
std::vector<Method> shown_methods(const Evidence& e) {
  std::vector<Method> out;
  for (const Method m :
       {Method::int8_pins, Method::int8_resting, Method::four, Method::four_pins, Method::four_resting}) {
    if (e.cases.front().resting || (m != Method::int8_resting && m != Method::four_resting)) out.push_back(m);
  }
  return out;
}

std::string machine_table(const Evidence& e, const CostColumn& column) {
  const std::vector<Method> methods = shown_methods(e);
  std::string text =
      fmt::format("\n{} of a token, against int8 with nothing kept\n{:<43}{:>6}", column.title, "", "C/W");
  for (const Method m : methods) text += fmt::format("{:>15}", name_of(m));
  text += "\n";
  for (const MachineCase& c : e.cases) {
    text += fmt::format("{:<29} {:<12} {:>4.1f} %", cut(c.machine, 29), c.model, c.pinned_at_most * 100);
    for (const Method m : methods)
      text += fmt::format("{:>15}", change_text(c.of(m).*column.cost, c.of(Method::int8).*column.cost));
    text += "\n";
  }
  return text;
}

std::string students_table(const Evidence& e) {
  if (e.students.empty()) return "";
  std::string text = fmt::format("\n{:<16} {:>6} {:>10} {:>8} {:>14} {:>9} {:>10}\n", "student", "seed", "held out",
                                 "off", "busiest 26 %", "touched", "bytes cut");
  for (const Student& s : e.students) {
    text += fmt::format("{:<16} {:>6} {:>10.4f} {:>6.1f} % {:>12.1f} % {:>7.1f} % {:>8.1f} %\n", name_of(s.kind),
                        s.seed, s.held_out, s.sparsity * 100, s.busiest * 100, s.touched * 100, s.dram_cut * 100);
  }
  return text;
}

// Mean hit bytes by policy, for each share of the cache.
std::map<double, std::vector<double>> mean_hits(const Evidence& e) {
  std::map<double, std::vector<double>> sums;
  std::map<double, size_t> counts;
  for (const PolicyHits& h : e.hits) {
    auto& sum = sums[h.cache];
    sum.resize(h.ratios.size());
    for (size_t i = 0; i < h.ratios.size(); ++i) sum[i] += h.ratios[i];
    ++counts[h.cache];
  }
  for (auto& [cache, sum] : sums) {
    for (double& v : sum) v /= static_cast<double>(counts[cache]);
  }
  return sums;
}

std::string policies_table(const Evidence& e) {
  if (e.hits.empty()) return "";
  const auto hits = mean_hits(e);
  std::string text = fmt::format("\n{:<16}", "hit bytes, %");
  for (const auto& [cache, ratios] : hits) text += fmt::format(" {:>8.0f} %", cache * 100);
  text += " of the blocks cached\n";
  for (size_t p = 0; p < e.policies.size(); ++p) {
    text += fmt::format("{:<16}", e.policies[p]);
    for (const auto& [cache, ratios] : hits) text += fmt::format(" {:>10.1f}", ratios[p] * 100);
    text += "\n";
  }
  return text;
}

Json json_of(const MethodCost& c) {
  return {{"dram_bytes", c.dram_bytes}, {"seconds", c.seconds}, {"joules", c.joules}};
}

Json json_of(const MachineCase& c) {
  Json methods = Json::object();
  for (size_t i = 0; i < kMethods; ++i) {
    const auto m = static_cast<Method>(i);
    if (c.resting || (m != Method::int8_resting && m != Method::four_resting))
      methods[std::string(name_of(m))] = json_of(c.of(m));
  }
  return {{"machine", c.machine},
          {"model", c.model},
          {"document_names_it", c.paper_model},
          {"pinned_at_most", c.pinned_at_most},
          {"methods", std::move(methods)},
          {"int8_without_reading_ahead", json_of(c.serial)},
          {"int8_busiest_s", c.busiest_s}};
}

double tenths(double x) { return std::round(x * 10) / 10; }

// Bytes from DRAM over the share of the model that SRAM can hold, of a model of which it holds one worth speaking of:
// caching alone follows the diagonal.
std::string bytes_chart(const Evidence& e) {
  std::vector<const MachineCase*> cases;
  for (const MachineCase& c : e.cases) {
    if (!c.paper_model) cases.push_back(&c);
  }
  if (cases.size() < 2) return "";
  std::sort(cases.begin(), cases.end(),
            [](const MachineCase* a, const MachineCase* b) { return a->pinned_at_most < b->pinned_at_most; });
  LineChart chart{.title = "Bytes from DRAM against int8, " + cases.front()->model,
                  .x = "C/W of int8 weights, %",
                  .y = "change, %",
                  .lines = {}};
  for (const Method m : shown_methods(e)) {
    ChartLine line{.name = std::string(name_of(m)), .points = {}};
    for (const MachineCase* c : cases) {
      line.points.emplace_back(tenths(c->pinned_at_most * 100),
                               tenths((c->of(m).dram_bytes / c->of(Method::int8).dram_bytes - 1) * 100));
    }
    chart.lines.push_back(std::move(line));
  }
  return line_chart(chart);
}

LineChart hits_chart(const Evidence& e) {
  LineChart chart{.title = "Visits of resting neurons", .x = "cache, % of the blocks", .y = "hit bytes, %"};
  const auto hits = mean_hits(e);
  for (const char* name : {"lru", "lfu", "sieve", "pin-worth", "importance", "belady"}) {
    const auto at = std::find(e.policies.begin(), e.policies.end(), name);
    if (at == e.policies.end()) continue;
    ChartLine line{.name = name, .points = {}};
    for (const auto& [cache, ratios] : hits) {
      line.points.emplace_back(cache * 100, ratios[static_cast<size_t>(at - e.policies.begin())] * 100);
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

std::string claims_rows(const std::vector<Claim>& claims) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>claim</th><th class=\"l\">verdict</th><th>document</th><th>best of ours</th>"
      "<th>at the same bits</th><th>C/W</th></tr>\n";
  auto cell = [](std::string_view words) { return fmt::format("<td>{}</td>", markup(words.empty() ? "–" : words)); };
  for (const Claim& c : claims) {
    text += "<tr>" + cell(c.claim) + fmt::format("<td class=\"l\">{}</td>", name_of(c.verdict)) + cell(c.document) +
            cell(c.ours) + cell(c.same_bits) + cell(c.bound) + "</tr>\n";
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string claims_text(const Evidence& e) {
  std::string text;
  for (const Claim& c : judge(e)) {
    text += fmt::format("{}: {}\n", c.claim, name_of(c.verdict));
    text += fmt::format("  document {:<8}", c.document);
    if (!c.ours.empty()) text += fmt::format("  ours {}", c.ours);
    if (!c.bound.empty()) text += fmt::format("  C/W {}", c.bound);
    text += "\n";
    if (!c.same_bits.empty()) text += fmt::format("  same bits: {}\n", c.same_bits);
    text += "  " + wrapped(c.sentence, 2) + "\n";
  }
  text += students_table(e) + policies_table(e);
  if (e.cases.empty()) return text;
  for (const CostColumn& column : kCosts) text += machine_table(e, column);
  return text;
}

Json claims_json(const Evidence& e) {
  Json out = {{"claims", Json::array()}, {"students", Json::array()}, {"policies", Json::array()},
              {"bits", Json::array()},   {"machines", Json::array()}, {"energy_ratios", Json::array()}};
  for (const Claim& c : judge(e)) {
    out["claims"].push_back({{"claim", c.claim},
                             {"document", c.document},
                             {"ours", c.ours},
                             {"same_bits", c.same_bits},
                             {"bound", c.bound},
                             {"verdict", name_of(c.verdict)},
                             {"sentence", c.sentence}});
  }
  for (const Student& s : e.students) {
    out["students"].push_back({{"student", name_of(s.kind)},
                               {"seed", s.seed},
                               {"held_out", s.held_out},
                               {"sparsity", s.sparsity},
                               {"busiest_26_percent", s.busiest},
                               {"touched", s.touched},
                               {"dram_cut", s.dram_cut}});
  }
  for (const PolicyHits& h : e.hits) {
    Json ratios = Json::object();
    for (size_t i = 0; i < h.ratios.size(); ++i) ratios[e.policies[i]] = h.ratios[i];
    out["policies"].push_back(
        {{"student", name_of(h.kind)}, {"seed", h.seed}, {"cache", h.cache}, {"hit_bytes", std::move(ratios)}});
  }
  for (const BitsLoss& b : e.bits) {
    out["bits"].push_back(
        {{"model", b.model}, {"weights", b.weights}, {"f32", b.f32}, {"q8_0", b.int8}, {"q4_0", b.four}});
  }
  for (const MachineCase& c : e.cases) out["machines"].push_back(json_of(c));
  for (const TierRatio& r : e.ratios) {
    out["energy_ratios"].push_back(
        {{"machine", r.machine}, {"tier", r.tier}, {"bytes", r.bytes}, {"dram_over_sram", r.ratio}});
  }
  if (!e.missing.empty()) out["missing"] = e.missing;
  return out;
}

std::string claims_html(const Evidence& e, const ClaimsPage& page) {
  const std::vector<Claim> claims = judge(e);
  std::string text = page_begin("Ridge claims");
  text += fmt::format("<h1>Claims on weight caching</h1>\n<p class=\"faint\">ridge {}</p>\n", markup(page.version));
  text += claims_rows(claims);
  for (const Claim& c : claims) text += fmt::format("<p><b>{}</b>: {}</p>\n", markup(c.claim), markup(c.sentence));
  auto section = [&](const char* title, const std::string& body) {
    if (!body.empty()) text += fmt::format("<h2>{}</h2>\n<div class=\"wide\">{}</div>\n", title, body);
  };
  auto pre = [](const std::string& table) { return table.empty() ? "" : "<pre>" + markup(table) + "</pre>"; };
  if (!e.cases.empty()) {
    std::string tables;
    for (const CostColumn& column : kCosts) tables += machine_table(e, column);
    section("Machines", bytes_chart(e) + pre(tables));
  }
  section("Students", pre(students_table(e)));
  if (!e.hits.empty()) section("Policies", line_chart(hits_chart(e)) + pre(policies_table(e)));
  return text + fmt::format("<h2>To repeat it</h2>\n<p><code>{}</code></p>\n</body></html>\n", markup(page.command));
}

}  // namespace ridge
