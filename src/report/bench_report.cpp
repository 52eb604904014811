#include "report/bench_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "report/csv.h"
#include "report/run_columns.h"
#include "report/sqlite_file.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json share_or_null(const std::optional<double>& share) { return share ? Json(*share) : Json(nullptr); }

// One level deep, for formats that have columns: what the run is …
Json flat_run(const BenchReport& report) {
  Json row = run_columns(report.machine, report.version, report.label);
  row.update(Json{{"model", report.model.name},
                  {"architecture", report.model.architecture},
                  {"path", report.model.path},
                  {"weight_bytes", report.model.weight_bytes},
                  {"numerics", report.numerics},
                  {"kv_type", report.kv_type},
                  {"memory_budget", report.memory_budget}});
  return row;
}

// … and what one test gave.
Json flat_result(const BenchResult& r) {
  return {{"test", name_of(r.test)},
          {"tokens", r.tokens},
          {"depth", r.depth},
          {"threads", r.threads},
          {"tokens_per_s", r.tokens_per_s},
          {"ci95_low", r.ci_low},
          {"ci95_high", r.ci_high},
          {"ci_coverage", r.ci_coverage},
          {"gb_per_s", r.gb_per_s},
          {"storage_gb_per_s", r.storage_gb_per_s},
          {"gop_per_s", r.gop_per_s},
          {"roof_share", share_or_null(r.roof_share)},
          {"memory_share", share_or_null(r.memory_share)},
          {"compute_share", share_or_null(r.compute_share)},
          {"storage_share", share_or_null(r.storage_share)},
          {"read_roof_gb_per_s", r.read_roof_gb_per_s},
          {"storage_roof_gb_per_s", r.storage_roof_gb_per_s},
          {"int8_peak_gop_per_s", r.int8_peak_gop_per_s},
          {"float_peak_gop_per_s", r.float_peak_gop_per_s},
          {"peak_bytes", r.peak_bytes},
          {"contended", !r.contention.empty()},
          {"contention", r.contention},
          {"samples", Json(r.samples).dump()}};
}

std::string csv(const BenchReport& report) {
  const Json run = flat_run(report);
  std::vector<Json> rows;
  for (const BenchResult& result : report.results) {
    rows.push_back(run);
    rows.back().update(flat_result(result));
  }
  return csv_table(rows);
}

Json result_json(const BenchReport& report, const BenchResult& r) {
  Json flat = flat_result(r), out;
  for (const auto& [name, value] : flat.items()) {
    if (name == "ci95_high") continue;
    if (name == "ci95_low") {
      out["ci95"] = {r.ci_low, r.ci_high};
    } else if (name == "samples") {
      out[name] = r.samples;
    } else {
      out[name] = value;
    }
  }
  out["model"] = report.model.name;
  out["path"] = report.model.path;
  out["weight_bytes"] = report.model.weight_bytes;
  if (r.stages.empty()) return out;
  out["profile"] = Json::array();
  for (const StageTime& s : r.stages) {
    out["profile"].push_back({{"stage", s.stage}, {"us_per_token", s.us_per_token}, {"share", s.share}});
  }
  return out;
}

// Bad UTF-8 of a model's name must not end a run.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.0f} %", *share * 100) : "–"; }

// Three to four digits, so that columns stay narrow.
std::string figure(double x) { return fmt::format("{:.{}f}", x, x < 10 ? 2 : x < 1000 ? 1 : 0); }

