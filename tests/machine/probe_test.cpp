// The probe's parts and the whole: structure and plausibility; times are never asserted.
#include "machine/probe.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "machine/bandwidth.h"
#include "machine/bandwidth_loop.h"
#include "machine/cpu.h"
#include "machine/probe_contention.h"
#include "machine/probe_rate.h"
#include "machine/probe_stats.h"
#include "machine/storage_probe.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

TEST(ProbeStats, MedianAndQuartiles) {
  std::vector<double> samples = {5, 1, 3, 2, 4};
  Measured m = summarize(samples);
  EXPECT_EQ(m.value, 3);
  EXPECT_EQ(m.low, 2);
  EXPECT_EQ(m.high, 4);
  EXPECT_EQ(m.runs, 5);
  EXPECT_DOUBLE_EQ(spread(m), 2.0 / 3);

  std::vector<double> even = {1, 2};
  EXPECT_EQ(summarize(even).value, 1.5);
  std::vector<double> one = {7};
  EXPECT_EQ(summarize(one).low, 7);
  EXPECT_EQ(spread(summarize(one)), 0);
  EXPECT_EQ(summarize({}).runs, 0);
  EXPECT_EQ(spread({}), 0);
}

TEST(ProbeStats, SettledMeansEnoughSamplesThatAgree) {
  EXPECT_TRUE(settled({.value = 100, .low = 98, .high = 103, .runs = 3}));
  EXPECT_FALSE(settled({.value = 100, .low = 97, .high = 103, .runs = 3}));
  EXPECT_FALSE(settled({.value = 100, .low = 100, .high = 100, .runs = 2}));
  EXPECT_FALSE(settled({}));
}

// Figures that agree have their turn in the planned sittings, others until the last.
TEST(Rounds, UnsettledFiguresGetMore) {
  Rounds rounds(2, {.sittings = 3, .samples = 1, .more = 4});
  int sittings = 0, calm = 0, restless = 0;
  while (rounds.next()) {
    ++sittings;
    if (rounds.wanted(0)) rounds.add(0, 100 + 0.5 * calm++);
    if (rounds.wanted(1)) rounds.add(1, 100 + 20.0 * restless++);
  }
  EXPECT_EQ(calm, 3);
  EXPECT_EQ(restless, 7);
  EXPECT_EQ(sittings, 7);
  EXPECT_EQ(rounds.result(0).value, 100.5);
  EXPECT_EQ(rounds.result(1).value, 160);

  Rounds quiet(1, {.sittings = 3, .samples = 1, .more = 4});
  for (sittings = 0; quiet.next(); ++sittings) quiet.add(0, 7);
  EXPECT_EQ(sittings, 3);
}

// A sample during which somebody else had the CPU does not count, unless there are too few others.
TEST(Rounds, DisturbedSamplesDoNotCount) {
  for (int clean : {2, 4}) {
    Rounds rounds(1, {.sittings = 8, .samples = 1, .more = 0, .run_time = std::chrono::milliseconds(1)});
    int sitting = 0;
    while (rounds.next()) {
      rounds.sample(0, 1, [&](uint64_t passes) {
        const bool disturbed = sitting >= clean;
        return Timed{.seconds = static_cast<double>(passes) * (disturbed ? 2e-3 : 1e-3), .disturbed = disturbed};
      });
      ++sitting;
    }
    EXPECT_EQ(rounds.result(0).runs, clean);
    EXPECT_EQ(settled(rounds.result(0)), clean == 4);
    EXPECT_NEAR(rounds.result(0).value, clean == 4 ? 1000 : 500, 1);
  }
}

// Whoever has no CPU at his first turn takes too few passes for a sample; they are not kept.
TEST(Rounds, TooShortSamplesAreReplaced) {
  Rounds rounds(1, {.sittings = 5, .samples = 1, .more = 0, .run_time = std::chrono::milliseconds(1)});
  int sitting = 0;
  while (rounds.next()) {
    rounds.sample(0, 1, [&](uint64_t passes) {
      if (sitting == 0) return Timed{.seconds = 5e-3, .disturbed = false};
      return Timed{.seconds = static_cast<double>(passes) * 1e-6, .disturbed = false};
    });
    ++sitting;
  }
  EXPECT_EQ(rounds.result(0).runs, 4);
  EXPECT_NEAR(rounds.result(0).value, 1e6, 1);
}

