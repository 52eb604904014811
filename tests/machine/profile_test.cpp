#include "machine/profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ridge {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, removed afterwards.
class Profile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ridge-profile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string write(const std::string& text) const {
    std::string file = path("machine.toml");
    std::ofstream(file) << text;
    return file;
  }
  // The message of loading `text`.
  std::string error_of(const std::string& text) const {
    auto loaded = load_profile(write(text));
    if (loaded.ok()) return "loaded";
    EXPECT_EQ(loaded.error().code, ErrorCode::bad_input);
    EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos) << loaded.error().message;
    return loaded.error().message;
  }

  fs::path folder;
};

MachineProfile example() {
  MachineProfile m;
  m.name = "A \"quoted\" CPU \\ with\ttabs, 3 × faster";
  m.measured_at = "2026-01-02T03:04:05Z";
  m.contended = true;
  m.contention = "other processes used 1.02 of a CPU";
  m.storage_path = "/data/models";
  m.int8_gops_per_core = 512.5;
  m.float_gops_per_core = 96.25;
  m.reads = {{16384, 1, true, {250.123456, 248, 251, 5}}, {1u << 30, 2, false, {28.25, 28, 28.5, 3}}};
  m.storage = {{1u << 20, 8, true, {2, 1.5, 2.25, 5}}, {1u << 20, 1, false, {0.5, 0.5, 0.5, 1}}};
  return m;
}

void expect_near(const Measured& a, const Measured& b) {
  EXPECT_NEAR(a.value, b.value, 1e-5 * b.value);
  EXPECT_NEAR(a.low, b.low, 1e-5 * b.low);
  EXPECT_NEAR(a.high, b.high, 1e-5 * b.high);
  EXPECT_EQ(a.runs, b.runs);
}

TEST_F(Profile, SurvivesTheRoundTrip) {
  MachineProfile saved = example();
  std::string file = path("a/new/folder/machine.toml");
  ASSERT_TRUE(save_profile(saved, file).ok());
  auto result = load_profile(file);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const MachineProfile& loaded = result.value();
  EXPECT_EQ(loaded.name, saved.name);
  EXPECT_EQ(loaded.measured_at, saved.measured_at);
  EXPECT_EQ(loaded.contended, saved.contended);
  EXPECT_EQ(loaded.contention, saved.contention);
  EXPECT_EQ(loaded.storage_path, saved.storage_path);
  EXPECT_DOUBLE_EQ(loaded.int8_gops_per_core, saved.int8_gops_per_core);
  EXPECT_DOUBLE_EQ(loaded.float_gops_per_core, saved.float_gops_per_core);
  ASSERT_EQ(loaded.reads.size(), saved.reads.size());
  for (size_t i = 0; i < saved.reads.size(); ++i) {
    EXPECT_EQ(loaded.reads[i].footprint_bytes, saved.reads[i].footprint_bytes);
    EXPECT_EQ(loaded.reads[i].threads, saved.reads[i].threads);
    EXPECT_EQ(loaded.reads[i].huge_pages, saved.reads[i].huge_pages);
    expect_near(loaded.reads[i].gb_per_s, saved.reads[i].gb_per_s);
  }
  ASSERT_EQ(loaded.storage.size(), saved.storage.size());
  for (size_t i = 0; i < saved.storage.size(); ++i) {
    EXPECT_EQ(loaded.storage[i].request_bytes, saved.storage[i].request_bytes);
    EXPECT_EQ(loaded.storage[i].depth, saved.storage[i].depth);
    EXPECT_EQ(loaded.storage[i].direct, saved.storage[i].direct);
    expect_near(loaded.storage[i].gb_per_s, saved.storage[i].gb_per_s);
  }
}

