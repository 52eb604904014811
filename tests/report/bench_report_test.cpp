#include "report/bench_report.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "report/bench_store.h"

namespace ridge {
namespace {

BenchReport some_report() {
  BenchReport report;
  report.machine = {.cpu = "A \"quoted\", CPU", .isa = "avx512", .cpus = 2, .measured_at = "2026-01-31T12:00:00Z"};
  report.model = {.path = "m.gguf", .name = "it's; a, model", .architecture = "llama", .weight_bytes = 1234};
  report.version = "1.2.3";
  report.kv_type = "q8_0";
  report.memory_budget = 300 << 20;
  BenchResult decode{.test = BenchTest::decode, .tokens = 64, .depth = 1024, .threads = 2};
  decode.samples = {10, 11, 12, 13, 14};
  decode.tokens_per_s = 12;
  decode.ci_low = 10;
  decode.ci_high = 14;
  decode.ci_coverage = 0.9375;
  decode.gb_per_s = 7.5;
  decode.memory_share = 0.5;
  decode.roof_share = 0.5;
  decode.peak_bytes = 1 << 20;
  decode.stages = {{"attention", 100, 0.75}, {"other", 33, 0.25}};
  BenchResult prefill{.test = BenchTest::prefill, .tokens = 512, .threads = 1};
  prefill.samples = {100};
  prefill.tokens_per_s = prefill.ci_low = prefill.ci_high = 100;
  prefill.contention = "threads waited 50 % of the time for a CPU";
  report.results = {decode, prefill};
  return report;
}

TEST(BenchReport, JsonHasThePromisedFields) {
  auto json = nlohmann::json::parse(bench_text(some_report(), BenchFormat::json));
  EXPECT_EQ(json.size(), 2u);
  EXPECT_EQ(json["machine"]["cpu"], "A \"quoted\", CPU");
  EXPECT_EQ(json["machine"]["label"], "");
  ASSERT_EQ(json["results"].size(), 2u);
  const auto& r = json["results"][0];
  EXPECT_EQ(r["test"], "decode");
  EXPECT_EQ(r["tokens"], 64);
  EXPECT_EQ(r["depth"], 1024);
  EXPECT_EQ(r["path"], "m.gguf");
  EXPECT_EQ(r["weight_bytes"], 1234);
  EXPECT_EQ(json["machine"]["label"], some_report().label);
  EXPECT_EQ(r["threads"], 2);
  EXPECT_EQ(r["tokens_per_s"], 12.0);
  EXPECT_EQ(r["ci95"], nlohmann::json({10.0, 14.0}));
  EXPECT_EQ(r["gb_per_s"], 7.5);
  EXPECT_EQ(r["roof_share"], 0.5);
  EXPECT_EQ(r["peak_bytes"], 1 << 20);
  EXPECT_EQ(r["samples"].size(), 5u);
  EXPECT_EQ(r["profile"][0]["stage"], "attention");
  EXPECT_EQ(r["contended"], false);
  EXPECT_TRUE(json["results"][1]["roof_share"].is_null());
  EXPECT_EQ(json["results"][1]["contended"], true);
}

TEST(BenchReport, JsonLinesAreOneObjectPerResult) {
  std::string text = bench_text(some_report(), BenchFormat::jsonl);
  size_t cut = text.find('\n');
  auto first = nlohmann::json::parse(text.substr(0, cut)), second = nlohmann::json::parse(text.substr(cut + 1));
  EXPECT_EQ(first["test"], "decode");
  EXPECT_EQ(first["cpu"], "A \"quoted\", CPU");
  EXPECT_EQ(second["test"], "prefill");
}

TEST(BenchReport, CsvQuotesAndHasAHeader) {
  std::string text = bench_text(some_report(), BenchFormat::csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_TRUE(text.starts_with("label,measured_at,version,cpu,")) << text;
  EXPECT_NE(text.find(",\"A \"\"quoted\"\", CPU\",avx512,2,\"it's; a, model\",llama,"), std::string::npos) << text;
  EXPECT_NE(text.find("decode,64,1024,2,12.0,10.0,14.0,0.9375,7.5,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"[10.0,11.0,12.0,13.0,14.0]\""), std::string::npos) << text;
}

TEST(BenchReport, TableFitsAndSaysWhatToKnow) {
  std::string text = bench_text(some_report(), BenchFormat::table);
  EXPECT_NE(text.find("decode 64"), std::string::npos);
  EXPECT_NE(text.find("50 %"), std::string::npos);
  EXPECT_NE(text.find("! contended, such as: threads waited"), std::string::npos);
  EXPECT_NE(text.find("75.0 %"), std::string::npos);
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 104u) << text.substr(at, end - at);  // bytes: a dash is three of them
    at = end + 1;
  }
}

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};

