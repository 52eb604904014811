// The compatibility mode against the figures that its facts name: what RooflineBench's plots show, and what the same
// measurements mean physically.
#include "analyze/paper_compat.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridge {
namespace {

enum { kSiso, kLiso, kSilo, kLilo };

const PaperRow& m1(const char* model, const char* type = "F16") { return *find_paper_row("M1 Pro", model, type); }

// The value rounded to as many significant digits as the printed one has.
double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

TEST(PaperCompat, QwenOnTheM1ProIsWhereThePlotsShowIt) {
  struct {
    int scenario;
    double oi, ops_per_s;
  } const printed[] = {{kSiso, 0.42, 1.4e9}, {kLiso, 18, 6.1e10}, {kSilo, 0.012, 4.1e7}, {kLilo, 1.2, 4.1e9}};
  for (const auto& p : printed) {
    const CompatPoint c = compat_point(m1("qwen2.5-1.5b"), static_cast<size_t>(p.scenario));
    EXPECT_DOUBLE_EQ(rounded(c.oi, 2), p.oi) << p.scenario << ": " << c.oi;
    EXPECT_DOUBLE_EQ(rounded(c.ops_per_s, 2), p.ops_per_s) << p.scenario << ": " << c.ops_per_s;
    EXPECT_NEAR(c.roof_share, 0.028, 0.0006);  // the same in all four
    EXPECT_NEAR(c.ops_per_s / c.oi, c.peak_bytes, 1e-6 * c.peak_bytes);
  }
}

TEST(PaperCompat, PlmOnTheM1ProIsWhereThePlotsShowIt) {
  const PaperRow& row = m1("plm-1.8b");
  EXPECT_DOUBLE_EQ(rounded(compat_point(row, kLiso).ops_per_s, 3), 1.25e11);
  EXPECT_DOUBLE_EQ(rounded(compat_point(row, kSilo).ops_per_s, 3), 1.24e8);
  EXPECT_DOUBLE_EQ(rounded(compat_point(row, kSiso).ops_per_s, 2), 4.8e9);
  EXPECT_DOUBLE_EQ(rounded(compat_point(row, kLilo).ops_per_s, 2), 7.6e9);
}

TEST(PaperCompat, EveryPointOfThePlottedModelIsInsideThePlot) {
  struct {
    int scenario;
    double oi_low, oi_high, most;
  } const ranges[] = {
      {kLiso, 10, 60, 8e10}, {kSiso, 0.2, 1, 1.75e9}, {kLilo, 0.5, 3.5, 5e9}, {kSilo, 0.005, 0.035, 5e7}};
  for (const auto& r : ranges) {
    const CompatPoint c = compat_point(m1("qwen2.5-1.5b"), static_cast<size_t>(r.scenario));
    EXPECT_GE(c.oi, r.oi_low);
    EXPECT_LE(c.oi, r.oi_high);
    EXPECT_LE(c.ops_per_s, r.most);
  }
}

TEST(PaperCompat, MultiplyAddsOfALayer) {
  auto linear = [](const char* name, CompatRule rule) {
    return compat_layer_ops(*find_shape(name), 1, rule).linear * 1e-6;
  };
  EXPECT_NEAR(linear("plm-1.8b", CompatRule::code), 20.05, 0.005);
  EXPECT_NEAR(linear("plm-1.8b", CompatRule::table), 13.76, 0.005);
  EXPECT_NEAR(linear("smollm2-1.7b", CompatRule::code), 16.78, 0.005);
  EXPECT_NEAR(linear("llama-3.2-1b", CompatRule::code), 9.44, 0.005);
  EXPECT_NEAR(linear("llama-3.2-1b", CompatRule::table), 10.49, 0.005);
  EXPECT_NEAR(linear("qwen2.5-1.5b", CompatRule::code), 5.11, 0.005);
  auto attention = [](const char* name) { return compat_layer_ops(*find_shape(name), 1).attention; };
  EXPECT_EQ(attention("plm-1.8b"), 5120);
  EXPECT_EQ(attention("smollm2-1.7b"), 4096);
  EXPECT_EQ(attention("llama-3.2-1b"), 4096);
  EXPECT_EQ(attention("qwen2.5-1.5b"), 3072);
  EXPECT_EQ(compat_layer_ops(*find_shape("plm-1.8b"), 1).cache, 576);
}

TEST(PaperCompat, ThePeakOverDepthIsAlgebra) {
  const PaperRow& row = m1("qwen2.5-1.5b");
  const DepthPeak liso = depth_peak(row, kLiso), siso = depth_peak(row, kSiso);
  EXPECT_NEAR(liso.layers, 4.5, 0.5);
  EXPECT_NEAR(siso.layers, 7, 0.5);
  for (const DepthPeak& d : {liso, siso}) {
    EXPECT_GT(d.oi_at(d.layers, 1), d.oi_at(d.layers * 0.9, 1));
    EXPECT_GT(d.oi_at(d.layers, 1), d.oi_at(d.layers * 1.1, 1));
  }
  // The formula over depth is that of the points: at 28 layers it gives the point.
  const double ops = compat_layer_ops(shape_of(row), 4096).sum();
  EXPECT_NEAR(liso.oi_at(28, ops) / compat_point(row, kLiso).oi, 1, 0.01);
  // Physically nothing peaks.
  for (uint32_t layers : {1u, 4u, 8u, 28u, 64u}) EXPECT_NEAR(physical_decode_oi(row, layers), 1.0, 0.03);
}

TEST(PaperCompat, PhysicalValuesOfTheSameMeasurements) {
  const PhysicalPoint siso = physical_point(m1("qwen2.5-1.5b"), kSiso);
  EXPECT_NEAR(siso.decode_oi, 1.0, 0.02);
  EXPECT_NEAR(siso.decode_ops_per_s, 154e9, 2e9);
  EXPECT_NEAR(siso.decode_bytes_per_s, 154e9, 2e9);  // above the paper's 120 GB/s
  EXPECT_NEAR(siso.prefill_ops_per_s, 3.7e12, 0.1e12);
  // What the code leaves out of the prompt's work.
  const PhysicalPoint liso = physical_point(m1("qwen2.5-1.5b"), kLiso);
  EXPECT_NEAR(siso.prefill_ops / compat_point(m1("qwen2.5-1.5b"), kSiso).ops, 17, 0.5);
  EXPECT_NEAR(liso.prefill_ops / compat_point(m1("qwen2.5-1.5b"), kLiso).ops, 6, 0.2);
  // 20 tok/s of 0.53 GB: above the paper's 3.98 GB/s for the Pi.
  const PhysicalPoint pi = physical_point(*find_paper_row("Raspberry Pi 5", "qwen2.5-0.5b", "Q8_0"), kSiso);
  EXPECT_NEAR(pi.decode_bytes_per_s, 10.6e9, 0.2e9);
  EXPECT_GT(pi.decode_bytes_per_s, paper_device("Raspberry Pi 5").memory_measured_gb_per_s * 1e9);
  // FP32 ceilings broken by prefill on two GPUs.
  const PhysicalPoint ti = physical_point(*find_paper_row("RTX 3070 Ti Laptop", "qwen2.5-1.5b", "Q8_0"), kLiso);
  EXPECT_GT(ti.prefill_ops_per_s, paper_device("RTX 3070 Ti Laptop").f32_measured_tflops * 1e12);
  const PhysicalPoint orin = physical_point(*find_paper_row("Jetson Orin Nano Super", "qwen2.5-1.5b", "Q8_0"), kSiso);
  EXPECT_NEAR(orin.prefill_ops_per_s, 3.2e12, 0.1e12);
}

TEST(PaperCompat, PhiIsTheDistanceToThePeakToMachinePrecision) {
  for (const PaperRow& row : paper_rows()) {
    const double peak = paper_device(row.device).f32_measured_tflops * 1e12;
    for (size_t s = 0; s < kPaperScenarios; ++s) {
      const CompatPoint c = compat_point(row, s);
      EXPECT_DOUBLE_EQ(c.phi, std::abs(peak - c.ops_per_s)) << row.model << " " << s;
    }
  }
}

TEST(PaperCompat, RidgesOfTheTableOfHardware) {
  for (const PaperDevice& d : paper_devices()) {
    EXPECT_NEAR(d.f32_tflops * 1e3 / d.memory_gb_per_s, d.ridge, 0.021) << d.name;
    // The second column of ridges is up to 2 % off the table's own figures.
    EXPECT_NEAR(d.f32_measured_tflops * 1e3 / d.memory_measured_gb_per_s / d.ridge_measured, 1, 0.02) << d.name;
  }
}

TEST(PaperCompat, SixInsightsEachWithBothFiguresAndAVerdict) {
  const std::vector<Insight> insights = paper_insights();
  ASSERT_EQ(insights.size(), 6u);
  const char* verdicts[] = {"artefact", "artefact", "holds", "reversed", "holds", "not shown"};
  for (size_t i = 0; i < insights.size(); ++i) {
    EXPECT_EQ(insights[i].verdict, verdicts[i]);
    EXPECT_FALSE(insights[i].compat.empty() || insights[i].physical.empty() || insights[i].why.empty());
  }
  // MLA over MHA over GQA in the code's intensity, and the slowest of the three in the paper's own tokens per second.
  const PaperRow &mla = m1("plm-1.8b"), &mha = m1("smollm2-1.7b"), &gqa = m1("qwen2.5-1.5b");
  EXPECT_GT(compat_point(mla, kLiso).oi, compat_point(mha, kLiso).oi);
  EXPECT_GT(compat_point(mha, kLiso).oi, compat_point(gqa, kLiso).oi);
  EXPECT_LT(mla.rates[kLiso].decode, mha.rates[kLiso].decode);
  EXPECT_LT(mha.rates[kLiso].decode, gqa.rates[kLiso].decode);
}

// The columns of points that were computed or measured here: the formulas of the paper's rows, with these points'
// rates.
TEST(PaperCompat, PointsOfOurOwnGetTheSameColumns) {
  const PaperRow& row = m1("qwen2.5-1.5b");
  const ModelShape shape = shape_of(row);
  const auto model = make_shape_model(shape);
  ASSERT_TRUE(model.ok());
  RooflineReport report;
  auto add = [&](BenchTest phase, const Scenario& s, double tokens_per_s) {
    RooflinePoint p;
    p.scenario = s.name;
    p.prompt = s.prompt;
    p.answer = s.answer;
    p.phase = phase;
    p.tokens = phase == BenchTest::prefill ? s.prompt : s.answer;
    p.seconds = static_cast<double>(p.tokens) / tokens_per_s;
    p.work.cost = {.memory_bytes = 4'000'000'000, .flops = 8'000'000'000};
    p.roofs = {.read_gb_per_s = paper_device("M1 Pro").memory_measured_gb_per_s,
               .float_gops = paper_device("M1 Pro").f32_measured_tflops * 1e3};
    report.points.push_back(p);
  };
  const size_t scenarios[] = {kSiso, kLiso};
  for (size_t s : scenarios) {
    add(BenchTest::prefill, paper_scenario(s), row.rates[s].prefill);
    add(BenchTest::decode, paper_scenario(s), row.rates[s].decode);
  }
  add(BenchTest::prefill, paper_scenario(kLilo), 1000);  // without its decode there is no process to time
  add_compat_rows(*model.value(), shape, 0, report);
  ASSERT_EQ(report.compat.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const CompatPoint mine = report.compat[i].compat, papers = compat_point(row, scenarios[i]);
    EXPECT_EQ(report.compat[i].scenario, paper_scenario(scenarios[i]).name);
    EXPECT_NEAR(mine.oi / papers.oi, 1, 1e-9);
    EXPECT_NEAR(mine.ops_per_s / papers.ops_per_s, 1, 1e-9);
    EXPECT_NEAR(mine.roof_share / papers.roof_share, 1, 1e-9);
    EXPECT_NEAR(mine.phi / papers.phi, 1, 1e-9);
    EXPECT_DOUBLE_EQ(report.compat[i].physical.decode_oi, 2);
  }
  add_compat_rows(*model.value(), shape, report.points.size(), report);
  EXPECT_EQ(report.compat.size(), 2u);  // from the point that is named
}

}  // namespace
}  // namespace ridge