TEST(ProbeContention, ReadsProcStat) {
  auto times = parse_proc_stat("cpu  1000 100 300 9000 50 20 30 400 777 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 100);
  ASSERT_TRUE(times.has_value());
  EXPECT_DOUBLE_EQ(times->busy_s, 14.5);  // guest time (777) is in user already
  EXPECT_DOUBLE_EQ(times->stolen_s, 4);
  EXPECT_FALSE(parse_proc_stat("", 100).has_value());
  EXPECT_FALSE(parse_proc_stat("cpu  1 2 3", 100).has_value());
  EXPECT_FALSE(parse_proc_stat("intr 1 2 3 4 5 6 7 8", 100).has_value());
}

TEST(ProbeContention, NamesTheCause) {
  EXPECT_EQ(describe_contention(10, 0.2, 0), "");
  EXPECT_EQ(describe_contention(0, 1, 1), "");
  EXPECT_NE(describe_contention(10, 5, 0).find("other processes used 0.50 of a CPU"), std::string::npos);
  EXPECT_NE(describe_contention(10, 0, 2).find("hypervisor"), std::string::npos);
}

TEST(ReadLoop, EveryWidthReadsEveryWord) {
  std::vector<uint64_t> words(4 * kReadLoopWords);
  std::iota(words.begin(), words.end(), 1000);
  uint64_t expected = std::accumulate(words.begin(), words.end(), uint64_t{0});
  std::set<ReadLoop> loops = {best_read_loop(kNoFeatures)};
  if (cpu_info().features.has_all(kAvx2Fma)) loops.insert(best_read_loop(kAvx2Fma));
  loops.insert(best_read_loop(cpu_info().features));
  for (ReadLoop loop : loops) EXPECT_EQ(loop(words.data(), words.size()), expected);
}

TEST(ReadPlan, CoversTheHierarchyWithinTheLimit) {
  for (bool quick : {false, true}) {
    for (uint64_t most : {16 * kKiB, 100 * kKiB, 3 * kMiB, kGiB, 100 * kGiB}) {
      // Mapped for each page size, which are measured in turn.
      ReadPlan plan = read_plan({.threads = 1, .quick = quick, .most_bytes = most * (quick ? 1 : 2)});
      EXPECT_EQ(plan.pages.size(), quick ? 1u : 2u);
      ASSERT_FALSE(plan.footprints.empty());
      EXPECT_TRUE(std::is_sorted(plan.footprints.begin(), plan.footprints.end()));
      EXPECT_EQ(std::set<uint64_t>(plan.footprints.begin(), plan.footprints.end()).size(), plan.footprints.size());
      EXPECT_GE(plan.footprints.front(), 16 * kKiB);
      EXPECT_LE(plan.footprints.back(), std::min(most, kGiB));
      EXPECT_GT(plan.footprints.back() + 16 * kKiB, std::min(most, kGiB));  // the limit is used
    }
  }
  EXPECT_TRUE(read_plan({.threads = 1, .quick = true, .most_bytes = 1000}).footprints.empty());
}

TEST(ReadPlan, TriesOneToAllThreads) {
  auto threads = [](int most, bool quick) {
    return read_plan({.threads = most, .quick = quick, .most_bytes = kGiB}).threads;
  };
  EXPECT_EQ(threads(1, false), (std::vector<int>{1}));
  EXPECT_EQ(threads(2, true), (std::vector<int>{1, 2}));
  EXPECT_EQ(threads(6, false), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(threads(6, true), (std::vector<int>{1, 6}));
  EXPECT_EQ(threads(24, false), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}));
}

TEST(ReadRoof, NoMemoryIsAnErrorNotACrash) {
  Progress bar("test", 1, ProgressUnit::items);
  auto points = measure_reads(read_plan({.threads = 1, .quick = true, .most_bytes = 0}), bar);
  ASSERT_FALSE(points.ok());
  EXPECT_EQ(points.error().code, ErrorCode::does_not_fit);
}

void expect_plausible(const Measured& m) {
  EXPECT_GT(m.value, 0);
  EXPECT_GT(m.low, 0);
  EXPECT_LE(m.low, m.value);
  EXPECT_LE(m.value, m.high);
  EXPECT_LT(m.high, 1e6);  // a petabyte per second is a wrong unit
  EXPECT_GE(m.runs, 1);
}

TEST(ReadRoof, MeasuresEveryPointOfThePlan) {
  ReadPlan plan{.footprints = {64 * kKiB, 4 * kMiB},
                .threads = {1, 3},
                .pages = {PageSize::huge, PageSize::small},
                .rounds = {.sittings = 2, .samples = 2, .more = 1, .run_time = std::chrono::microseconds(100)}};
  Progress bar("test", point_count(plan), ProgressUnit::items);
  auto points = measure_reads(plan, bar);
  ASSERT_TRUE(points.ok()) << points.error().message;
  std::set<std::tuple<uint64_t, int, bool>> seen;
  for (const ReadPoint& point : points.value()) {
    expect_plausible(point.gb_per_s);
    EXPECT_LE(point.gb_per_s.runs, 6);
    EXPECT_TRUE(seen.insert({point.footprint_bytes, point.threads, point.huge_pages}).second);
  }
  for (uint64_t footprint : plan.footprints) {
    for (int threads : plan.threads) {
      EXPECT_TRUE(seen.contains({footprint, threads, false})) << footprint << " bytes, " << threads << " threads";
    }
  }
}

// A folder of its own for each test, removed afterwards.
class Storage : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ridge-probe-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string make_file(uint64_t bytes) const {
    std::string path = (folder / "data").string();
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }
  bool is_empty() const { return fs::directory_iterator(folder) == fs::directory_iterator(); }

  fs::path folder;
};

