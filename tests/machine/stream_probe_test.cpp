#include "machine/stream_probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"
#include "machine/compute_probe.h"
#include "machine/cpu.h"
#include "machine/probe.h"
#include "machine/stream_loop.h"

namespace ridge {
namespace {

Measured measured(double value) { return {value, value * 0.9, value * 1.1, 3}; }

TEST(StreamLoops, DoWhatTheyAreCalled) {
  constexpr size_t kCount = 64;
  alignas(64) double a[kCount], b[kCount], to[kCount + 8] = {};
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<double>(i) + 0.5;
    b[i] = static_cast<double>(i) * 2;
  }
  for (CpuFeatures features : {kNoFeatures, cpu_info().features}) {
    const StreamLoops loops = best_stream_loops(features);
    loops.copy(to, a, kCount);
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(to[i], a[i]);
    loops.triad(to, a, b, kCount);
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(to[i], a[i] + 3 * b[i]);
    if (loops.streaming_copy == nullptr) continue;
    loops.streaming_copy(to, b, kCount);
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(to[i], b[i]);
    EXPECT_EQ(to[kCount], 0);  // and not beyond
  }
}

TEST(StreamProbe, MeasuresEveryKindAtEveryFootprint) {
  StreamPlan plan = stream_plan({.threads = 2, .quick = true, .most_bytes = 2 * kMiB});
  plan.rounds = {.sittings = 2, .samples = 1, .more = 0, .run_time = std::chrono::microseconds(50)};
  Progress bar("", point_count(plan), ProgressUnit::items);
  auto results = measure_streams(plan, bar);
  ASSERT_TRUE(results.ok()) << results.error().message;
  const size_t kinds = best_stream_loops(cpu_info().features).streaming_copy != nullptr ? 3 : 2;
  EXPECT_EQ(results.value().streams.size(), plan.footprints.size() * plan.threads.size() * kinds);
  EXPECT_EQ(results.value().latencies.size(), plan.footprints.size());
  for (const StreamPoint& p : results.value().streams) EXPECT_GT(p.gb_per_s.value, 0);
  for (const LatencyPoint& p : results.value().latencies) {
    EXPECT_GT(p.ns.value, 0);
    EXPECT_LE(p.ns.low, p.ns.value);
    EXPECT_LE(p.ns.value, p.ns.high);
  }
}

TEST(Levels, AreFoundWhereRatesStayAlike) {
  MachineProfile profile;
  const double rates[] = {480, 500, 490, 300, 330, 340, 120, 50, 49, 48};
  uint64_t footprint = 16 * kKiB;
  for (double rate : rates) {
    profile.reads.push_back({footprint, 2, true, measured(rate)});
    profile.reads.push_back({footprint, 1, true, measured(1000)});       // fewer threads do not count
    profile.reads.push_back({footprint, 2, false, measured(rate / 2)});  // nor does the slower page size
    footprint *= 2;
  }
  const auto levels = find_levels(profile);
  ASSERT_EQ(levels.size(), 3u);  // 120 is on the way from one to the next
  EXPECT_EQ(levels[0].from_bytes, 16 * kKiB);
  EXPECT_EQ(levels[0].to_bytes, 64 * kKiB);
  EXPECT_EQ(levels[0].gb_per_s, 500);
  EXPECT_EQ(levels[1].gb_per_s, 340);
  EXPECT_EQ(levels[2].from_bytes, 2 * kMiB);
  EXPECT_TRUE(find_levels({}).empty());
}

TEST(Peaks, AboveWhatTheClockAllowsAreAnError) {
  if (compute_loops().empty()) GTEST_SKIP() << "no loop of multiply-adds knows this CPU";
  for (const ComputeLoop& loop : compute_loops()) {
    MachineProfile profile;
    profile.clock_ghz_before = profile.clock_ghz_after = 2;
    const double most = 2 * most_operations_per_cycle(loop);
    profile.peaks = {{std::string(loop.type), std::string(loop.isa), 1, measured(most)}};
    EXPECT_TRUE(check_peaks(profile).ok());
    profile.peaks[0].gops = measured(1.1 * most);
    const auto above = check_peaks(profile);
    ASSERT_FALSE(above.ok());
    EXPECT_EQ(above.error().code, ErrorCode::bug);
    EXPECT_NE(above.error().message.find(loop.isa), std::string::npos);
    EXPECT_NE(above.error().message.find("contention"), std::string::npos);
    profile.peaks[0].threads = 2;
    EXPECT_TRUE(check_peaks(profile).ok());
    profile.peaks[0] = {std::string(loop.type), "", 1, measured(1e9)};  // of a profile of before
    EXPECT_TRUE(check_peaks(profile).ok());
  }
  EXPECT_GT(measure_clock_ghz(), 0.1);
}

TEST(Peaks, OfAProfileByThreads) {
  MachineProfile p;
  EXPECT_FALSE(p.peak_gops("int8", 2).has_value());
  p.peaks = {{"int8", "avx2", 1, measured(100)},
             {"int8", "avx512-vnni", 1, measured(400)},
             {"int8", "avx2", 4, measured(390)},
             {"int8", "avx512-vnni", 4, measured(1500)}};
  EXPECT_EQ(p.peak_gops("int8", 4), 1500);
  EXPECT_EQ(p.peak_gops("int8", 1), 400);
  EXPECT_EQ(p.peak_gops("int8", 2), 800);
  EXPECT_EQ(p.peak_gops("int8", 8), 3000);
  EXPECT_FALSE(p.peak_gops("f32", 4).has_value());
}

TEST(ProfileSections, KeepsEverythingThatTheProbeFinds) {
  MachineProfile p;
  p.name = "a machine";
  p.clock_ghz_before = 3.3;
  p.clock_ghz_after = 3.25;
  p.streams = {{StreamKind::streaming_copy, 1 << 20, 2, measured(12)}};
  p.latencies = {{1 << 20, measured(80)}};
  p.levels = {{16384, 65536, 480, 2}};
  p.peaks = {{"int8", "amx-int8", 2, measured(1800)}, {"f32", "", 2, measured(200)}};
  p.formats = {{"Q4_K", measured(9)}};
  p.figures = {{"memory_gb_per_s", 17.1, FigureStatus::published, "a \"sheet\""}};
  const std::string path = testing::TempDir() + "/everything.toml";
  ASSERT_TRUE(save_profile(p, path).ok());
  auto back = load_profile(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  const MachineProfile& b = back.value();
  EXPECT_EQ(b.clock_ghz_before, 3.3);
  EXPECT_EQ(b.clock_ghz_after, 3.25);
  ASSERT_EQ(b.streams.size(), 1u);
  EXPECT_EQ(b.streams[0].kind, StreamKind::streaming_copy);
  EXPECT_EQ(b.streams[0].gb_per_s.value, 12);
  EXPECT_EQ(b.latencies.at(0).ns.value, 80);
  EXPECT_EQ(b.levels.at(0).to_bytes, 65536u);
  EXPECT_EQ(b.peaks.at(0).type, "int8");
  EXPECT_EQ(b.peaks.at(0).isa, "amx-int8");
  EXPECT_EQ(b.peaks.at(1).isa, "");  // as profiles of before have it
  EXPECT_EQ(b.formats.at(0).gb_per_s.value, 9);
  EXPECT_EQ(b.figures.at(0).source, "a \"sheet\"");
  EXPECT_EQ(b.read_gb_per_s(1, 1), 17.1);
  std::filesystem::remove(path);
}

TEST(ProfileSections, FiguresNeedAKnownNameAStatusAndASource) {
  const std::string path = testing::TempDir() + "/figures.toml";
  auto load = [&](const std::string& figure) {
    std::ofstream(path) << "format = 1\nname = 'x'\nmeasured_at = ''\ncontended = false\ncontention = ''\n"
                           "storage_path = ''\nfigures = [\n  { "
                        << figure << " },\n]\n";
    return load_profile(path);
  };
  EXPECT_TRUE(load("what = 'f16_gops', value = 3, status = 'assumed', source = 'a guess'").ok());
  for (auto& [figure, part] :
       {std::pair{"what = 'gops', value = 3, status = 'assumed', source = 'x'", "'what' is wrong"},
        {"what = 'f16_gops', value = 0, status = 'assumed', source = 'x'", "'value' is wrong"},
        {"what = 'f16_gops', value = 3, status = 'guessed', source = 'x'", "'status' is wrong"},
        {"what = 'f16_gops', value = 3, status = 'assumed', source = ''", "'source' is wrong"},
        {"what = 'f16_gops', value = 3, status = 'assumed'", "'source' is missing"}}) {
    auto loaded = load(figure);
    ASSERT_FALSE(loaded.ok()) << figure;
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ridge
