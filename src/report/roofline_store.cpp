#include "report/roofline_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "report/roofline_report.h"
#include "report/run_columns.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json run_row(const RooflineReport& report) {
  Json row = run_columns(report.machine, report.version, report.label);
  row.update(Json{{"numerics", report.numerics}, {"kv_type", report.kv_type}, {"memory_budget", report.memory_budget}});
  return row;
}

Json point_row(const RooflinePoint& point) {
  Json row = roofline_row(point);
  row["samples_s"] = Json(point.samples).dump();
  return row;
}

std::string schema() {
  return sql_table("roofline_runs", "id INTEGER PRIMARY KEY", run_row({})) +
         sql_table("roofline_points", "run INTEGER NOT NULL REFERENCES roofline_runs (id)", point_row({}));
}

// Phases of all models, in the order in which they are compared.
std::string history_query() {
  std::string columns;
  KeptPoint point;
  each_column(point,
              [&](const char* column, const auto&) { columns += (columns.empty() ? "" : ", ") + std::string(column); });
  return "SELECT " + columns +
         " FROM roofline_runs r JOIN roofline_points p ON p.run = r.id WHERE p.operator = 'all' "
         "ORDER BY p.model, p.prompt, p.answer, p.scenario, p.phase DESC, p.tokens, p.depth, r.id, p.rowid";
}

// All that is asked of the tables: those of another version refuse one of them.
constexpr std::string_view kCommand = "this version of ridge roofline";
std::vector<std::string> uses() {
  return {history_query(), sql_insert("roofline_runs", "", "", run_row({})),
          sql_insert("roofline_points", "run", "1", point_row({}))};
}

KeptPoint kept_point(const SqlStatement& row) {
  KeptPoint point;
  int column = 0;
  each_column(point, [&](const char*, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const int at = column++;
    if constexpr (std::is_same_v<Field, std::string>) {
      field = sql_text(row, at);
    } else if constexpr (std::is_same_v<Field, double>) {
      field = sqlite3_column_double(row.get(), at);
    } else {
      field = static_cast<Field>(sqlite3_column_int64(row.get(), at));
    }
  });
  return point;
}

}  // namespace

Result<RooflineStore> RooflineStore::open(const std::string& path) {
  RooflineStore store(RIDGE_TRY(SqliteFile::create(path)));
  RIDGE_TRY(store.file_.make_tables(schema(), uses(), kCommand));
  return store;
}

Result<RooflineStore> RooflineStore::open_existing(const std::string& path) {
  RooflineStore store(RIDGE_TRY(SqliteFile::read(path)));
  const SqlStatement tables =
      RIDGE_TRY(store.file_.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'roofline_points'"));
  RIDGE_TRY(store.file_.step(tables));
  if (sqlite3_column_int(tables.get(), 0) == 0) {
    return bad_input(fmt::format("{}: holds no rooflines; `ridge roofline MODEL --db` keeps some", path));
  }
  for (const std::string& sql : uses()) RIDGE_TRY(store.file_.check(sql, kCommand));
  return store;
}

Result<int64_t> RooflineStore::save(const RooflineReport& report) {
  std::string rows = sql_insert("roofline_runs", "", "", run_row(report));
  for (const RooflinePoint& p : report.points) {
    rows += sql_insert("roofline_points", "run", "(SELECT max(id) FROM roofline_runs)", point_row(p));
  }
  return file_.append(rows, "roofline_runs");
}

Result<void> RooflineStore::check_model(const std::string& model) const {
  const SqlStatement row = RIDGE_TRY(file_.prepare("SELECT DISTINCT model FROM roofline_points ORDER BY model"));
  constexpr size_t kNamed = 8;
  std::string names;
  size_t count = 0;
  while (RIDGE_TRY(file_.step(row))) {
    const std::string name = sql_text(row, 0);
    if (name == model) return {};
    if (++count <= kNamed) names += (names.empty() ? "'" : ", '") + name + "'";
  }
  if (count == 0) return bad_input(fmt::format("{}: holds no rooflines yet; measure with --db", file_.path()));
  return bad_input(fmt::format("{}: holds no roofline of a model '{}'; it has {}{}", file_.path(), model, names,
                               count > kNamed ? " and others" : ""));
}

Result<std::vector<KeptPoint>> RooflineStore::history(const std::vector<std::string>& models) const {
  for (const std::string& model : models) RIDGE_TRY(check_model(model));
  std::vector<KeptPoint> points;
  const SqlStatement row = RIDGE_TRY(file_.prepare(history_query()));
  while (RIDGE_TRY(file_.step(row))) {
    KeptPoint point = kept_point(row);
    if (models.empty() || std::find(models.begin(), models.end(), point.model) != models.end()) {
      points.push_back(std::move(point));
    }
  }
  return points;
}

}  // namespace ridge
