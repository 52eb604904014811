#include "analyze/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/roofline_analytic.h"
#include "analyze/roofline_points.h"
#include "analyze/shape_model.h"

namespace ridge {
namespace {

// 100 GB/s and 1,000 Gop/s of floats: the ridge is at 10 operations per byte.
constexpr MachineRoofs kRoofs{.read_gb_per_s = 100, .int8_gops = 4000, .float_gops = 1000};

Work floats(uint64_t ops, uint64_t bytes) { return {{.memory_bytes = bytes, .flops = ops}, 0}; }

TEST(Roofline, LeftOfTheRidgeMemoryBinds) {
  // 2 operations per byte, in twice the time that memory needs.
  const Placed p = place(floats(2'000'000'000, 1'000'000'000), 0.02, kRoofs);
  EXPECT_DOUBLE_EQ(p.oi, 2);
  EXPECT_DOUBLE_EQ(p.ridge, 10);
  EXPECT_DOUBLE_EQ(p.ops_per_s, 100e9);
  EXPECT_EQ(p.roof, Roof::memory);
  EXPECT_DOUBLE_EQ(p.roof_ops_per_s, 200e9);
  EXPECT_DOUBLE_EQ(p.eta, 0.5);
  EXPECT_DOUBLE_EQ(p.mbu, 0.5);
  EXPECT_DOUBLE_EQ(p.mfu, 100.0 / 4000);
  EXPECT_NEAR(p.phi, std::hypot(std::log2(5), std::log2(10)), 1e-12);
  EXPECT_NEAR(p.phi_normalised, std::hypot(0.8, 0.9), 1e-12);
}

TEST(Roofline, RightOfTheRidgeTheDistanceIsVertical) {
  const Placed p = place(floats(20'000'000'000, 1'000'000'000), 0.04, kRoofs);
  EXPECT_EQ(p.roof, Roof::floats);
  EXPECT_DOUBLE_EQ(p.eta, 0.5);
  EXPECT_DOUBLE_EQ(p.phi, 1);
  EXPECT_DOUBLE_EQ(p.phi_normalised, 0.5);
}

TEST(Roofline, APointAtTheRidgeHasNoDistance) {
  const Placed p = place(floats(10'000'000'000, 1'000'000'000), 0.01, kRoofs);
  EXPECT_NEAR(p.phi, 0, 1e-12);
  EXPECT_NEAR(p.phi_normalised, 0, 1e-12);
  EXPECT_DOUBLE_EQ(p.eta, 1);
}

TEST(Roofline, TimesOfIntegersAndFloatsAddUp) {
  const Work work{{.memory_bytes = 1, .flops = 1'000'000'000, .int_ops = 4'000'000'000}, 0};
  const RoofTimes times = roof_times(work, kRoofs);
  EXPECT_DOUBLE_EQ(times.int8_s, 1e-3);
  EXPECT_DOUBLE_EQ(times.float_s, 1e-3);
  EXPECT_DOUBLE_EQ(times.bound_s(), 2e-3);
  EXPECT_DOUBLE_EQ(place(work, 4e-3, kRoofs).peak, 2.5e12);  // of this mix
}

// 1 GB of weights: 10 ms from memory, 20 ms to unpack. Where nothing is known of unpacking it limits nothing.
TEST(Roofline, UnpackingBindsWhatIsSlowerThanMemory) {
  MachineRoofs roofs = kRoofs;
  roofs.format_gb_per_s = 50;
  Work work = floats(2'000'000'000, 1'000'000'000);
  const Placed p = place(work, 0.04, roofs);
  EXPECT_EQ(p.roof, Roof::format);
  EXPECT_DOUBLE_EQ(p.eta, 0.5);
  EXPECT_DOUBLE_EQ(p.roof_ops_per_s, 100e9);
  EXPECT_EQ(place(work, 0.04, kRoofs).roof, Roof::memory);
  // Keys and values are not unpacked.
  work.cost.kv_bytes = 4'000'000'000;
  EXPECT_EQ(place(work, 0.04, roofs).roof, Roof::memory);
  RooflinePoint point{.phase = BenchTest::decode, .depth = 9, .work = floats(2'000'000'000, 1'000'000'000)};
  point.roofs = roofs;
  point.placed = p;
  EXPECT_EQ(describe(point), "decode at depth 9 is bound by unpacking weights: 50 % of 50.0 GB/s");
}

// Two bytes a parameter; the embedding is the head.
TEST(KnownShapes, Fox1HasTheParametersOfItsModelCard) {
  const auto model = make_shape_model(*find_shape("fox-1-1.6b")).value();
  const double parameters = static_cast<double>(model->program({.tokens = 1, .outputs = 1}, {}).memory_bytes()) / 2;
  EXPECT_NEAR(parameters, 1.67e9, 0.01e9);
}

TEST(Roofline, StorageBindsWhatStreams) {
  MachineRoofs roofs = kRoofs;
  roofs.storage_gb_per_s = 2;
  Work work = floats(2'000'000'000, 1'000'000'000);
  work.streamed_bytes = 1e9;
  const Placed p = place(work, 1.0, roofs);
  EXPECT_EQ(p.roof, Roof::storage);
  EXPECT_DOUBLE_EQ(p.eta, 0.5);
}

TEST(Roofline, UnknownRoofsLimitNothing) {
  const Placed p = place(floats(10, 10), 1, {});
  EXPECT_EQ(p.roof, Roof::none);
  EXPECT_EQ(p.eta, 0);
  EXPECT_EQ(place(floats(10, 10), 1, {.read_gb_per_s = 1}).roof, Roof::memory);
  EXPECT_EQ(place({}, 1, kRoofs).roof, Roof::none);
}

TEST(Roofline, OnlyWhatIsAboveTheUpperLimitIsFlagged) {
  const Work work = floats(2'000'000'000, 1'000'000'000);  // 10 ms at 100 GB/s
  EXPECT_FALSE(above_roof(work, 0.0101, kRoofs));
  EXPECT_FALSE(above_roof(work, 0.0099, {.read_gb_per_s = 102, .float_gops = 1020}));
  const auto above = above_roof(work, 0.008, kRoofs);
  ASSERT_TRUE(above);
  EXPECT_DOUBLE_EQ(above->ops_per_s, 250e9);
  EXPECT_DOUBLE_EQ(above->limit_ops_per_s, 200e9);
}

TEST(Scenarios, AreNamedByTheirLengths) {
  const auto all = scenarios({.short_tokens = 10, .long_tokens = 300});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].name, "LISO");
  EXPECT_EQ(all[1].prompt, 300u);
  EXPECT_EQ(all[1].answer, 10u);
  auto picked = pick_scenarios("SILO,siso,silo", {});
  ASSERT_TRUE(picked.ok());
  ASSERT_EQ(picked.value().size(), 2u);
  EXPECT_EQ(picked.value()[0].prompt, 128u);
  EXPECT_EQ(picked.value()[0].answer, 4096u);
  for (const char* wrong : {"", "siso,", "sisi", ",lilo"}) EXPECT_FALSE(pick_scenarios(wrong, {}).ok()) << wrong;
}