// Pads by what is seen: a dash of three bytes is one column.
std::string right(const std::string& text, size_t width) {
  size_t columns = 0;
  for (char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return std::string(width > columns ? width - columns : 0, ' ') + text;
}

std::string stage_table(const BenchReport& report) {
  std::string text;
  for (const BenchResult& r : report.results) {
    if (r.stages.empty()) continue;
    double total = 0;
    for (const StageTime& s : r.stages) total += s.us_per_token;
    text += fmt::format("\n{} {} at depth {}, {}: {} µs per token\n", name_of(r.test), r.tokens, r.depth,
                        counted(static_cast<uint64_t>(r.threads), "thread"), figure(total));
    for (const StageTime& s : r.stages) {
      text += fmt::format("  {:<40}{:>11} µs {:>6.1f} %\n", printable(s.stage), figure(s.us_per_token), s.share * 100);
    }
  }
  return text;
}

// A roof is measured with an error of its own.
constexpr double kBelievable = 1.03;

std::string footnotes(const BenchReport& report) {
  std::string text;
  double coverage = 1, read = 0, peak = 0, storage = 0;
  std::string contention;
  bool shares = false, above = false;
  for (const BenchResult& r : report.results) {
    coverage = std::min(coverage, r.ci_coverage);
    read = std::max(read, r.read_roof_gb_per_s);
    peak = std::max(peak, r.int8_peak_gop_per_s);
    if (r.storage_gb_per_s > 0) storage = std::max(storage, r.storage_roof_gb_per_s);
    if (contention.empty()) contention = r.contention;
    shares = shares || r.roof_share;
    above = above || (r.roof_share && *r.roof_share > kBelievable);
  }
  if (coverage > 0) {
    text += fmt::format("interval: order statistics of the median, coverage {:.1f} %\n", coverage * 100);
  } else {
    text += "interval: none with one repetition; -r asks for more\n";
  }
  if (read > 0 && peak > 0) {
    text +=
        fmt::format("roofs of this run: memory reads {} GB/s, {}int8 {} Gop/s; a share is of the nearest one\n",
                    figure(read), storage > 0 ? fmt::format("storage {} GB/s, ", figure(storage)) : "", figure(peak));
  }
  if (!shares) text += "no share of a roof: experts stream, and `ridge probe` has not measured storage here\n";
  if (above) text += "a share above 100 %: a roof was disturbed while it was measured; measure again\n";
  if (!contention.empty()) text += fmt::format("! contended, such as: {}\n", contention);
  if (report.interrupted) text += "stopped by Ctrl-C: some tests are missing\n";
  return text;
}

}  // namespace

std::string bench_table(const BenchReport& report) {
  std::string text =
      fmt::format("{} ({}), {} of weights{}\n{}, {} kernels, {}\n\n", printable(report.model.name),
                  printable(report.model.architecture), format_bytes(report.model.weight_bytes),
                  report.numerics == "default" ? "" : ", numerics " + report.numerics, report.machine.cpu,
                  report.machine.isa, counted(static_cast<uint64_t>(report.machine.cpus), "CPU"));
  bool streams = false;
  for (const BenchResult& r : report.results) streams = streams || r.storage_gb_per_s > 0;
  text += fmt::format("{:<13}{:>7}{:>4}{:>9}  {:<17}{:>7}{}{:>8}{:>9}{:>10}\n", "test", "depth", "thr", "tok/s",
                      "interval", "GB/s", streams ? "  storage" : "", "Gop/s", "of roof", "peak");
  for (const BenchResult& r : report.results) {
    std::string interval = fmt::format("{}–{}", figure(r.ci_low), figure(r.ci_high));
    text += fmt::format(
        "{:<13}{:>7}{:>4}{:>9}  {}{}{:>7}{}{:>8}{}{:>10}{}\n", fmt::format("{} {}", name_of(r.test), r.tokens), r.depth,
        r.threads, figure(r.tokens_per_s), interval, right("", 17 + 2 > interval.size() ? 17 + 2 - interval.size() : 0),
        figure(r.gb_per_s), streams ? fmt::format("{:>9}", figure(r.storage_gb_per_s)) : "", figure(r.gop_per_s),
        right(percent(r.roof_share), 9), format_bytes(r.peak_bytes), r.contention.empty() ? "" : " !");
  }
  return text + "\n" + footnotes(report) + stage_table(report);
}

nlohmann::ordered_json bench_json(const BenchReport& report) {
  Json machine = {{"cpu", report.machine.cpu},   {"isa", report.machine.isa},
                  {"cpus", report.machine.cpus}, {"measured_at", report.machine.measured_at},
                  {"ridge", report.version},     {"numerics", report.numerics},
                  {"kv_type", report.kv_type},   {"memory_budget", report.memory_budget},
                  {"label", report.label}};
  Json results = Json::array();
  for (const BenchResult& r : report.results) results.push_back(result_json(report, r));
  return {{"machine", machine}, {"results", results}};
}

