// Two recorded benchmark runs beside each other: for each test that both have, the ratio of the medians and whether the
// repetitions differ by more than chance (Mann and Whitney's rank test, bench_stats.h).
//
// Not for: reading recorded runs (report/bench_store.h).
//
//   for (const ComparedTest& t : compare_runs(before, after).tests) t.ratio, t.p, t.verdict;
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

// The repetitions of one test.
struct BenchSeries {
  std::string test;  // "prefill", "decode"
  uint64_t tokens = 0, depth = 0;
  int threads = 1;
  std::vector<double> samples;  // tokens per second, 1 to kMostRanked
  bool contended = false;

  bool same_test(const BenchSeries& o) const {
    return test == o.test && tokens == o.tokens && depth == o.depth && threads == o.threads;
  }
};

struct RecordedRun {
  std::string name;  // as the user called it
  std::string model, cpu, numerics, kv_type;
  uint64_t memory_budget = 0;  // 0: none
  std::vector<BenchSeries> series;
};

// What else than the code differs between two runs, such as "model: SmolLM2 against Gemma". Empty: nothing that is
// recorded.
std::vector<std::string> differences(const RecordedRun& a, const RecordedRun& b);

// A difference counts below p = 0.05; with too few repetitions no difference could.
enum class Verdict : uint8_t { faster, slower, same, too_few };
std::string_view name_of(Verdict verdict);  // of B against A: "faster", "slower", "no difference", "too few runs"

struct ComparedTest {
  BenchSeries a, b;
  double a_median = 0, b_median = 0;
  double ratio = 0;  // b by a
  double p = 1;
  Verdict verdict = Verdict::same;
};

struct RunComparison {
  std::vector<ComparedTest> tests;
  std::vector<BenchSeries> only_a, only_b;
};
RunComparison compare_runs(const RecordedRun& a, const RecordedRun& b);

}  // namespace ridge
