#include "report/chrome_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "report/trace_reader.h"
#include "report/trace_report.h"
#include "tests/report/trace_fixture.h"

namespace ridge {
namespace {

using test::TempFolder;
using test::TraceFixture;
using test::write_file;
using Json = nlohmann::json;

TEST(ChromeTrace, NamesLanesAndNestsNothingOnALane) {
  TempFolder folder;
  const Json file = Json::parse(TraceFixture().write(folder / "t.json"));
  std::map<int, std::string> names;
  std::map<int, double> last;
  std::map<std::string, int> phases;
  for (const Json& e : file["traceEvents"]) {
    const std::string phase = e["ph"];
    ++phases[phase];
    EXPECT_EQ(e["pid"], 1);
    if (phase == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
    if (phase != "X") continue;
    EXPECT_GE(e["ts"].get<double>(), last[e["tid"]]) << e;
    last[e["tid"]] = e["ts"].get<double>() + e["dur"].get<double>();
    EXPECT_TRUE(names.contains(e["tid"])) << "the lane of " << e << " has no name yet";
  }
  EXPECT_EQ(names[2], "compute");
  EXPECT_EQ(names[10], "reading 1");
  EXPECT_EQ(names[11], "reading 2");
  EXPECT_EQ(phases["X"], 3 * 9 + 1);
  EXPECT_EQ(phases["i"], 3 * 2);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(ChromeTrace, TellsRatesOfTheDeviceNotOfTheQueue) {
  TempFolder folder;
  const Json file = Json::parse(TraceFixture().write(folder / "t.json"));
  std::vector<double> rates;
  for (const Json& e : file["traceEvents"]) {
    if (e.value("cat", "") == "read") rates.push_back(e["args"]["GB/s"]);
  }
  ASSERT_EQ(rates.size(), 6u);
  EXPECT_NEAR(rates[0], 1.0, 1e-3);  // 4 MB from 9 to 13 ms
  EXPECT_NEAR(rates[1], 1.0, 1e-3);  // asked for at 11, served from 13 to 17
}

TEST(ChromeTrace, ReadsBackWhatItWrote) {
  TempFolder folder;
  const TraceFixture fixture;
  fixture.write(folder / "t.json");
  auto read = read_trace(folder / "t.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const RecordedTrace& t = read.value();
  EXPECT_EQ(t.title, fixture.info.title);
  EXPECT_EQ(t.facts, fixture.info.facts);
  EXPECT_EQ(t.account, fixture.info.account);
  EXPECT_EQ(t.bounds, fixture.info.bounds);
  EXPECT_EQ(t.rates, "assumed");
  ASSERT_EQ(t.blocks.size(), 4u);
  EXPECT_EQ(t.blocks[2].name, "blk.1.\"<attn>\"/0");
  EXPECT_TRUE(t.blocks[2].pinned);
  EXPECT_EQ(t.events.size(), 1 + 3 * 12u);
  for (size_t i = 1; i < t.events.size(); ++i) EXPECT_LE(t.events[i - 1].begin_ns, t.events[i].begin_ns);
  auto pass = std::find_if(t.events.begin(), t.events.end(), [](auto& e) { return e.lane == Lane::pass; });
  EXPECT_EQ(t.names[pass->name], "prefill");
  EXPECT_EQ(pass->begin_ns, 10'000'000);
  EXPECT_EQ(pass->end_ns, 20'000'000);
  EXPECT_EQ(pass->tokens, 5u);
  auto memory = std::find_if(t.events.begin(), t.events.end(), [](auto& e) { return e.lane == Lane::memory; });
  EXPECT_EQ(memory->bytes, uint64_t{50} << 20);
}

// More events than the buffer of a trace holds, and than the window that orders them.
TEST(ChromeTrace, LosesNothingOfALongRun) {
  TempFolder folder;
  constexpr int kPasses = 1000;
  const Json file = Json::parse(TraceFixture().write(folder / "t.json", kPasses));
  std::map<int, double> last;
  size_t slices = 0;
  for (const Json& e : file["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++slices;
    EXPECT_GE(e["ts"].get<double>(), last[e["tid"]]);
    last[e["tid"]] = e["ts"].get<double>() + e["dur"].get<double>();
  }
  EXPECT_EQ(slices, 1 + (kPasses + 1) * 9u);
  EXPECT_EQ(file["ridge"]["left_out"], 0);
}

TEST(ChromeTrace, FindsAFolderThatIsMissingBeforeTheRun) {
  auto writer = ChromeTraceWriter::create("/nowhere/at/all/t.json");
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ErrorCode::io);
}

TEST(ChromeTrace, AWriterThatIsNotFinishedLeavesNothing) {
  TempFolder folder;
  {
    auto writer = ChromeTraceWriter::create(folder / "t.json");
    ASSERT_TRUE(writer.ok());
    const TraceEvent event{.lane = Lane::compute, .block = 0};
    writer.value()->take({&event, 1});
  }
  EXPECT_EQ(folder.entries(), 0u);
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(TraceReader, RefusesWhatIsNoTraceOfOurs) {
  TempFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON"},
      {"[]", "no trace of ridge"},
      {"{}", "no trace of ridge"},
      {"null", "no trace of ridge"},
      {"[{\"ph\":\"X\",\"ts\":1}]", "no trace of ridge"},
      {"{\"traceEvents\":[]}", "no trace of ridge"},
      {"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"read\",\"ts\":1,\"dur\":1}]}", "no trace of ridge"},
      // Other tools: the list alone, events without a name, or other phases, beside things of their own.
      {"{\"traceEvents\":[{\"ph\":\"E\",\"ts\":1},{\"ts\":1},7,[1],null],\"metadata\":{\"a\":[1,{}]}}",
       "no trace of ridge"},
      {"{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"read\",\"name\":5}]}", "no trace of ridge"},
      {"{\"traceEvents\":\"ridge\"}", "no trace of ridge"},
      {"[[[[[[[[[[", "JSON"},
      {"{\"ridge\":{\"version\":1e999}}", "beyond all limits"},
      {"{\"ridge\":{\"version\":2},\"traceEvents\":[]}", "version is 2"},
      {"{\"ridge\":{\"version\":\"1\"},\"traceEvents\":[]}", "no count"},
      {"{\"ridge\":7,\"traceEvents\":[]}", "no trace of ridge"},
      {"{\"ridge\":{\"version\":1},\"traceEvents\":{}}", "has no \"producer\""},
  };
  for (const auto& [text, part] : cases) {
    write_file(folder / "t.json", bytes_of(text));
    auto read = read_trace(folder / "t.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input) << text;
    EXPECT_NE(read.error().message.find(part), std::string::npos) << text << ": " << read.error().message;
  }
  EXPECT_EQ(read_trace(folder / "absent.json").error().code, ErrorCode::bad_input);
  EXPECT_EQ(read_trace(folder.path()).error().code, ErrorCode::bad_input);
}

TEST(TraceReader, RefusesEventsThatMakeNoSense) {
  TempFolder folder;
  Json good = Json::parse(TraceFixture().write(folder / "t.json"));
  auto index = [&](const char* category) {
    for (size_t i = 0; i < good["traceEvents"].size(); ++i) {
      if (good["traceEvents"][i].value("cat", "") == category) return i;
    }
    return size_t{0};
  };
  const std::string compute = "/traceEvents/" + std::to_string(index("compute"));
  const std::string read = "/traceEvents/" + std::to_string(index("read"));
  const std::pair<std::string, Json> changes[] = {
      {compute, 5},
      {compute + "/ts", -1},
      {compute + "/dur", -1},
      {compute + "/dur", 1e18},
      {compute + "/ph", 7},
      {compute + "/ts", 1e300},
      {compute + "/ts", "now"},
      {compute + "/dur", nullptr},
      {compute + "/name", 5},
      {compute + "/args/block", 4},
      {compute + "/args/block", -1},
      {read + "/args/bytes", "many"},
      {read + "/args/bytes", 1e17},
      {"/ridge/blocks", 3},
      {"/ridge/blocks/0", Json::array({1, 2, 3})},
      {"/ridge/bounds/0/1", "fast"},
      {"/ridge/account/0", 1},
      {"/ridge/title", Json::array()},
      {"/ridge/left_out", -3},
      {"/ridge/budget_bytes", 1.5},
      {"/traceEvents", Json::array()},
  };
  for (const auto& [path, value] : changes) {
    Json changed = good;
    changed[Json::json_pointer(path)] = value;
    const std::string text = changed.dump();
    write_file(folder / "t.json", bytes_of(text));
    auto result = read_trace(folder / "t.json");
    ASSERT_FALSE(result.ok()) << path << " = " << value;
    EXPECT_EQ(result.error().code, ErrorCode::bad_input) << path;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  }
}

// Whatever the bytes are, the answer is a trace or bad input.
TEST(TraceReader, SurvivesTruncationAndFlips) {
  TempFolder folder;
  const std::string whole = TraceFixture().write(folder / "t.json", 0);
  std::string shortened = whole;
  while (shortened.ends_with('\n')) shortened.pop_back();
  for (size_t n = 0; n < shortened.size(); n += 1 + n / 400) {
    write_file(folder / "t.json", bytes_of(shortened.substr(0, n)));
    auto read = read_trace(folder / "t.json");
    ASSERT_FALSE(read.ok()) << n;
    ASSERT_EQ(read.error().code, ErrorCode::bad_input) << n;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1500; ++i) {
    std::string changed = whole;
    for (int k = 0; k < 1 + i % 3; ++k) changed[random() % changed.size()] = static_cast<char>(random() & 0xff);
    write_file(folder / "t.json", bytes_of(changed));
    auto read = read_trace(folder / "t.json");
    EXPECT_TRUE(read.ok() || read.error().code == ErrorCode::bad_input);
    EXPECT_TRUE(!read.ok() || trace_report(read.value(), {}).ok());
  }
  const std::string deep(200'000, '[');
  write_file(folder / "t.json", bytes_of(deep));
  EXPECT_FALSE(read_trace(folder / "t.json").ok());
}

}  // namespace
}  // namespace ridge