TEST_F(Storage, TheTemporaryFileHasNoName) {
  auto file = StorageFile::temporary(folder.string(), 2 * kMiB);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(is_empty());  // nothing to clean up, even after SIGKILL
  EXPECT_EQ(file.value().bytes(), 2 * kMiB);
  EXPECT_EQ(file.value().path(), folder.string());

  std::vector<std::byte> first(4096), second(4096);
  ASSERT_TRUE(file.value().read(first, 0).ok());
  ASSERT_TRUE(file.value().read(second, kMiB).ok());
  EXPECT_NE(first, second);  // not one repeated pattern, which a disk could deduplicate
  auto past = file.value().read(second, 2 * kMiB);
  ASSERT_FALSE(past.ok());
  EXPECT_EQ(past.error().offset, 2 * kMiB);
}

TEST_F(Storage, MakesNoFolderForTheTemporaryFile) {
  EXPECT_FALSE(StorageFile::temporary((folder / "a/b").string(), kMiB).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_TRUE(StorageFile::temporary(folder.string(), kMiB).ok());
  std::ofstream(folder / "file") << "x";
  auto refused = StorageFile::temporary((folder / "file/below").string(), kMiB);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::io);
}

TEST_F(Storage, RefusesWhatCannotBeMeasured) {
  auto expect_refused = [](const std::string& path, const char* words) {
    auto file = StorageFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, ErrorCode::bad_input);
    EXPECT_NE(file.error().message.find(words), std::string::npos) << file.error().message;
  };
  expect_refused((folder / "absent").string(), "No such file");
  expect_refused(folder.string(), "not a regular file");
  expect_refused("/dev/null", "not a regular file");
  expect_refused(make_file(100), "100 B are too few");
}

TEST_F(Storage, PlansOnlyWhatFitsTheFileAndTheBuffers) {
  for (bool quick : {false, true}) {
    StoragePlan plan = storage_plan({.quick = quick, .file_bytes = 3 * kMiB, .most_bytes = 2 * kMiB});
    ASSERT_FALSE(plan.direct.empty());
    for (const auto& shapes : {plan.direct, plan.buffered}) {
      for (const StorageShape& shape : shapes) {
        EXPECT_LE(shape.request_bytes * static_cast<uint64_t>(shape.depth), 2 * kMiB);
      }
    }
  }
}

TEST_F(Storage, MeasuresEveryShapeAndKeepsTheFile) {
  std::string path = make_file(2 * kMiB + 123);  // a size that is no multiple of anything
  auto file = StorageFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  StoragePlan plan{.direct = {{4096, 1}, {256 * kKiB, 4}},
                   .buffered = {{kMiB, 1}},
                   .runs = 2,
                   .run_time = std::chrono::microseconds(500)};
  Progress bar("test", point_count(plan), ProgressUnit::items);
  auto points = measure_storage(file.value(), plan, bar);
  ASSERT_TRUE(points.ok()) << points.error().message;
  bool direct = file.value().refusal().empty();
  EXPECT_EQ(points.value().size(), direct ? 3u : 2u);
  for (const StoragePoint& point : points.value()) {
    expect_plausible(point.gb_per_s);
    EXPECT_EQ(point.direct, direct && point.request_bytes != kMiB);
  }
  EXPECT_EQ(fs::file_size(path), 2 * kMiB + 123);
}

TEST_F(Storage, AFileThatShrinksMeanwhileIsAnError) {
  std::string path = make_file(4 * kMiB);
  auto file = StorageFile::open(path);
  ASSERT_TRUE(file.ok());
  fs::resize_file(path, 4096);
  StoragePlan plan{.direct = {{kMiB, 2}}, .buffered = {}, .runs = 1, .run_time = std::chrono::microseconds(500)};
  Progress bar("test", 1, ProgressUnit::items);
  auto points = measure_storage(file.value(), plan, bar);
  ASSERT_FALSE(points.ok());
  EXPECT_EQ(points.error().code, ErrorCode::io);
  EXPECT_NE(points.error().message.find("cut it short"), std::string::npos) << points.error().message;
}

TEST_F(Storage, TheWholeProbeFillsAProfileThatCanBeSaved) {
  auto profile = probe_machine({.storage_file = make_file(8 * kMiB), .quick = true, .memory = false});
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_FALSE(profile.value().measured_at.empty());
  EXPECT_TRUE(profile.value().reads.empty());
  ASSERT_TRUE(profile.value().storage_gb_per_s().has_value());
  std::string saved = (folder / "machine.toml").string();
  ASSERT_TRUE(save_profile(profile.value(), saved).ok());
  auto loaded = load_profile(saved);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().name, profile.value().name);
  EXPECT_EQ(loaded.value().storage.size(), profile.value().storage.size());
}

TEST(Probe, RefusesMoreThreadsThanThereAreCpus) {
  auto profile = probe_machine({.threads = 1 << 20, .quick = true});
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace ridge
