#include "report/bench_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/bench_stats.h"
#include "report/bench_report.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

std::string text_of(sqlite3_stmt* row, int column) {
  const unsigned char* text = sqlite3_column_text(row, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

// Samples as the rank test takes them; empty if they are not.
std::vector<double> samples_of(const Json& json) {
  std::vector<double> samples;
  if (!json.is_array() || json.size() > kMostRanked) return {};
  for (const Json& value : json) {
    if (!value.is_number()) return {};
    samples.push_back(value.get<double>());
  }
  return samples;
}

Json parsed(std::string_view text) { return Json::parse(text.begin(), text.end(), nullptr, false); }

// The run of a label or a number, a row per result.
constexpr const char* kLoadQuery =
    "SELECT r.model, r.cpu, r.numerics, r.kv_type, r.memory_budget, s.test, s.tokens, s.depth, s.threads, s.samples, "
    "s.contended FROM runs r "
    "LEFT JOIN results s ON s.run = r.id WHERE r.id = (SELECT id FROM runs WHERE label = ?1 OR "
    "CAST(id AS TEXT) = ?1 ORDER BY label = ?1 DESC, id DESC LIMIT 1)";

}  // namespace

void BenchStore::Close::operator()(sqlite3* db) const { sqlite3_close(db); }

Error BenchStore::error(std::string_view doing) const {
  int code = sqlite3_errcode(db_.get());
  std::string message = fmt::format("{}: {} ({})", path_, doing, sqlite3_errmsg(db_.get()));
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR) {
    return bad_input(message + ": name a file that `ridge bench --db` wrote, or a new one");
  }
  return io_error(message + ": name a file that can be written");
}

Result<void> BenchStore::execute(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  Error failed = error("the results cannot be kept");
  (void)sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);  // an error itself if nothing was begun
  return failed;
}

Result<BenchStore> BenchStore::open_with(const std::string& path, int flags) {
  sqlite3* opened = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  BenchStore store(path, std::unique_ptr<sqlite3, Close>(opened));
  if (opened == nullptr) return does_not_fit(fmt::format("{}: no memory to open the database", path));
  if (code != SQLITE_OK) return store.error("cannot be opened");
  constexpr int kPatienceMs = 5000;  // another run may be writing
  sqlite3_busy_timeout(opened, kPatienceMs);
  return store;
}

Result<BenchStore> BenchStore::open(const std::string& path) {
  BenchStore store = RIDGE_TRY(open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // A write transaction now, so that a file that cannot be written is found before minutes of measuring.
  RIDGE_TRY(store.execute("BEGIN IMMEDIATE;\n" + bench_sql_schema() + "COMMIT;\n"));
  // Tables of the same names that are not ours would refuse the results only when they are there.
  for (const char* query :
       {kLoadQuery, "SELECT label, model, cpu FROM runs", "SELECT run, test, tokens FROM results"}) {
    sqlite3_stmt* prepared = nullptr;
    const int code = sqlite3_prepare_v2(store.db_.get(), query, -1, &prepared, nullptr);
    Statement statement(prepared);
    if (code != SQLITE_OK) {
      return bad_input(fmt::format("{}: its tables are not those of ridge bench ({}); give another file", path,
                                   sqlite3_errmsg(store.db_.get())));
    }
  }
  return store;
}

Result<BenchStore> BenchStore::open_existing(const std::string& path) {
  auto store = open_with(path, SQLITE_OPEN_READONLY);
  if (store.ok()) return store;
  return bad_input(store.error().message);
}

Result<int64_t> BenchStore::save(const BenchReport& report) {
  RIDGE_TRY(execute(bench_sql(report)));
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(db_.get(), "SELECT max(id) FROM runs", -1, &prepared, nullptr) != SQLITE_OK) {
    return error("the results cannot be read back");
  }
  Statement statement(prepared);
  (void)sqlite3_step(prepared);
  return sqlite3_column_int64(prepared, 0);
}

Result<RecordedRun> BenchStore::load(const std::string& label_or_number) const {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(db_.get(), kLoadQuery, -1, &prepared, nullptr) != SQLITE_OK) return error("cannot be read");
  Statement statement(prepared);
  sqlite3_bind_text(prepared, 1, label_or_number.c_str(), -1, SQLITE_TRANSIENT);
  RecordedRun run{.name = label_or_number};
  bool found = false;
  int code = SQLITE_OK;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) {
    found = true;
    auto number = [&](int column) { return static_cast<uint64_t>(sqlite3_column_int64(prepared, column)); };
    run.model = text_of(prepared, 0);
    run.cpu = text_of(prepared, 1);
    run.numerics = text_of(prepared, 2);
    run.kv_type = text_of(prepared, 3);
    run.memory_budget = number(4);
    BenchSeries series{.test = text_of(prepared, 5),
                       .tokens = number(6),
                       .depth = number(7),
                       .threads = sqlite3_column_int(prepared, 8),
                       .samples = samples_of(parsed(text_of(prepared, 9))),
                       .contended = sqlite3_column_int(prepared, 10) != 0};
    if (!series.samples.empty()) run.series.push_back(std::move(series));
  }
  if (code != SQLITE_DONE) return error("cannot be read");
  if (!found) {
    return bad_input(
        fmt::format("{}: has no run with the label or number '{}'; `ridge bench --db` with --label makes one", path_,
                    label_or_number));
  }
  return run;
}

Result<RecordedRun> recorded_run(std::string_view text, const std::string& name) {
  Json json = parsed(text);
  Error wrong = bad_input(fmt::format("{}: is not what `ridge bench --json` prints: measure again", name));
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array()) return wrong;
  RecordedRun run{.name = name};
  if (json.contains("machine") && json["machine"].is_object()) {
    const Json& machine = json["machine"];
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
  for (const Json& result : json["results"]) {
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
