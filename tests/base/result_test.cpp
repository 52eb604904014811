#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace ridge {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return bad_input("odd", 7);
  return n / 2;
}

Result<int> quarter(int n) {
  int once = RIDGE_TRY(half(n));
  return RIDGE_TRY(half(once));
}

Result<void> even(int n) {
  RIDGE_TRY(half(n));
  return {};
}

Result<int> sum_of_quarters(int a, int b) {
  RIDGE_TRY(even(a));
  return RIDGE_TRY(quarter(a)) + RIDGE_TRY(quarter(b));
}

TEST(Result, CarriesAValue) {
  auto r = half(8);
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(r.value(), 4);
}

TEST(Result, CarriesAnErrorWithItsCodeAndOffset) {
  auto r = half(3);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::bad_input);
  EXPECT_EQ(r.error().message, "odd");
  EXPECT_EQ(r.error().offset, 7u);
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");  // at the second step
  EXPECT_EQ(quarter(5).error().message, "odd");  // at the first
  EXPECT_TRUE(even(2).ok());
  EXPECT_FALSE(even(1).ok());
  EXPECT_EQ(sum_of_quarters(4, 8).value(), 3);
  EXPECT_FALSE(sum_of_quarters(4, 6).ok());
}

Result<std::unique_ptr<int>> boxed(int n) {
  if (n < 0) return usage_error("negative");
  return std::make_unique<int>(n);
}

Result<int> unboxed(int n) {
  std::unique_ptr<int> box = RIDGE_TRY(boxed(n));
  return *box;
}

TEST(Result, MovesWhatCannotBeCopied) {
  EXPECT_EQ(unboxed(5).value(), 5);
  EXPECT_EQ(unboxed(-1).error().code, ErrorCode::usage);
  std::unique_ptr<int> taken = boxed(9).value();
  EXPECT_EQ(*taken, 9);
}

Result<int> nested(int n) { return RIDGE_TRY(half(RIDGE_TRY(half(n)))); }

TEST(Result, TryNests) {
  EXPECT_EQ(nested(12).value(), 3);
  EXPECT_FALSE(nested(6).ok());
}

TEST(Result, CodesAreTheExitCodesOfTheProgram) {
  EXPECT_EQ(static_cast<int>(usage_error("").code), 2);
  EXPECT_EQ(static_cast<int>(bad_input("").code), 3);
  EXPECT_EQ(static_cast<int>(does_not_fit("").code), 4);
  EXPECT_EQ(static_cast<int>(io_error("").code), 5);
  EXPECT_EQ(static_cast<int>(ErrorCode::refused), 6);
  EXPECT_EQ(static_cast<int>(Error{}.code), 70);
}

TEST(ResultDeathTest, TheWrongQuestionIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((void)half(3).value(), testing::ExitedWithCode(70), "ridge: bug at .*value\\(\\) of a failed Result");
  EXPECT_EXIT((void)half(4).error(), testing::ExitedWithCode(70), "ridge: bug at .*error\\(\\) of a good Result");
  EXPECT_EXIT(even(1).value(), testing::ExitedWithCode(70), "please report it");
}

TEST(CheckDeathTest, NamesTheConditionAndTheReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RIDGE_CHECK(2 > 1, "numbers are ordered");
  EXPECT_EXIT(RIDGE_CHECK(1 > 2, "numbers are ordered"), testing::ExitedWithCode(70),
              "result_test.cpp:[0-9]+: numbers are ordered \\(1 > 2\\)");
}

}  // namespace
}  // namespace ridge
