#include "analyze/bench_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/bench_stats.h"
#include "base/units.h"

namespace ridge {
namespace {

constexpr double kSignificant = 0.05;

const BenchSeries* find(const RecordedRun& run, const BenchSeries& like) {
  auto it = std::find_if(run.series.begin(), run.series.end(), [&](const auto& s) { return s.same_test(like); });
  return it == run.series.end() ? nullptr : &*it;
}

ComparedTest compared(const BenchSeries& a, const BenchSeries& b) {
  ComparedTest test{.a = a, .b = b, .a_median = median(a.samples), .b_median = median(b.samples)};
  if (test.a_median > 0) test.ratio = test.b_median / test.a_median;
  test.p = mann_whitney(a.samples, b.samples).p;
  if (smallest_p(a.samples.size(), b.samples.size()) >= kSignificant) {
    test.verdict = Verdict::too_few;
  } else if (test.p < kSignificant) {
    test.verdict = test.ratio > 1 ? Verdict::faster : Verdict::slower;
  }
  return test;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::same:
      return "no difference";
    case Verdict::too_few:
      return "too few runs";
  }
  return "?";
}

std::vector<std::string> differences(const RecordedRun& a, const RecordedRun& b) {
  std::vector<std::string> out;
  auto look = [&](const char* what, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b) out.push_back(fmt::format("{}: {} against {}", what, in_a, in_b));
  };
  auto budget = [](uint64_t bytes) { return bytes == 0 ? std::string("none") : format_bytes(bytes); };
  look("model", a.model, b.model);
  look("CPU", a.cpu, b.cpu);
  look("numerics", a.numerics, b.numerics);
  look("keys and values", a.kv_type, b.kv_type);
  look("budget", budget(a.memory_budget), budget(b.memory_budget));
  return out;
}

RunComparison compare_runs(const RecordedRun& a, const RecordedRun& b) {
  RunComparison out;
  for (const BenchSeries& series : a.series) {
    if (const BenchSeries* other = find(b, series)) {
      out.tests.push_back(compared(series, *other));
    } else {
      out.only_a.push_back(series);
    }
  }
  for (const BenchSeries& series : b.series) {
    if (find(a, series) == nullptr) out.only_b.push_back(series);
  }
  return out;
}

}  // namespace ridge
