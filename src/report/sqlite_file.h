// An SQLite file that measurements are kept in: opened, checked, locked. The tables are those of bench_store.h and
// roofline_store.h, which one file may both hold.
//
//   SqliteFile file = RIDGE_TRY(SqliteFile::create("results.sqlite"));
//   RIDGE_TRY(file.execute("BEGIN IMMEDIATE;\n" + schema + "COMMIT;\n"));
//   SqlStatement rows = RIDGE_TRY(file.prepare("SELECT model FROM runs"));
//   while (RIDGE_TRY(file.step(rows))) sql_text(rows, 0);
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ridge {

struct FinalizeSql {
  void operator()(sqlite3_stmt* statement) const;
};
using SqlStatement = std::unique_ptr<sqlite3_stmt, FinalizeSql>;

// Not for several threads. Several processes may write to one file: each waits up to five seconds for the others.
class SqliteFile {
 public:
  // Makes the file where it is absent. I/O error if it cannot be written; bad input if it is no database, or the
  // database of another program: it has tables, and none of ours.
  static Result<SqliteFile> create(const std::string& path);
  // An existing file, to read from alone. Bad input if there is none.
  static Result<SqliteFile> read(const std::string& path);

  // Several statements; after an error nothing of an open transaction stays.
  Result<void> execute(const std::string& sql);
  Result<SqlStatement> prepare(const std::string& sql) const;
  // True: there is a row.
  Result<bool> step(const SqlStatement& statement) const;
  // Makes absent tables in a write transaction, so that a file that cannot be written is found before minutes of
  // measuring. Bad input if a statement of `uses` does not fit tables that were there: nothing has changed then.
  Result<void> make_tables(const std::string& schema, const std::vector<std::string>& uses, std::string_view command);
  // These rows or none of them; the number of the run that is then the newest in `runs`.
  Result<int64_t> append(const std::string& rows, std::string_view runs);
  // Bad input, naming the command whose tables these are, if a statement does not fit the file's tables.
  Result<void> check(const std::string& sql, std::string_view command) const;
  Error error(std::string_view doing) const;
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  SqliteFile(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}
  static Result<SqliteFile> open(const std::string& path, int flags);

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

std::string sql_text(const SqlStatement& row, int column);  // empty: NULL

// Tables made from rows one level deep. Of a row's types: columns are TEXT, INTEGER, or REAL (null is REAL).
std::string sql_table(const std::string& table, const std::string& first_column, const nlohmann::ordered_json& row);
// The values may be of any kind; `first_value` is SQL, and both firsts may be empty.
std::string sql_insert(const std::string& table, const std::string& first_column, const std::string& first_value,
                       const nlohmann::ordered_json& row);

}  // namespace ridge
