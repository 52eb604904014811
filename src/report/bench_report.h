// The results of a benchmark as people and programs want them: a table, JSON, JSON lines, CSV, SQL.
//
//   std::string text = bench_table(report);
//   std::string rows = bench_text(report, BenchFormat::csv);
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyze/bench.h"
#include "analyze/bench_compare.h"

namespace ridge {

enum class BenchFormat : uint8_t { table, json, jsonl, csv, sql };

std::string bench_text(const BenchReport& report, BenchFormat format);

// At most 100 columns wide, with what to know about the figures below it.
std::string bench_table(const BenchReport& report);
// {"machine": …, "results": [{"test", "tokens", "depth", "threads", "tokens_per_s", "ci95": [low, high], …}]}
nlohmann::ordered_json bench_json(const BenchReport& report);
// The tables `runs` and `results` are created if they are absent, and the run is inserted: one script, one transaction.
std::string bench_sql(const BenchReport& report);
// The same without the transaction around it.
std::string bench_sql_rows(const BenchReport& report);
// Only the tables.
std::string bench_sql_schema();

std::string comparison_table(const RecordedRun& a, const RecordedRun& b);
nlohmann::ordered_json comparison_json(const RecordedRun& a, const RecordedRun& b);

}  // namespace ridge
