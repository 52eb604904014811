#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ridge {
namespace {

int call(FunctionRef<int(int)> f, int n) { return f(n); }
int twice(int n) { return 2 * n; }

TEST(FunctionRef, CallsLambdasWithTheirState) {
  int offset = 10;
  auto add = [&](int n) { return offset++ + n; };
  EXPECT_EQ(call(add, 1), 11);
  EXPECT_EQ(call(add, 1), 12);  // the same object, not a copy
  EXPECT_EQ(offset, 12);
}

TEST(FunctionRef, CallsConstAndMutableObjects) {
  const auto constant = [](int n) { return n + 1; };
  auto counting = [calls = 0](int n) mutable { return n + ++calls; };
  EXPECT_EQ(call(constant, 1), 2);
  EXPECT_EQ(call(counting, 1), 2);
  EXPECT_EQ(call(counting, 1), 3);
}

TEST(FunctionRef, CallsFunctionPointers) {
  int (*pointer)(int) = twice;
  EXPECT_EQ(call(pointer, 4), 8);
  EXPECT_EQ(call(&twice, 4), 8);
}

TEST(FunctionRef, PassesArgumentsThrough) {
  auto take = [](std::unique_ptr<int> p, std::string& s) { s += std::to_string(*p); };
  FunctionRef<void(std::unique_ptr<int>, std::string&)> ref = take;
  std::string text = "n=";
  ref(std::make_unique<int>(7), text);
  EXPECT_EQ(text, "n=7");
}

TEST(FunctionRef, CopiesReferToTheSameCallable) {
  int calls = 0;
  auto count = [&] { ++calls; };
  FunctionRef<void()> first = count;
  FunctionRef<void()> second = first;
  first();
  second();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ridge
