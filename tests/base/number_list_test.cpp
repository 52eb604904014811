#include "base/number_list.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

std::vector<uint64_t> numbers(std::string_view text) {
  auto parsed = parse_numbers(text, "--depth");
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? parsed.value() : std::vector<uint64_t>{};
}

using List = std::vector<uint64_t>;

TEST(NumberList, ReadsListsAndRanges) {
  EXPECT_EQ(numbers("7"), List({7}));
  EXPECT_EQ(numbers("2,1,2"), List({2, 1, 2}));
  EXPECT_EQ(numbers("1-4"), List({1, 2, 3, 4}));
  EXPECT_EQ(numbers("0-512+128"), List({0, 128, 256, 384, 512}));
  EXPECT_EQ(numbers("0-500+128"), List({0, 128, 256, 384}));
  EXPECT_EQ(numbers("128-1024*2"), List({128, 256, 512, 1024}));
  EXPECT_EQ(numbers("0,128-512*2,9-9"), List({0, 128, 256, 512, 9}));
  EXPECT_EQ(numbers("4294967296"), List({4294967296}));
}

TEST(NumberList, RefusesWhatMeansNothingAndNamesTheFlag) {
  for (const char* text :
       {"",      ",",      "1,",   ",1",    "a",   "1-",  "-1",  "4-1",        "1-4+0",
        "1-4*1", "0-4*2",  "1-4+", "1-4*x", "1 2", "1+2", "1.5", "4294967297", "99999999999999999999999",
        "1--4",  "1-4+1+1"}) {
    auto parsed = parse_numbers(text, "--depth");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_NE(parsed.error().message.find("--depth '" + std::string(text) + "'"), std::string::npos)
        << parsed.error().message;
  }
}

TEST(NumberList, BoundsHowManyThereAre) {
  EXPECT_EQ(numbers("1-1000").size(), 1000u);
  EXPECT_FALSE(parse_numbers("1-1001", "-t").ok());
  EXPECT_FALSE(parse_numbers("0-4294967296", "-t").ok());
}

}  // namespace
}  // namespace ridge
