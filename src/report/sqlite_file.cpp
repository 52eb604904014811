#include "report/sqlite_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

std::string sql_literal(const Json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_string()) return value.dump();
  std::string quoted = "'";
  for (char c : value.get<std::string>()) {
    if (c == '\0') continue;  // would end the statement
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

const char* sql_type(const Json& value) {
  if (value.is_string()) return "TEXT";
  return value.is_number_float() || value.is_null() ? "REAL" : "INTEGER";
}

}  // namespace

void FinalizeSql::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void SqliteFile::Close::operator()(sqlite3* db) const { sqlite3_close(db); }

Error SqliteFile::error(std::string_view doing) const {
  int code = sqlite3_errcode(db_.get());
  std::string message = fmt::format("{}: {} ({})", path_, doing, sqlite3_errmsg(db_.get()));
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR) {
    return bad_input(message + ": name a file that `ridge bench --db` wrote, or a new one");
  }
  return io_error(message + ": name a file that can be written");
}

Result<SqliteFile> SqliteFile::open(const std::string& path, int flags) {
  std::error_code ignored;
  const bool special = path.empty() || path.front() == ':' ||
                       (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored));
  if (special) return bad_input(fmt::format("{}: is no file that can hold a database: name one", path));
  sqlite3* opened = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  SqliteFile file(path, opened);
  if (opened == nullptr) return does_not_fit(fmt::format("{}: no memory to open the database", path));
  if (code != SQLITE_OK) return file.error("cannot be opened");
  constexpr int kPatienceMs = 5000;  // another run may be writing
  sqlite3_busy_timeout(opened, kPatienceMs);
  return file;
}

Result<SqliteFile> SqliteFile::create(const std::string& path) {
  SqliteFile file = RIDGE_TRY(open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  const SqlStatement tables = RIDGE_TRY(
      file.prepare("SELECT count(*), coalesce(sum(name IN ('runs', 'roofline_runs')), 0), min(name) FROM sqlite_master "
                   "WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"));
  RIDGE_TRY(file.step(tables));
  if (sqlite3_column_int(tables.get(), 0) > 0 && sqlite3_column_int(tables.get(), 1) == 0) {
    return bad_input(fmt::format("{}: is the database of another program (it has a table '{}'); give another file",
                                 path, sql_text(tables, 2)));
  }
  return file;
}

Result<SqliteFile> SqliteFile::read(const std::string& path) {
  auto file = open(path, SQLITE_OPEN_READONLY);
  if (file.ok()) return file;
  return bad_input(file.error().message);
}

Result<void> SqliteFile::execute(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  Error failed = error("the results cannot be kept");
  (void)sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);  // an error itself if nothing was begun
  return failed;
}

Result<SqlStatement> SqliteFile::prepare(const std::string& sql) const {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &prepared, nullptr);
  SqlStatement statement(prepared);
  if (code != SQLITE_OK) return error("cannot be read");
  return statement;
}

Result<bool> SqliteFile::step(const SqlStatement& statement) const {
  const int code = sqlite3_step(statement.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error("cannot be read");
}

Result<void> SqliteFile::make_tables(const std::string& schema, const std::vector<std::string>& uses,
                                     std::string_view command) {
  RIDGE_TRY(execute("BEGIN IMMEDIATE;\n" + schema));
  // Where the tables turn out to be others, the transaction ends without a change as the file closes.
  for (const std::string& sql : uses) RIDGE_TRY(check(sql, command));
  return execute("COMMIT;\n");
}

Result<int64_t> SqliteFile::append(const std::string& rows, std::string_view runs) {
  RIDGE_TRY(execute("BEGIN IMMEDIATE;\n" + rows));
  // Before the transaction ends: then another run may be the newest.
  int64_t number = 0;
  {
    const SqlStatement newest = RIDGE_TRY(prepare(fmt::format("SELECT max(id) FROM {}", runs)));
    RIDGE_TRY(step(newest));
    number = sqlite3_column_int64(newest.get(), 0);
  }
  RIDGE_TRY(execute("COMMIT;\n"));
  return number;
}

Result<void> SqliteFile::check(const std::string& sql, std::string_view command) const {
  const auto prepared = prepare(sql);
  if (prepared.ok()) return {};
  if (sqlite3_errcode(db_.get()) != SQLITE_ERROR) return prepared.error();
  return bad_input(fmt::format("{}: its tables are not those of {} ({}); give another file", path_, command,
                               sqlite3_errmsg(db_.get())));
}

std::string sql_text(const SqlStatement& row, int column) {
  const unsigned char* text = sqlite3_column_text(row.get(), column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

std::string sql_table(const std::string& table, const std::string& first_column, const Json& row) {
  std::string text = fmt::format("CREATE TABLE IF NOT EXISTS {} (\n  {}", table, first_column);
  for (const auto& [name, value] : row.items()) text += fmt::format(",\n  {} {}", name, sql_type(value));
  return text + "\n);\n";
}

std::string sql_insert(const std::string& table, const std::string& first_column, const std::string& first_value,
                       const Json& row) {
  std::string names = first_column, values = first_value;
  for (const auto& [name, value] : row.items()) {
    names += (names.empty() ? "" : ", ") + name;
    values += (values.empty() ? "" : ", ") + sql_literal(value);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({});\n", table, names, values);
}

}  // namespace ridge