TEST_F(Profile, AnEmptyMachineIsAMachine) {
  ASSERT_TRUE(save_profile({}, path("empty.toml")).ok());
  auto loaded = load_profile(path("empty.toml"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(loaded.value().reads.empty());
  EXPECT_FALSE(loaded.value().read_gb_per_s(1024, 1).has_value());
  EXPECT_FALSE(loaded.value().storage_gb_per_s().has_value());
}

TEST_F(Profile, SavingReplacesTheFileAndLeavesNothingBeside) {
  std::string file = path("machine.toml");
  ASSERT_TRUE(save_profile({}, file).ok());
  ASSERT_TRUE(save_profile(example(), file).ok());
  EXPECT_EQ(load_profile(file).value().reads.size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(Profile, SavingWhereThereIsNoPlaceIsOneClearLine) {
  std::ofstream(path("file")) << "x";
  auto saved = save_profile(example(), path("file/machine.toml"));
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, ErrorCode::io);
  EXPECT_NE(saved.error().message.find("Not a directory"), std::string::npos) << saved.error().message;

  fs::create_directory(path("folder"));
  auto over = save_profile(example(), path("folder"));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);  // file, folder
}

const char* const kHead =
    "format = 1\nname = \"x\"\nmeasured_at = \"\"\ncontended = false\ncontention = \"\"\nstorage_path = \"\"\n";

TEST_F(Profile, ReadsAHandWrittenFile) {
  auto loaded =
      load_profile(write(std::string(kHead) + "something_newer = 3\n"
                                              "[[reads]]\nfootprint_bytes = 4096\nthreads = 1\nhuge_pages = false\n"
                                              "gb_per_s = 17\nlow = 17\nhigh = 17\nruns = 1\n"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().reads.at(0).gb_per_s.value, 17);
}

TEST_F(Profile, SaysWhatIsWrongWhereAndWhatToDo) {
  std::string missing = error_of("name = \"x\"\n");
  EXPECT_NE(missing.find("'format' is missing: expected a whole number from 1"), std::string::npos) << missing;
  EXPECT_NE(missing.find("ridge probe"), std::string::npos) << missing;

  std::string type = error_of("format = 1\nname = 5\n");
  EXPECT_NE(type.find("line 2: 'name' is wrong: expected a text in quotes"), std::string::npos) << type;

  std::string newer = error_of("format = 99\n");
  EXPECT_NE(newer.find("newer ridge"), std::string::npos) << newer;

  std::string syntax = error_of("format = 1\nname = \n");
  EXPECT_NE(syntax.find("line 2: not TOML"), std::string::npos) << syntax;

  EXPECT_NE(error_of(std::string(kHead) + "reads = 5\n").find("'reads' is wrong: expected a list of tables"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) + "reads = [5]\n").find("'reads' is wrong"), std::string::npos);
}

TEST_F(Profile, ChecksEveryFieldOfAPoint) {
  const std::string good =
      "footprint_bytes = 4096, threads = 1, huge_pages = true, gb_per_s = 2.0, low = 1.0, high = 3.0, runs = 5";
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return std::string(kHead) + "reads = [\n{ " + good + " },\n{ " + text + " } ]\n";
  };
  EXPECT_EQ(error_of(with("runs", "runs")), "loaded");
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"footprint_bytes = 4096, ", ""}, "read point 2: 'footprint_bytes' is missing"},
      {{"4096", "0"}, "'footprint_bytes' is wrong: expected a whole number from 1"},
      {{"4096", "-1"}, "'footprint_bytes' is wrong"},
      {{"4096", "4096.5"}, "'footprint_bytes' is wrong"},
      {{"4096", "9223372036854775807"}, "'footprint_bytes' is wrong"},
      {{"threads = 1", "threads = 1000000"}, "'threads' is wrong"},
      {{"true", "1"}, "'huge_pages' is wrong: expected true or false"},
      {{"2.0", "\"fast\""}, "'gb_per_s' is wrong: expected a number above 0"},
      {{"2.0", "nan"}, "'gb_per_s' is wrong"},
      {{"2.0", "inf"}, "'gb_per_s' is wrong"},
      {{"2.0", "0.0"}, "'gb_per_s' is wrong"},
      {{"2.0", "true"}, "'gb_per_s' is wrong"},
      {{"low = 1.0", "low = 2.5"}, "'low' is wrong: expected no more than gb_per_s"},
      {{"high = 3.0", "high = 1.5"}, "'high' is wrong: expected no less than gb_per_s"},
      {{"runs = 5", "runs = 0"}, "'runs' is wrong"},
  };
  for (const auto& [change, expected] : cases) {
    std::string message = error_of(with(change.first, change.second));
    EXPECT_NE(message.find(expected), std::string::npos) << change.second << ": " << message;
    EXPECT_NE(message.find("read point 2"), std::string::npos) << message;
  }
}

