#include "base/duration.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

using namespace std::chrono_literals;

TEST(Duration, UnitsPeopleWrite) {
  struct Case {
    const char* text;
    std::chrono::nanoseconds time;
  };
  for (const Case& c :
       {Case{"30s", 30s}, {"30", 30s}, {"0", 0s}, {"500ms", 500ms}, {"2m", 2min}, {"1.5h", 90min}, {"2min", 2min}}) {
    auto time = parse_duration(c.text, "--hold");
    ASSERT_TRUE(time.ok()) << c.text;
    EXPECT_EQ(time.value(), c.time) << c.text;
  }
}

TEST(Duration, AnythingElseIsAUsageError) {
  for (const char* text : {"", "-1", "-1s", "s", "3 s", "1d", "1e400", "nan", "inf", "9999h9", "10000h", "30S"}) {
    auto time = parse_duration(text, "--hold");
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_EQ(time.error().code, ErrorCode::usage);
    EXPECT_NE(time.error().message.find("--hold"), std::string::npos);
  }
}

}  // namespace
}  // namespace ridge
