// Verdicts follow from figures: each claim with evidence for it, against it, and without any.
#include "claims/verdicts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "claims/claims_report.h"

namespace ridge::test {
namespace {

MachineCase machine_case_of(double pins, double best) {
  MachineCase c{.machine = "m", .model = "llama-3-8b", .paper_model = true, .pinned_at_most = 0.5};
  c.resting = true;
  auto cost = [](double x) { return MethodCost{.dram_bytes = x, .seconds = x, .joules = x}; };
  c.methods = {cost(1), cost(pins), cost(pins), cost(1), cost(best), cost(best)};
  c.serial = cost(1.9);
  c.busiest_s = 1;
  return c;
}

const Claim& claim(const std::vector<Claim>& claims, std::string_view name) {
  for (const Claim& c : claims) {
    if (c.claim == name) return c;
  }
  ADD_FAILURE() << name;
  return claims.front();
}

Evidence with_students(double ce_off, double kd_off, double l1_off) {
  Evidence e;
  for (uint64_t seed : {1, 2, 3}) {
    const double noise = 0.001 * static_cast<double>(seed);
    e.students.push_back({StudentKind::ce, seed, 1.0, ce_off, ce_off, 1, 0});
    e.students.push_back({StudentKind::kd, seed, 0.9, kd_off + noise, kd_off + noise, 1, 0});
    e.students.push_back({StudentKind::kd_l1, seed, 0.9, l1_off - noise, l1_off, 0.4, 0.3});
  }
  return e;
}

TEST(Claims, CachingIsJudgedByWhatPinsDo) {
  Evidence e;
  e.cases = {machine_case_of(0.5, 0.4)};
  EXPECT_EQ(claim(judge(e), "bytes from DRAM").verdict, ClaimVerdict::holds);
  e.cases.push_back(machine_case_of(0.99, 0.4));
  EXPECT_EQ(claim(judge(e), "bytes from DRAM").verdict, ClaimVerdict::partly);
  e.cases = {machine_case_of(0.99, 0.4)};
  EXPECT_EQ(claim(judge(e), "time of a token").verdict, ClaimVerdict::otherwise);
  e.cases = {machine_case_of(0.99, 0.9)};
  EXPECT_EQ(claim(judge(e), "energy of a token").verdict, ClaimVerdict::fails);
  EXPECT_EQ(claim(judge(Evidence{}), "bytes from DRAM").verdict, ClaimVerdict::open);
}

TEST(Claims, PrefetchHidesWhatItHides) {
  Evidence e;
  e.cases = {machine_case_of(1, 1)};  // 1.9 → 1, reading takes 1: 90 % are hidden
  EXPECT_EQ(claim(judge(e), "prefetch hides misses").verdict, ClaimVerdict::holds);
  e.cases.back().serial.seconds = 1.1;
  EXPECT_EQ(claim(judge(e), "prefetch hides misses").verdict, ClaimVerdict::partly);
  e.cases.back().serial.seconds = 1;
  EXPECT_EQ(claim(judge(e), "prefetch hides misses").verdict, ClaimVerdict::fails);
}

TEST(Claims, PatternsWantMoreThanChance) {
  EXPECT_EQ(claim(judge(with_students(0.5, 0.7, 0.9)), "distillation fixes patterns").verdict, ClaimVerdict::holds);
  EXPECT_EQ(claim(judge(with_students(0.5, 0.5, 0.9)), "distillation fixes patterns").verdict, ClaimVerdict::otherwise);
  EXPECT_EQ(claim(judge(with_students(0.5, 0.5, 0.5)), "distillation fixes patterns").verdict, ClaimVerdict::fails);
}

TEST(Claims, BitsAndEnergyAndPolicies) {
  Evidence e;
  e.bits = {{"a", 1, 1.0, 1.0, 1.02}, {"b", 1, 1.0, 1.0, 1.021}};
  EXPECT_EQ(claim(judge(e), "loss of quality: 4 bit").verdict, ClaimVerdict::holds);
  e.bits = {{"a", 1, 1.0, 1.0, 1.2}, {"b", 1, 1.0, 1.0, 1.201}};
  EXPECT_EQ(claim(judge(e), "loss of quality: 4 bit").verdict, ClaimVerdict::fails);
  e.ratios = {{"m", "SRAM", 1, 20}, {"m", "small SRAM", 1, 120}};
  EXPECT_EQ(claim(judge(e), "energy: DRAM = 100 × SRAM").verdict, ClaimVerdict::partly);
  e.policies = {"lru", "lfu", "pin-worth", "miss-cost", "importance"};
  e.hits = {{StudentKind::kd_l1, 1, 0.25, {0, 0.3, 0.5, 0.4, 0.5}}};
  EXPECT_EQ(claim(judge(e), "importance-weighted LRU wins").verdict, ClaimVerdict::otherwise);
  e.hits = {{StudentKind::kd_l1, 1, 0.25, {0, 0.3, 0.5, 0.6, 0.5}}};
  EXPECT_EQ(claim(judge(e), "importance-weighted LRU wins").verdict, ClaimVerdict::holds);
}

TEST(Claims, EstimatesAreThoseOfStudent) {
  const Estimate e = estimate({1, 2, 3});
  EXPECT_DOUBLE_EQ(e.mean, 2);
  EXPECT_NEAR(e.half, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(estimate({5}).half, 0);
}

TEST(Claims, EveryReportHasEveryClaim) {
  Evidence e = with_students(0.5, 0.5, 0.9);
  e.cases = {machine_case_of(0.99, 0.4)};
  e.cases.back().machine = "a <machine>";
  e.policies = {"lru", "lfu", "pin-worth", "miss-cost", "importance", "belady"};
  e.hits = {{StudentKind::kd_l1, 1, 0.25, {0, 0.3, 0.5, 0.4, 0.5, 0.6}}};
  const std::string text = claims_text(e), html = claims_html(e, {.version = "1", .command = "ridge claims"});
  const auto json = claims_json(e);
  ASSERT_EQ(json["claims"].size(), 8u);
  for (const auto& c : json["claims"]) {
    EXPECT_NE(text.find(c["claim"].get<std::string>()), std::string::npos);
    EXPECT_NE(html.find(c["claim"].get<std::string>()), std::string::npos);
  }
  EXPECT_EQ(html.find("<machine>"), std::string::npos);
  EXPECT_EQ(json["machines"][0]["methods"].size(), kMethods);
  e.cases.back().resting = false;
  EXPECT_EQ(claims_json(e)["machines"][0]["methods"].size(), kMethods - 2);
}

}  // namespace
}  // namespace ridge::test
