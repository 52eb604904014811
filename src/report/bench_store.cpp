#include "report/bench_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/bench_stats.h"
#include "report/bench_report.h"

namespace ridge {
namespace {

// Samples as the rank test takes them; empty if they are not.
std::vector<double> samples_of(const nlohmann::json& json) {
  std::vector<double> samples;
  if (!json.is_array() || json.size() > kMostRanked) return {};
  for (const nlohmann::json& value : json) {
    if (!value.is_number()) return {};
    samples.push_back(value.get<double>());
  }
  return samples;
}

nlohmann::json parsed(std::string_view text) { return nlohmann::json::parse(text.begin(), text.end(), nullptr, false); }

// The run of a label or a number, a row per result.
constexpr const char* kLoadQuery =
    "SELECT r.model, r.cpu, r.numerics, r.kv_type, r.memory_budget, s.test, s.tokens, s.depth, s.threads, s.samples, "
    "s.contended FROM runs r "
    "LEFT JOIN results s ON s.run = r.id WHERE r.id = (SELECT id FROM runs WHERE label = ?1 OR "
    "CAST(id AS TEXT) = ?1 ORDER BY label = ?1 DESC, id DESC LIMIT 1)";

}  // namespace

Result<BenchStore> BenchStore::open(const std::string& path) {
  BenchStore store(RIDGE_TRY(SqliteFile::create(path)));
  RIDGE_TRY(store.file_.make_tables(
      bench_sql_schema(), {kLoadQuery, "SELECT label, model, cpu FROM runs", "SELECT run, test, tokens FROM results"},
      "ridge bench"));
  return store;
}

Result<BenchStore> BenchStore::open_existing(const std::string& path) {
  return BenchStore(RIDGE_TRY(SqliteFile::read(path)));
}

Result<int64_t> BenchStore::save(const BenchReport& report) { return file_.append(bench_sql_rows(report), "runs"); }

Result<RecordedRun> BenchStore::load(const std::string& label_or_number) const {
  const SqlStatement row = RIDGE_TRY(file_.prepare(kLoadQuery));
  sqlite3_bind_text(row.get(), 1, label_or_number.c_str(), -1, SQLITE_TRANSIENT);
  RecordedRun run{.name = label_or_number};
  bool found = false;
  while (RIDGE_TRY(file_.step(row))) {
    found = true;
    auto number = [&](int column) { return static_cast<uint64_t>(sqlite3_column_int64(row.get(), column)); };
    run.model = sql_text(row, 0);
    run.cpu = sql_text(row, 1);
    run.numerics = sql_text(row, 2);
    run.kv_type = sql_text(row, 3);
    run.memory_budget = number(4);
    BenchSeries series{.test = sql_text(row, 5),
                       .tokens = number(6),
                       .depth = number(7),
                       .threads = sqlite3_column_int(row.get(), 8),
                       .samples = samples_of(parsed(sql_text(row, 9))),
                       .contended = sqlite3_column_int(row.get(), 10) != 0};
    if (!series.samples.empty()) run.series.push_back(std::move(series));
  }
  if (!found) {
    return bad_input(
        fmt::format("{}: has no run with the label or number '{}'; `ridge bench --db` with --label makes one",
                    file_.path(), label_or_number));
  }
  return run;
}

Result<RecordedRun> recorded_run(std::string_view text, const std::string& name) {
  nlohmann::json json = parsed(text);
  Error wrong = bad_input(fmt::format("{}: is not what `ridge bench --json` prints: measure again", name));
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array()) return wrong;
  RecordedRun run{.name = name};
  if (json.contains("machine") && json["machine"].is_object()) {
    const nlohmann::json& machine = json["machine"];
    auto word = [&](const char* key) {
      return machine.contains(key) && machine[key].is_string() ? machine[key].get<std::string>() : "";
    };
    run.cpu = word("cpu");
    run.numerics = word("numerics");
    run.kv_type = word("kv_type");
    if (machine.contains("memory_budget") && machine["memory_budget"].is_number_unsigned()) {
      run.memory_budget = machine["memory_budget"].get<uint64_t>();
    }
  }
  for (const nlohmann::json& result : json["results"]) {
    auto number = [&](const char* key) { return result.contains(key) && result[key].is_number_unsigned(); };
    if (!result.is_object() || !result.contains("test") || !result["test"].is_string() || !number("tokens") ||
        !number("depth") || !number("threads") || !result.contains("samples")) {
      return wrong;
    }
    BenchSeries series{.test = result["test"].get<std::string>(),
                       .tokens = result["tokens"].get<uint64_t>(),
                       .depth = result["depth"].get<uint64_t>(),
                       .threads = result["threads"].get<int>(),
                       .samples = samples_of(result["samples"])};
    if (series.samples.empty()) return wrong;
    if (result.contains("contended") && result["contended"].is_boolean()) {
      series.contended = result["contended"].get<bool>();
    }
    if (result.contains("model") && result["model"].is_string()) run.model = result["model"].get<std::string>();
    run.series.push_back(std::move(series));
  }
  return run;
}

}  // namespace ridge