TEST_F(Profile, AnUnreadableFileIsAnErrorToo) {
  auto absent = load_profile(path("absent.toml"));
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("ridge probe"), std::string::npos);
  EXPECT_FALSE(load_profile(folder.string()).ok());
  EXPECT_EQ(error_of(std::string(5u << 20, '#')).find("loaded"), std::string::npos);
}

// A profile cut anywhere, or with any byte changed, is read or refused, never worse.
TEST_F(Profile, SurvivesDamage) {
  std::string file = path("whole.toml");
  ASSERT_TRUE(save_profile(example(), file).ok());
  std::stringstream buffer;
  buffer << std::ifstream(file).rdbuf();
  const std::string text = buffer.str();
  for (size_t cut = 0; cut < text.size(); cut += 7) error_of(text.substr(0, cut));
  for (size_t at = 0; at < text.size(); at += 5) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1 << (at % 8)));
    error_of(damaged);
  }
}

TEST(ProfileLookup, InterpolatesInLogFootprint) {
  MachineProfile m;
  m.reads = {{1024, 1, false, {100, 100, 100, 1}}, {4096, 1, false, {50, 50, 50, 1}}, {4096, 1, true, {60, 60, 60, 1}}};
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1024, 1), 100);
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(4096, 1), 60);  // the better page size
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(2048, 1), 80);  // half way in log2
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(16, 1), 100);
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1u << 30, 1), 60);
}

TEST(ProfileLookup, TakesTheNearestThreadCountBelow) {
  MachineProfile m;
  m.reads = {{1024, 2, false, {20, 20, 20, 1}}, {1024, 4, false, {40, 40, 40, 1}}};
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1024, 4), 40);
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1024, 3), 20);
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1024, 8), 40);
  EXPECT_DOUBLE_EQ(*m.read_gb_per_s(1024, 1), 20);  // fewer than were measured
}

TEST(ProfileLookup, StorageIsTheBestDirectPoint) {
  MachineProfile m;
  m.storage = {{4096, 1, false, {9, 9, 9, 1}}};
  EXPECT_DOUBLE_EQ(*m.storage_gb_per_s(), 9);  // no O_DIRECT there
  m.storage.push_back({4096, 1, true, {1, 1, 1, 1}});
  m.storage.push_back({4096, 2, true, {2, 2, 2, 1}});
  EXPECT_DOUBLE_EQ(*m.storage_gb_per_s(), 2);
}

class ProfilePath : public testing::Test {
 protected:
  ~ProfilePath() override {
    restore("XDG_CACHE_HOME", cache);
    restore("HOME", home);
  }
  static std::optional<std::string> get(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  static void restore(const char* name, const std::optional<std::string>& value) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }
  std::optional<std::string> cache = get("XDG_CACHE_HOME"), home = get("HOME");
};

TEST_F(ProfilePath, FollowsTheCacheFolder) {
  ::setenv("HOME", "/home/somebody", 1);
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(default_profile_path(), "/caches/ridge/machine.toml");
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, by the XDG specification
  EXPECT_EQ(default_profile_path(), "/home/somebody/.cache/ridge/machine.toml");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(default_profile_path(), "/home/somebody/.cache/ridge/machine.toml");
  ::unsetenv("HOME");
  EXPECT_TRUE(default_profile_path().ends_with("/.cache/ridge/machine.toml"));
}

}  // namespace
}  // namespace ridge
