// Devices of contexts: the published figures of the Anima profile, perturbed profiles against closed forms, and the
// pipeline of equal blocks.
#include "sim/lifecycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "program/spectrum_steps.h"
#include "sim/device_study.h"

namespace ridge::sim {
namespace {

ContextDevice anima() {
  auto device = load_context_device(RIDGE_TEST_DATA "/../../profiles/rk3588-anima.toml");
  EXPECT_TRUE(device.ok()) << device.error().message;
  return device.ok() ? device.value() : ContextDevice{};
}

const StudyRow& row(const DeviceStudy& study, std::string_view begin) {
  for (const StudyRow& r : study.document) {
    if (r.what.starts_with(begin)) return r;
  }
  ADD_FAILURE() << begin << " is no line of the document";
  return study.document.front();
}

TEST(Spectrum, ComputesThirteenOfTwentyEight) {
  auto pattern = [](uint32_t steps) {
    std::string text;
    for (bool computed : spectrum_steps(steps)) text += computed ? 'X' : '.';
    return text;
  };
  EXPECT_EQ(pattern(28), "XXXX.X.X..X..X...X...X...XXX");
  auto computed = [&](uint32_t steps) {
    const std::string text = pattern(steps);
    return std::count(text.begin(), text.end(), 'X');
  };
  EXPECT_EQ(computed(20), 11);
  EXPECT_EQ(computed(30), 14);
  EXPECT_EQ(computed(50), 19);
}

TEST(Anima, TheDocumentsTable) {
  const DeviceStudy study = study_device(anima(), {.computed_steps = 13});
  EXPECT_NEAR(row(study, "loads, inits and releases").computed, 31.708, 0.001);
  EXPECT_EQ(row(study, "calls of an image").computed, 1092);
  EXPECT_EQ(row(study, "hits of LRU").computed, 0);
  EXPECT_NEAR(row(study, "lifecycles of an image").computed, 412.2, 0.05);
  EXPECT_NEAR(row(study, "all resident saves").computed, 380.5, 0.05);
  EXPECT_NEAR(row(study, "image, load-run-release").computed, 1713.78, 0.005);
  EXPECT_NEAR(row(study, "image, all resident").computed, 1333.28, 0.005);
  EXPECT_NEAR(row(study, "pins of contexts 0 to 15").computed, 72.4, 0.1);
  EXPECT_NEAR(row(study, "device mappings").computed, 7.1, 0.05);
  EXPECT_NEAR(row(study, "added PSS of all 84").computed, 11.3, 0.05);
  // Every published figure stands beside one that was computed.
  size_t published = 0;
  for (const StudyRow& r : study.document) {
    if (!r.published) continue;
    ++published;
    EXPECT_NEAR(r.computed, *r.published, std::max(0.06, *r.published * 0.03)) << r.what;
  }
  EXPECT_EQ(published, 11u);
}

TEST(Anima, WhatTheDocumentDidNotTry) {
  const ContextDevice device = anima();
  const LadderFit fit = fit_ladder(device);
  const double none = run_lifecycle(device, fit, {.passes = 13}).image_s(device);
  auto saved = [&](const LifecycleOptions& options) {
    return none - run_lifecycle(device, fit, options).image_s(device);
  };
  // Twenty self-attention contexts: 12 passes of 20 lifecycles.
  EXPECT_NEAR(saved({.passes = 13, .policy = "pin-worth", .pinned = 20}), 12 * 20 * device.contexts[0].lifecycle_s(),
              1e-6);
  EXPECT_NEAR(saved({.passes = 13, .policy = "pin-worth", .pinned = 20}), 101.5, 0.1);
  const double two = saved({.passes = 13, .contexts = 2}), three = saved({.passes = 13, .contexts = 3});
  const double four = saved({.passes = 13, .contexts = 4}), most = 13 * 31.708;
  EXPECT_GT(three, 0.97 * most);
  EXPECT_GE(three, two);
  EXPECT_GE(four, three - 1e-6);
  EXPECT_LE(four, most);
  // With a lock, initialising hides only behind the host's work.
  const double locked = saved({.passes = 13, .contexts = 3, .lock = DriverLock::init});
  EXPECT_LT(locked, three);
  EXPECT_GT(locked, 13 * (13.96 + 4.84) * 0.9);
  EXPECT_GE(locked, saved({.passes = 13, .contexts = 3, .lock = DriverLock::init_and_release}));
  // Two images have twice the host's work to hide it behind.
  EXPECT_NEAR(saved({.passes = 13, .contexts = 2, .lock = DriverLock::init, .images = 2}), most, 2);
  // Two images share each lifecycle.
  const LifecycleRun pair = run_lifecycle(device, fit, {.passes = 13, .images = 2});
  EXPECT_NEAR(pair.image_s(device), none - most / 2, 0.01);
}

// A profile that differs must give what the closed forms say of it: nothing is taken from the published figures.
TEST(Anima, APerturbedProfileFollowsTheClosedForm) {
  ContextDevice device = anima();
  for (Context& c : device.contexts) c.init_s *= 2;
  device.contexts.resize(60);
  const uint32_t passes = 10;
  const DeviceStudy study = study_device(device, {.computed_steps = passes});
  const double life = device.pass_lifecycle_s();
  EXPECT_NEAR(life, (13.9635 + 2 * 12.9033 + 4.8412) * 60 / 84, 1e-3);
  const double work = device.pass_run_s() + device.pass_host_s();
  EXPECT_NEAR(row(study, "loads, inits and releases").computed, life, 1e-9);
  EXPECT_EQ(row(study, "calls of an image").computed, 600);
  EXPECT_EQ(row(study, "hits of LRU, any capacity below 60").computed, 0);
  EXPECT_NEAR(row(study, "lifecycles of an image").computed, life * passes, 1e-6);
  EXPECT_NEAR(row(study, "all resident saves").computed, life * (passes - 1), 1e-6);
  EXPECT_NEAR(row(study, "image, load-run-release").computed, device.other_s + passes * (work + life), 1e-6);
  EXPECT_NEAR(row(study, "image, all resident").computed, device.other_s + passes * work + life, 1e-6);
  EXPECT_NEAR(row(study, "pins of contexts 0 to 15").computed, 16.0 / 60 * life * (passes - 1), 1e-6);
  EXPECT_NEAR(row(study, "device mappings of all 60").computed, 1.357 * 60 / 16, 0.001);
  EXPECT_NEAR(row(study, "added PSS of all 60").computed * 1024, 2420.9 + (2420.9 - 2144.4) / 2 * 42, 1e-6);
  for (const StudyRun& run : study.runs) {
    EXPECT_LE(run.image_s, device.other_s + passes * (work + life) + 1e-6) << run.what;
    EXPECT_GE(run.image_s, device.other_s + passes * work - 1e-6) << run.what;
  }
}

TEST(Anima, TheStudysLockedRunsKeepToTheirBound) {
  const ContextDevice device = anima();
  const LadderFit fit = fit_ladder(device);
  for (DriverLock lock : {DriverLock::none, DriverLock::init, DriverLock::init_and_release}) {
    for (uint32_t contexts : {1u, 2u, 3u, 4u, 8u}) {
      const LifecycleRun run = run_lifecycle(device, fit, {.passes = 5, .contexts = contexts, .lock = lock});
      EXPECT_GE(run.passes_s, 5 * pass_bound_s(device, lock) - 1e-9);
      EXPECT_LE(run.passes_s, 5 * (device.pass_run_s() + device.pass_host_s() + device.pass_lifecycle_s()) + 1e-9);
    }
  }
}

// Equal contexts whose load takes r and whose run takes c: with two and more the slower of both sets the pace.
ContextDevice equal_contexts(uint32_t n, double load, double run) {
  ContextDevice device;
  device.contexts.assign(n, {.name = "c", .weight_mib = 1, .load_s = load, .run_s = run});
  device.ladder = {{.contexts = 1, .added_mib = 1}, {.contexts = 2, .added_mib = 2}};
  return device;
}

// Seconds of a pass once all are alike: N = 84 blocks, c = 1, C of them in memory, d of these read ahead. The figures
// are those of an independent simulation of the same pipeline: strided pins with two slots reach max(Σ c, Σ r) exactly,
// leading pins do not, one slot does not, and eight slots lose pins.
TEST(Pipeline, StridedPinsWithTwoSlotsReachTheBound) {
  auto pass = [](double load, uint32_t total, uint32_t slots, std::string_view policy) {
    const ContextDevice device = equal_contexts(84, load, 1);
    LadderFit fit = fit_ladder(device);
    const LifecycleOptions few{.passes = 10, .policy = policy, .pinned = total - slots, .contexts = slots};
    LifecycleOptions more = few;
    more.passes = 20;
    return (run_lifecycle(device, fit, more).passes_s - run_lifecycle(device, fit, few).passes_s) / 10;
  };
  EXPECT_NEAR(pass(1.5, 42, 2, "pin-strided"), 84, 1e-6);
  EXPECT_NEAR(pass(1.5, 42, 2, "pin-leading"), 105, 1.01);
  EXPECT_NEAR(pass(2, 60, 2, "pin-strided"), 84, 1e-6);
  EXPECT_NEAR(pass(2, 60, 2, "pin-leading"), 108, 1.01);
  EXPECT_NEAR(pass(4, 42, 2, "pin-strided"), 176, 1e-6);
  EXPECT_NEAR(pass(4, 42, 2, "pin-leading"), 210, 1.01);
  EXPECT_NEAR(pass(4, 42, 8, "pin-strided"), 200, 1e-6);
}

// Without pins and with one slot: Σ (c + r); LRU likewise, whatever its capacity.
TEST(Pipeline, LruIsAsSlowAsNoCache) {
  const ContextDevice device = equal_contexts(84, 4, 1);
  const LadderFit fit = fit_ladder(device);
  for (uint32_t capacity : {1u, 42u, 83u}) {
    const LifecycleRun run = run_lifecycle(device, fit, {.passes = 3, .policy = "lru", .pinned = capacity});
    EXPECT_EQ(run.hits, 0u);
    EXPECT_NEAR(run.passes_s, 3 * 420, 1e-6) << capacity;
  }
}

TEST(Lifecycle, MemoryIsThatOfWhatIsThereAtOnce) {
  const ContextDevice device = anima();
  const LadderFit fit = fit_ladder(device);
  auto context = [&](uint32_t i) { return fit.context_mib(device.contexts[i].weight_mib); };
  EXPECT_NEAR(run_lifecycle(device, fit, {.passes = 2}).peak_mib, fit.base_mib + context(2), 0.01);
  EXPECT_NEAR(run_lifecycle(device, fit, {.passes = 2, .contexts = 2}).peak_mib, fit.base_mib + context(2) + context(0),
              0.01);
  double all = fit.base_mib;
  for (uint32_t i = 0; i < 84; ++i) all += context(i);
  EXPECT_NEAR(run_lifecycle(device, fit, {.passes = 2, .policy = "lru", .pinned = 84}).peak_mib, all, 0.01);
}

TEST(Lifecycle, MergedContextsPayTheFixedPartOnce) {
  const ContextDevice device = anima();
  const double fixed = device.fixed_s();
  EXPECT_GT(fixed, 0);
  const ContextDevice three = merged(device, 3);
  ASSERT_EQ(three.contexts.size(), 28u);
  EXPECT_EQ(three.contexts[0].name, "blk.0.self+blk.0.cross+blk.0.ffn");
  EXPECT_NEAR(three.contexts[0].weight_mib, 120, 1e-9);
  EXPECT_NEAR(three.pass_lifecycle_s(), device.pass_lifecycle_s() - 56 * fixed, 1e-9);
  EXPECT_NEAR(three.pass_run_s(), device.pass_run_s(), 1e-9);
  EXPECT_NEAR(three.pass_host_s(), device.pass_host_s(), 1e-9);
  EXPECT_EQ(merged(device, 5).contexts.size(), 17u);  // the last one is of four
  const ContextDevice one = merged(device, 1);
  EXPECT_NEAR(one.pass_lifecycle_s(), device.pass_lifecycle_s(), 1e-9);
  // Fewer contexts: less memory for everything resident, by what each takes whatever its weights.
  const LadderFit fit = fit_ladder(device);
  const double whole = run_lifecycle(device, fit, {.passes = 2, .policy = "lru", .pinned = 84}).peak_mib;
  const double fused = run_lifecycle(three, fit, {.passes = 2, .policy = "lru", .pinned = 28}).peak_mib;
  EXPECT_NEAR(whole - fused, 56 * fit.per_context_mib, 0.01);
}

TEST(Ladder, TheFitFindsWhatMadeTheRungs) {
  ContextDevice device = anima();
  auto fill = [&](double base, double each, double per_mib) {
    for (auto* points : {&device.ladder, &device.pools}) {
      for (LadderPoint& p : *points) {
        double weights = 0;
        for (uint32_t i = 0; i < p.contexts; ++i) weights += device.contexts[i].weight_mib;
        p.added_mib = base + each * p.contexts + per_mib * weights;
      }
    }
  };
  fill(20, 60, 2);
  const LadderFit fit = fit_ladder(device);
  EXPECT_TRUE(fit.by_weights);
  EXPECT_NEAR(fit.base_mib, 20, 1e-6);
  EXPECT_NEAR(fit.per_context_mib, 60, 1e-6);
  EXPECT_NEAR(fit.per_weight_mib, 2, 1e-8);
  EXPECT_NEAR(fit.residual_mib, 0, 1e-6);
  // One kind alone: count and weights are the same thing.
  for (Context& c : device.contexts) c.weight_mib = 40;
  fill(20, 60, 2);
  const LadderFit alone = fit_ladder(device);
  EXPECT_FALSE(alone.by_weights);
  EXPECT_NEAR(alone.per_context_mib, 140, 1e-6);
}

TEST(Ladder, ThePublishedRungsAreNearTheFit) {
  const ContextDevice device = anima();
  const LadderFit fit = fit_ladder(device);
  EXPECT_LT(fit.residual_mib, 40);
  double weights = 0;
  uint32_t next = 0;
  for (const LadderPoint& p : device.ladder) {
    for (; next < p.contexts; ++next) weights += device.contexts[next].weight_mib;
    EXPECT_NEAR(fit.mib(p.contexts, weights), p.added_mib, *fit.interval(p.contexts, weights)) << p.contexts;
  }
  // Held for 30 s, 16 contexts are beyond the gate, 12 are not.
  EXPECT_GT(gate_mib(device), 1612.8);
  EXPECT_LT(gate_mib(device), 2144.4);
}

TEST(DevicePlan, TheFastestWithinTheMemory) {
  const ContextDevice device = anima();
  for (double budget : {200.0, 300.0, 500.0, 1000.0, 1861.0, 20'000.0}) {
    auto plan = plan_device(device, {.computed_steps = 13, .budget_mib = budget});
    if (budget < 250) {
      ASSERT_FALSE(plan.ok());
      EXPECT_EQ(plan.error().code, ErrorCode::does_not_fit);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().best.added_mib, budget);
    for (const StudyRun& run : plan.value().considered) {
      EXPECT_LE(run.added_mib, budget) << run.what;
      EXPECT_LE(plan.value().best.image_s, run.image_s * 1.005 + 1e-9) << run.what;
    }
  }
  // A driver with a lock leaves something for pins to save.
  auto locked = plan_device(device, {.computed_steps = 13, .lock = DriverLock::init_and_release});
  ASSERT_TRUE(locked.ok());
  EXPECT_FALSE(locked.value().pinned.empty());
}

std::string profile_text() {
  std::ifstream in(RIDGE_TEST_DATA "/../../profiles/rk3588-anima.toml");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string path = ::testing::TempDir() + "/changed.toml";
  std::ofstream(path) << text;
  auto device = load_context_device(path);
  EXPECT_FALSE(device.ok()) << to;
  if (device.ok()) return "";
  EXPECT_EQ(device.error().code, ErrorCode::bad_input);
  EXPECT_EQ(device.error().message.find('\n'), std::string::npos);
  return device.error().message;
}

TEST(ContextDevice, RefusesWhatItDoesNotUnderstand) {
  const std::string text = profile_text();
  auto says = [&](const char* from, const char* to, const char* part) {
    const std::string message = refusal(text, from, to);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says("weight_mib = 32.0", "weight_mb = 32.0", "'kinds.self.weight_mib' is missing");
  says("lifecycle_s = 0.423", "lifecycle_s = -0.423", "'kinds.self.lifecycle_s' is wrong: expected a number above 0");
  says("lifecycle_s = 0.423", "lifecycle_s = \"fast\"", "line ");
  says("host_s = 12.482", "host_s = 12.482\nhosts = 1",
       "'image.hosts' is not known: expected one of host_s, other_s, steps");
  says("layers = 28", "layers = 0", "a whole number from 1");
  says("layers = 28", "layers = 28.5", "a whole number from 1");
  says("layers = 28", "layers = 99999", "at most 100000 contexts");
  says("order = [\"self\", \"cross\", \"ffn\"]", "order = [\"self\", \"mlp\"]", "'kinds.mlp' is missing");
  says("order = [\"self\", \"cross\", \"ffn\"]", "order = [\"self\", \"cross\"]", "'kinds.ffn' is not known");
  says("{ contexts = 4, pss_mib = 765.6", "{ contexts = 1, pss_mib = 765.6", "'memory.ladder[2].contexts' is wrong");
  says("{ contexts = 18, pss", "{ contexts = 85, pss", "from 1 to 84");
  says("kind = \"contexts\"", "kind = \"host\"", "expected \"contexts\"");
  says("format = 1", "format = 2", "update ridge");
  says("swap_mib = 16.0", "swap_mib = nan", "'gate.swap_mib' is wrong");
  says("\n[published]", "\n[published]\nhits = 3", "'published.hits' is not known");
  says("[gate]", "[gate", "not TOML");
  says("[image]", "[images]", "'image' is missing");
  EXPECT_FALSE(load_context_device("/nowhere/x.toml").ok());
}

}  // namespace
}  // namespace ridge::sim
