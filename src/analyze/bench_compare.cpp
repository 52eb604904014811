#include "analyze/bench_compare.h"

#include <algorithm>

#include "analyze/bench_stats.h"

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
