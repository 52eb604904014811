// Benchmark runs that are kept: in an SQLite database (tables `runs` and `results`), or as the JSON that `ridge bench
// --json` printed.
//
//   BenchStore store = RIDGE_TRY(BenchStore::open("results.sqlite"));      // before measuring: finds out if it can be
//   RIDGE_TRY(store.save(report));
//   RecordedRun before = RIDGE_TRY(store.load("before"));
#pragma once

#include <string>
#include <string_view>

#include "analyze/bench.h"
#include "analyze/bench_compare.h"
#include "base/result.h"
#include "report/sqlite_file.h"

namespace ridge {

class BenchStore {
 public:
  // Creates the file and the tables where they are absent. I/O error if it cannot be written, bad input if it is no
  // database, or that of another program, or its tables are others.
  static Result<BenchStore> open(const std::string& path);
  // An existing file, to read from alone.
  static Result<BenchStore> open_existing(const std::string& path);

  // The number that the run got.
  Result<int64_t> save(const BenchReport& report);
  // The newest run with this label, or the run with this number. Bad input if there is none.
  Result<RecordedRun> load(const std::string& label_or_number) const;

 private:
  explicit BenchStore(SqliteFile file) : file_(std::move(file)) {}
  SqliteFile file_;
};

// The text of a file that `ridge bench --json` wrote; `name` stands in messages. Bad input if it is something else.
Result<RecordedRun> recorded_run(std::string_view json, const std::string& name);

}  // namespace ridge
