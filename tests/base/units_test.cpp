#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace ridge {
namespace {

TEST(ParseBytes, TakesWhatPeopleWrite) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"1", 1},
      {"4096", 4096},
      {"512B", 512},
      {"1K", kKiB},
      {"1k", kKiB},
      {"300M", 300 * kMiB},
      {"300m", 300 * kMiB},
      {"300MB", 300 * kMiB},
      {"300MiB", 300 * kMiB},
      {"2G", 2 * kGiB},
      {"1.5G", 3 * kGiB / 2},
      {"1T", 1024 * kGiB},
      {"0.5K", 512},
      {"1e3", 1000},
  };
  for (const auto& [text, bytes] : cases) {
    auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.error().message;
    EXPECT_EQ(parsed.value(), bytes) << text;
  }
}

TEST(ParseBytes, RefusesTheRestAndQuotesIt) {
  for (const char* text : {"", "M", "abc", "10Q", "300Mx", "300 M", " 300M", "300MM", "MiB", "--", "0x10", "nan", "inf",
                           "1,5G", "1e400", "300M\n"}) {
    auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage) << text;
    EXPECT_NE(parsed.error().message.find(std::string("'") + text + "'"), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseBytes, RefusesWhatNoMachineHas) {
  for (const char* text : {"0", "0M", "-5", "-1G", "0.1", "9999999999T", "1e30"}) {
    auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage) << text;
  }
}

TEST(FormatBytes, ThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(98'362'432), "93.8 MiB");
  EXPECT_EQ(format_bytes(300 * kMiB), "300 MiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");  // not "1024 KiB"
  EXPECT_EQ(format_bytes(kGiB + kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(Counted, OneThingHasNoPlural) {
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(21, "token"), "21 tokens");
  EXPECT_EQ(counted(1, "pass", "passes"), "1 pass");
  EXPECT_EQ(counted(2, "pass", "passes"), "2 passes");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(98'362'432), "98,362,432");
}

TEST(RoundUp, WorksForAnyStep) {
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_up(10, 3), 12u);
}

}  // namespace
}  // namespace ridge