TEST(Scenarios, DecodeIsTimedInTheMiddleOfTheAnswer) {
  const PhaseShape p = decode_shape({.name = "SILO", .prompt = 128, .answer = 4096}, 32);
  EXPECT_EQ(p.shape.tokens, 32u);
  EXPECT_EQ(p.middle(), 128u + 4096 / 2);
  EXPECT_EQ(decode_shape({.name = "x", .prompt = 5, .answer = 7}, 32).shape.tokens, 7u);
  EXPECT_EQ(decode_shape({.name = "x", .prompt = 5, .answer = 7}, 32).shape.depth, 5u);
}

RooflinePoint sample_point() {
  RooflinePoint p;
  p.phase = BenchTest::decode;
  p.depth = 128;
  p.level = "DRAM";
  p.work = floats(2'000'000'000, 1'000'000'000);
  p.roofs = {.read_gb_per_s = 16.2, .float_gops = 1000};
  p.seconds = 1 / 16.2 / 0.91;
  p.placed = place(p.work, p.seconds, p.roofs);
  return p;
}

TEST(Sentences, SayWhatBindsAndWhatWouldHelp) {
  RooflinePoint p = sample_point();
  p.advice = Advice{"Q4_K weights", 1.8};
  EXPECT_EQ(describe(p), "decode at depth 128 is bound by DRAM: 91 % of 16.2 GB/s; Q4_K weights would give 1.8 ×");
  p.seconds *= 4;
  p.placed = place(p.work, p.seconds, p.roofs);
  EXPECT_EQ(describe(p),
            "decode at depth 128 is bound by DRAM: 23 % of 16.2 GB/s; 77 % of the time is explained by no roof");
  p.above = AboveRoof{3e9, 2e9};
  EXPECT_NE(describe(p).find("3.00 Gop/s where 2.00 Gop/s is the limit"), std::string::npos);
}

