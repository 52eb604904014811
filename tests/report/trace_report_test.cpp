#include "report/trace_report.h"
#include "report/markup.h"

#include <random>

#include "report/svg.h"
#include "tests/report/trace_fixture.h"

namespace ridge {
namespace {

using test::TempFolder;
using test::TraceFixture;

RecordedTrace recorded(int decodes = 2) {
  TempFolder folder;
  TraceFixture().write(folder / "t.json", decodes);
  return read_trace(folder / "t.json").value();
}

double part_of(const PassKind& kind, const std::string& name) {
  for (const TimePart& part : kind.parts) {
    if (part.name == name) return part.seconds;
  }
  return -1;
}

TEST(TraceSummary, AddsUpWhereTheTimeWent) {
  const TraceSummary s = summarise(recorded());
  ASSERT_EQ(s.kinds.size(), 2u);
  EXPECT_EQ(s.kinds[0].name, "prefill");
  EXPECT_EQ(s.kinds[0].tokens, 5u);
  const PassKind& decode = s.kinds[1];
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(decode.passes, 2u);
  EXPECT_NEAR(decode.seconds, 0.020, 1e-9);
  EXPECT_NEAR(decode.median_s, 0.010, 1e-9);
  EXPECT_NEAR(part_of(decode, "blocks"), 0.016, 1e-9);
  EXPECT_NEAR(part_of(decode, "attention"), 0.002, 1e-9);
  EXPECT_NEAR(part_of(decode, "waiting for storage"), 0.002, 1e-9);
  EXPECT_NEAR(part_of(decode, "the rest"), 0, 1e-9);
  // Of a pass: block 1 from its begin to 3 ms, block 3 from 3 to 7 ms. The first ms of block 1's read lies before it.
  EXPECT_NEAR(decode.reading_s, 0.014, 1e-9);
  EXPECT_NEAR(decode.exposed_s, 0.002, 1e-9);
  EXPECT_NEAR(static_cast<double>(decode.read_bytes), 14e6, 10);
  EXPECT_EQ(s.read_bytes, 6 * 4'000'000u);
  EXPECT_NEAR(s.between_s, 0.002, 1e-9);
  EXPECT_NEAR(s.loading_s, 0.007, 1e-9);
  EXPECT_EQ(s.peak_bytes, uint64_t{50} << 20);
}

// A device of contexts: 0–3 s read, 2–5 s init (both at once for a second), 5–6 s nothing, 6–8 s release of another.
TEST(TraceSummary, TellsWhatWasWaitedFor) {
  constexpr int64_t kSecond = 1'000'000'000;
  RecordedTrace t;
  t.names = {"denoising"};
  t.blocks.resize(2);
  auto add = [&](Lane lane, BlockId block, int64_t begin, int64_t end) {
    t.events.push_back({.begin_ns = begin * kSecond, .end_ns = end * kSecond, .block = block, .lane = lane});
  };
  add(Lane::pass, kNoBlock, 0, 10);
  add(Lane::read, 0, 0, 3);
  add(Lane::wait, 0, 0, 9);
  add(Lane::init, 0, 2, 5);
  add(Lane::release, 1, 4, 8);
  add(Lane::compute, 0, 9, 10);
  const TraceSummary s = summarise(t);
  ASSERT_EQ(s.kinds.size(), 1u);
  EXPECT_EQ(part_of(s.kinds[0], "waiting for init"), 3);
  EXPECT_EQ(part_of(s.kinds[0], "waiting for release"), 3);
  EXPECT_EQ(part_of(s.kinds[0], "waiting for storage"), 3);
  EXPECT_EQ(part_of(s.kinds[0], "blocks"), 1);
  EXPECT_EQ(part_of(s.kinds[0], "the rest"), 0);
}

// Whatever a file says, the page can be made, and no time counts twice.
TEST(TraceReport, MakesAPageOfAnyEvents) {
  std::mt19937 random(7);
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    RecordedTrace t;
    t.title = "any";
    t.bound_pass = "n0";
    t.bounds = {{"storage", round % 3 == 0 ? 0.0 : 1e-3}};
    for (uint32_t n = 0; n <= below(20); ++n) t.names.push_back("n" + std::to_string(n));
    t.blocks.resize(1 + below(500));
    for (RecordedBlock& b : t.blocks) b.pinned = below(2) == 0;
    const int64_t span = round % 2 == 0 ? 50 : int64_t{9'000'000'000'000'000};
    for (uint32_t i = 0; i <= below(60); ++i) {
      const int64_t begin = random() % 100 * (span / 50);
      t.events.push_back({.begin_ns = begin,
                          .end_ns = begin + (below(3) == 0 ? 0 : below(100) * (span / 50)),
                          .bytes = below(2) == 0 ? 0 : uint64_t{1} << below(51),
                          .block = below(3) == 0 ? kNoBlock : below(static_cast<uint32_t>(t.blocks.size())),
                          .name = below(static_cast<uint32_t>(t.names.size())),
                          .tokens = below(3),
                          .lane = static_cast<Lane>(below(kLaneCount))});
    }
    std::stable_sort(t.events.begin(), t.events.end(), [](auto& a, auto& b) { return a.begin_ns < b.begin_ns; });
    auto page = trace_report(t, {});
    ASSERT_TRUE(page.ok()) << page.error().message;
    EXPECT_EQ(page.value().find("nan"), std::string::npos);
    EXPECT_EQ(page.value().find("inf "), std::string::npos);
    for (const PassKind& kind : summarise(t).kinds) {
      double waited = 0, computed = 0;
      for (const TimePart& part : kind.parts) {
        if (part.name != "the rest") (part.name.starts_with("waiting") ? waited : computed) += part.seconds;
      }
      EXPECT_LE(waited, kind.seconds * (1 + 1e-12) + 1e-12);
      EXPECT_LE(computed, kind.seconds * (1 + 1e-12) + 1e-12);
    }
  }
}

TEST(TraceSummary, BandwidthKeepsTheBytes) {
  const RecordedTrace trace = recorded();
  for (size_t bins : {size_t{1}, size_t{7}, size_t{100}}) {
    const Span whole = summarise(trace).whole;
    double bytes = 0;
    for (double rate : bandwidth(trace, whole, bins)) {
      bytes += rate * static_cast<double>(whole.length()) * 1e-9 / static_cast<double>(bins);
    }
    EXPECT_NEAR(bytes, 24e6, 1e3) << bins;
  }
}

TEST(TraceSummary, MemoryIsCarriedOn) {
  const RecordedTrace trace = recorded();
  const std::vector<uint64_t> memory = memory_over_time(trace, {.begin = 0, .end = 42'000'000}, 42);
  EXPECT_EQ(memory[19], 0u);
  for (size_t i = 20; i < 42; ++i) EXPECT_EQ(memory[i], uint64_t{50} << 20) << i;
}

TEST(TraceSummary, TellsWhichBlockWasWhere) {
  const RecordedTrace trace = recorded();
  const TraceSummary s = summarise(trace);
  const TraceWindow window = window_of(s, {.first = 1, .last = 1});
  EXPECT_EQ(window.span.begin, 21'000'000);
  const std::vector<Residency> map = residency(trace, window.span);
  ASSERT_EQ(map.size(), 4u);
  ASSERT_EQ(map[0].resident.size(), 1u);  // pinned
  EXPECT_EQ(map[0].resident[0].length(), 10'000'000);
  ASSERT_EQ(map[1].loading.size(), 1u);
  EXPECT_EQ(map[1].loading[0].begin, 21'000'000);
  EXPECT_EQ(map[1].loading[0].end, 24'000'000);
  ASSERT_EQ(map[1].waited.size(), 1u);
  ASSERT_EQ(map[1].resident.size(), 1u);
  EXPECT_EQ(map[1].resident[0].begin, 24'000'000);
  EXPECT_EQ(map[1].resident[0].end, 31'000'000);
  ASSERT_EQ(map[3].resident.size(), 2u);  // until it is read anew, and from its arrival on
  EXPECT_EQ(map[3].resident[0].end, 22'000'000);
  EXPECT_EQ(map[3].resident[1].begin, 28'000'000);
  ASSERT_EQ(map[3].computed.size(), 1u);
}

TEST(TraceSummary, TheWindowIsTheLastTwoPassesOfAKind) {
  const RecordedTrace trace = recorded();
  const TraceSummary s = summarise(trace);
  const TraceWindow window = default_window(trace, s);
  ASSERT_TRUE(window.passes.has_value());
  EXPECT_EQ(window.passes->first, 1u);
  EXPECT_EQ(window.passes->last, 2u);
  const RecordedTrace one = recorded(0);
  EXPECT_EQ(default_window(one, summarise(one)).passes->first, 0u);
  RecordedTrace none = recorded();
  std::erase_if(none.events, [](const RecordedEvent& e) { return e.lane == Lane::pass; });
  EXPECT_FALSE(default_window(none, summarise(none)).passes.has_value());
  EXPECT_TRUE(trace_report(none, {}).ok());
}

TEST(TraceReport, IsOnePageThatLoadsAndRunsNothing) {
  auto html = trace_report(recorded(), {});
  ASSERT_TRUE(html.ok());
  const std::string& page = html.value();
  for (const char* part : {"Where the time went", "The bound", "Residency", "Timeline", "against the budget",
                           "Bandwidth", "prefers-color-scheme:dark", "blk.1.&quot;&lt;attn&gt;&quot;/0",
                           "a &lt;model&gt; &amp;", "&lt;/main&gt;&lt;script&gt;", "median pass"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<script", "http://", "https://", "<link", "@import", "url(", "nan", "inf%"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST(TraceReport, StaysSmallHoweverLongTheRun) {
  const size_t small = trace_report(recorded(100), {}).value().size();
  const size_t large = trace_report(recorded(4000), {}).value().size();
  EXPECT_LT(large, 200'000u);
  EXPECT_LT(large, 2 * small);
}

TEST(TraceReport, RefusesPassesThatAreNotThere) {
  auto html = trace_report(recorded(), {.passes = PassRange{.first = 1, .last = 3}});
  ASSERT_FALSE(html.ok());
  EXPECT_EQ(html.error().code, ErrorCode::usage);
  EXPECT_NE(html.error().message.find("0 to 2"), std::string::npos);
}

TEST(TraceReport, SaysWhatIsMissing) {
  RecordedTrace trace = recorded();
  trace.left_out = 1234;
  EXPECT_NE(trace_report(trace, {}).value().find("last 1,234 events of the run"), std::string::npos);
}

TEST(Svg, WritesNumbersWithUnits) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(0.0000123), "12.3 µs");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(1.5), "1.50 s");
  EXPECT_EQ(format_seconds(1200), "20.0 min");
  EXPECT_EQ(format_percent(0.0123), "1.2 %");
  EXPECT_EQ(format_percent(0.5), "50 %");
  EXPECT_EQ(round_limit(0.00101), 0.0015);
  EXPECT_EQ(round_limit(80), 80);
  EXPECT_EQ(time_labels(0, 0.02), (std::vector<std::string>{"0.0 ms", "5.0 ms", "10.0 ms", "15.0 ms", "20.0 ms"}));
}

TEST(Svg, EscapesWhatIsNoText) {
  EXPECT_EQ(markup("a<b>\"&\x01"), "a&lt;b&gt;&quot;&amp; ");
  EXPECT_EQ(markup("\xff"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace ridge