TEST(BenchReport, SqlIsAScriptThatSqliteRuns) {
  sqlite3* opened = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
  std::unique_ptr<sqlite3, CloseDb> db(opened);
  std::string script = bench_text(some_report(), BenchFormat::sql);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(sqlite3_exec(db.get(), script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db.get());
  }
  std::string found;
  auto row = [](void* out, int columns, char** values, char**) {
    for (int i = 0; i < columns; ++i) {
      *static_cast<std::string*>(out) += std::string(values[i] == nullptr ? "NULL" : values[i]) + "|";
    }
    return 0;
  };
  const char* query =
      "SELECT r.id, model, test, tokens_per_s, roof_share, contended FROM runs r JOIN results ON run = r.id "
      "WHERE r.id = 2 ORDER BY test";
  ASSERT_EQ(sqlite3_exec(db.get(), query, row, &found, nullptr), SQLITE_OK) << sqlite3_errmsg(db.get());
  EXPECT_EQ(found, "2|it's; a, model|decode|12.0|0.5|0|2|it's; a, model|prefill|100.0|NULL|1|");
}

class BenchStoreTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ = (std::filesystem::path(testing::TempDir()) /
                       ("bench_store_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name())))
                          .string();
};

TEST_F(BenchStoreTest, KeepsRunsByLabelAndNumber) {
  {
    auto store = BenchStore::open(path_);
    ASSERT_TRUE(store.ok()) << store.error().message;
    BenchReport report = some_report();
    report.label = "before";
    EXPECT_EQ(store.value().save(report).value(), 1);
    report.label = "after";
    report.results.pop_back();
    EXPECT_EQ(store.value().save(report).value(), 2);
  }
  auto store = BenchStore::open_existing(path_);
  ASSERT_TRUE(store.ok()) << store.error().message;
  auto before = store.value().load("before"), second = store.value().load("2");
  ASSERT_TRUE(before.ok()) << before.error().message;
  EXPECT_EQ(before.value().series.size(), 2u);
  EXPECT_EQ(before.value().model, "it's; a, model");
  EXPECT_EQ(before.value().numerics, "default");
  EXPECT_EQ(before.value().kv_type, "q8_0");
  EXPECT_EQ(before.value().memory_budget, 300u << 20);
  EXPECT_EQ(before.value().series[0].samples, std::vector<double>({10, 11, 12, 13, 14}));
  EXPECT_TRUE(before.value().series[1].contended);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().series.size(), 1u);
  auto absent = store.value().load("later");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::bad_input);
  EXPECT_NE(absent.error().message.find("later"), std::string::npos);
}

TEST_F(BenchStoreTest, RefusesWhatIsNoDatabase) {
  std::ofstream(path_) << "this is a text, and a long one at that, long enough to hold a header of a database file....";
  auto store = BenchStore::open(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::bad_input);
  EXPECT_FALSE(BenchStore::open_existing(path_ + ".absent").ok());
  auto folder = BenchStore::open(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::bad_input);
}