TEST(Sentences, AdviceIsTheRatioOfTheBounds) {
  auto model = make_shape_model(*find_shape("llama-3.2-1b"));
  ASSERT_TRUE(model.ok());
  const Program program = model.value()->program({.tokens = 1, .role = TokenRole::generated}, {});
  const Work work{program.cost(), 0};
  const auto advice = advice_for(work, kRoofs, program, 1, KvType::f16);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->what, "Q4_K weights");
  EXPECT_NEAR(advice->gain, 16 / 4.5, 0.15);  // panels pad a little, and one row of the embedding stays
  // Where computing binds there is none.
  EXPECT_FALSE(advice_for(work, {.read_gb_per_s = 100, .float_gops = 1}, program, 1, KvType::f16));
}

TEST(Analytic, PhasesAreTheSumOfTheirOperators) {
  auto model = make_shape_model(*find_shape("llama-3.2-1b"));
  ASSERT_TRUE(model.ok());
  MachineProfile machine;
  machine.name = "a device";
  EXPECT_FALSE(add_analytic_points(*model.value(), machine, {}, *std::make_unique<RooflineReport>()).ok());
  machine.figures = {{"memory_gb_per_s", 50, FigureStatus::measured, "x"},
                     {"memory_gb_per_s", 100, FigureStatus::published, "x"},
                     {"f32_gops", 1000, FigureStatus::assumed, "x"}};
  RooflineReport report;
  ASSERT_TRUE(add_analytic_points(*model.value(), machine, {.scenarios = scenarios({})}, report).ok());
  double phase = 0, operators = 0;
  int phases = 0;
  for (const RooflinePoint& p : report.points) {
    EXPECT_FALSE(p.measured);
    EXPECT_FALSE(p.above);
    EXPECT_DOUBLE_EQ(p.roofs.read_gb_per_s, 100);  // published before measured
    (p.op == "all" ? phase : operators) += p.seconds;
    phases += p.op == "all";
    if (p.op != "all") {
      EXPECT_DOUBLE_EQ(p.placed.eta, 1);
    }
  }
  EXPECT_EQ(phases, 8);
  // What is left are the norms and sums, which are no operator of their own.
  EXPECT_LE(operators, phase);
  EXPECT_NEAR(operators / phase, 1, 0.01);
  // The same model, another ridge: more compute leaves decode as it is.
  machine.figures.back().value = 100000;
  RooflineReport faster;
  ASSERT_TRUE(add_analytic_points(*model.value(), machine, {.scenarios = scenarios({})}, faster).ok());
  for (size_t i = 0; i < report.points.size(); ++i) {
    if (report.points[i].phase != BenchTest::decode || report.points[i].op != "all") continue;
    EXPECT_NEAR(faster.points[i].seconds / report.points[i].seconds, 1, 0.01);
    EXPECT_LT(faster.points[i].placed.mfu, report.points[i].placed.mfu / 50);
  }
}

}  // namespace
}  // namespace ridge