std::string bench_sql_schema() {
  return sql_table("runs", "id INTEGER PRIMARY KEY", flat_run({})) +
         sql_table("results", "run INTEGER NOT NULL REFERENCES runs (id)", flat_result({}));
}

// The lock is taken at once: of two that read first and then want to write, SQLite refuses one without waiting.
std::string bench_sql(const BenchReport& report) { return "BEGIN IMMEDIATE;\n" + bench_sql_rows(report) + "COMMIT;\n"; }

std::string bench_sql_rows(const BenchReport& report) {
  std::string text = bench_sql_schema() + sql_insert("runs", "", "", flat_run(report));
  for (const BenchResult& r : report.results) {
    text += sql_insert("results", "run", "(SELECT max(id) FROM runs)", flat_result(r));
  }
  return text;
}

std::string bench_text(const BenchReport& report, BenchFormat format) {
  switch (format) {
    case BenchFormat::table:
      return bench_table(report);
    case BenchFormat::json:
      return dump(bench_json(report), 2) + "\n";
    case BenchFormat::jsonl: {
      std::string text;
      for (const BenchResult& r : report.results) {
        Json row = flat_run(report);
        row.update(result_json(report, r));
        text += dump(row, -1) + "\n";
      }
      return text;
    }
    case BenchFormat::csv:
      return csv(report);
    case BenchFormat::sql:
      return bench_sql(report);
  }
  return {};
}

std::string comparison_table(const RecordedRun& a, const RecordedRun& b) {
  RunComparison c = compare_runs(a, b);
  std::string text = fmt::format("A  {} ({}, {})\nB  {} ({}, {})\n\n", printable(a.name), printable(a.model),
                                 printable(a.cpu), printable(b.name), printable(b.model), printable(b.cpu));
  text += fmt::format("{:<13}{:>7}{:>4}{:>11}{:>11}{:>8}{:>9}  {}\n", "test", "depth", "thr", "A tok/s", "B tok/s",
                      "B / A", "p", "B is");
  bool contended = false;
  for (const ComparedTest& t : c.tests) {
    bool flag = t.a.contended || t.b.contended;
    contended = contended || flag;
    text += fmt::format("{:<13}{:>7}{:>4}{:>11}{:>11}{:>8.3f}{:>9.4f}  {}{}\n",
                        fmt::format("{} {}", t.a.test, t.a.tokens), t.a.depth, t.a.threads, figure(t.a_median),
                        figure(t.b_median), t.ratio, t.p, name_of(t.verdict), flag ? " !" : "");
  }
  auto only = [&](const std::vector<BenchSeries>& tests, const char* which) {
    for (const BenchSeries& s : tests) {
      text += fmt::format("only in {}: {} {} at depth {}, threads {}\n", which, s.test, s.tokens, s.depth, s.threads);
    }
  };
  for (const std::string& what : differences(a, b)) text += fmt::format("\nnot the same in both: {}", printable(what));
  text += "\nmedians; p: two-sided exact rank test of Mann and Whitney, a difference counts below 0.05\n";
  if (contended) text += "! contended while measured\n";
  only(c.only_a, "A");
  only(c.only_b, "B");
  return text;
}

nlohmann::ordered_json comparison_json(const RecordedRun& a, const RecordedRun& b) {
  RunComparison c = compare_runs(a, b);
  Json tests = Json::array();
  for (const ComparedTest& t : c.tests) {
    tests.push_back({{"test", t.a.test},
                     {"tokens", t.a.tokens},
                     {"depth", t.a.depth},
                     {"threads", t.a.threads},
                     {"a_tokens_per_s", t.a_median},
                     {"b_tokens_per_s", t.b_median},
                     {"ratio", t.ratio},
                     {"p", t.p},
                     {"verdict", name_of(t.verdict)},
                     {"contended", t.a.contended || t.b.contended}});
  }
  auto side = [](const RecordedRun& run) {
    return Json{{"name", run.name},         {"model", run.model},     {"cpu", run.cpu},
                {"numerics", run.numerics}, {"kv_type", run.kv_type}, {"memory_budget", run.memory_budget}};
  };
  return {{"a", side(a)}, {"b", side(b)}, {"differs", differences(a, b)}, {"tests", tests}};
}

}  // namespace ridge