TEST(BenchStore, ReadsItsOwnJsonAndRefusesOther) {
  auto run = recorded_run(bench_text(some_report(), BenchFormat::json), "a.json");
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run.value().series.size(), 2u);
  EXPECT_EQ(run.value().series[0].depth, 1024u);
  EXPECT_EQ(run.value().cpu, "A \"quoted\", CPU");
  EXPECT_EQ(run.value().kv_type, "q8_0");
  EXPECT_EQ(run.value().memory_budget, 300u << 20);
  for (const char* text :
       {"", "[]", "{}", "{\"results\": 1}", "{\"results\": [1]}", "{\"results\": [{\"test\": \"decode\"}]}",
        "{\"results\": [{\"test\": \"decode\", \"tokens\": 1, \"depth\": 0, \"threads\": 1, "
        "\"samples\": []}]}",
        "{\"results\": [{\"test\": \"decode\", \"tokens\": -1, \"depth\": 0, \"threads\": 1, "
        "\"samples\": [1]}]}"}) {
    auto wrong = recorded_run(text, "a.json");
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::bad_input);
  }
}

RecordedRun run_of(const std::string& name, std::vector<double> decode) {
  return {.name = name,
          .model = "m",
          .cpu = "c",
          .series = {{.test = "decode", .tokens = 64, .samples = std::move(decode)}}};
}

TEST(BenchCompare, SaysWhetherADifferenceIsMoreThanChance) {
  RecordedRun slow = run_of("slow", {1, 2, 3, 4, 5}), fast = run_of("fast", {11, 12, 13, 14, 15});
  RunComparison c = compare_runs(slow, fast);
  ASSERT_EQ(c.tests.size(), 1u);
  EXPECT_EQ(c.tests[0].verdict, Verdict::faster);
  EXPECT_DOUBLE_EQ(c.tests[0].ratio, 13.0 / 3);
  EXPECT_DOUBLE_EQ(c.tests[0].p, 2.0 / 252);
  EXPECT_EQ(compare_runs(fast, slow).tests[0].verdict, Verdict::slower);
  EXPECT_EQ(compare_runs(fast, fast).tests[0].verdict, Verdict::same);
  EXPECT_EQ(compare_runs(run_of("a", {1, 2, 3}), run_of("b", {4, 5, 6})).tests[0].verdict, Verdict::too_few);
  slow.series[0].depth = 7;
  c = compare_runs(slow, fast);
  EXPECT_TRUE(c.tests.empty());
  EXPECT_EQ(c.only_a.size(), 1u);
  EXPECT_EQ(c.only_b.size(), 1u);
  EXPECT_NE(comparison_table(slow, fast).find("only in A: decode 64 at depth 7"), std::string::npos);
}

TEST(BenchCompare, PrintsTableAndJson) {
  RecordedRun slow = run_of("slow", {1, 2, 3, 4, 5}), fast = run_of("fast", {11, 12, 13, 14, 15});
  std::string table = comparison_table(slow, fast);
  EXPECT_NE(table.find("4.333"), std::string::npos) << table;
  EXPECT_NE(table.find("0.0079"), std::string::npos) << table;
  auto json = comparison_json(slow, fast);
  EXPECT_EQ(json["tests"][0]["verdict"], "faster");
  EXPECT_EQ(json["a"]["name"], "slow");
}

TEST(BenchCompare, SaysWhatElseDiffers) {
  RecordedRun a = run_of("a", {1, 2, 3, 4, 5}), b = a;
  EXPECT_TRUE(differences(a, b).empty());
  EXPECT_EQ(comparison_table(a, b).find("not the same"), std::string::npos);
  b.kv_type = "q8_0";
  b.memory_budget = 300 << 20;
  EXPECT_EQ(differences(a, b).size(), 2u);
  EXPECT_NE(comparison_table(a, b).find("not the same in both: budget: none against 300 MiB"), std::string::npos);
  EXPECT_EQ(comparison_json(a, b)["differs"].size(), 2u);
}

TEST(BenchReport, OneRepetitionHasNoInterval) {
  BenchReport report = some_report();
  EXPECT_NE(bench_text(report, BenchFormat::table).find("none with one repetition"), std::string::npos);
  report.results.pop_back();
  EXPECT_NE(bench_text(report, BenchFormat::table).find("coverage 93.8 %"), std::string::npos);
}

}  // namespace
}  // namespace ridge
