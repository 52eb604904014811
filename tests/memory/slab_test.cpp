#include "memory/slab.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <numeric>

#include "base/units.h"
#include "machine/memory_limits.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

TEST(Slab, EmptyIsNothing) {
  auto slab = Slab::allocate(0, {});
  ASSERT_TRUE(slab.ok());
  EXPECT_EQ(slab.value().data(), nullptr);
  EXPECT_EQ(slab.value().bytes(), 0u);
  EXPECT_EQ(Slab::charge(0), 0u);
}

TEST(Slab, SmallOnesRoundToPages) {
  auto slab = Slab::allocate(4097, {});
  ASSERT_TRUE(slab.ok());
  EXPECT_EQ(slab.value().bytes(), 8192u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.value().data()) % 4096, 0u);
  EXPECT_GE(Slab::charge(4097), 8192u);
}

TEST(Slab, LargeOnesAreAlignedToHugePages) {
  for (bool huge : {false, true}) {
    auto slab = Slab::allocate(3 * kMiB, {.huge_pages = huge});
    ASSERT_TRUE(slab.ok());
    EXPECT_EQ(slab.value().bytes(), 4 * kMiB);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.value().data()) % (2 * kMiB), 0u);
    std::span<uint8_t> bytes = slab.value().span();
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}), 0u);
    bytes.front() = bytes.back() = 1;
  }
}

TEST(Slab, IsTouchedAtOnceAndWithinItsCharge) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted, too";
  for (bool huge : {false, true}) {
    constexpr uint64_t kBytes = 37 * kMiB;
    ProcessMemory before = process_memory();
    auto slab = Slab::allocate(kBytes, {.huge_pages = huge});
    ASSERT_TRUE(slab.ok());
    ProcessMemory after = process_memory();
    // The kernel counts resident pages per thread and adds them up late: up to 64 pages are unseen.
    EXPECT_GE(after.anonymous + 64 * 4096, before.anonymous + kBytes);
    EXPECT_LE(after.anonymous + after.page_tables,
              before.anonymous + before.page_tables + Slab::charge(kBytes) + 64 * 4096);
    slab.value().reset();
    EXPECT_LT(process_memory().anonymous, after.anonymous - 30 * kMiB);
  }
}

TEST(Slab, MovesLeaveNothingBehind) {
  Slab a = Slab::allocate(5000, {}).value();
  uint8_t* data = a.data();
  Slab b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);
  Slab c = Slab::allocate(100, {}).value();
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
}

TEST(Slab, TooMuchIsAnErrorThatSaysWhat) {
  for (uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX}) {
    auto slab = Slab::allocate(bytes, {.what = "memory for stream slots"});
    ASSERT_FALSE(slab.ok());
    EXPECT_EQ(slab.error().code, ErrorCode::does_not_fit);
    EXPECT_NE(slab.error().message.find("memory for stream slots"), std::string::npos);
  }
}

}  // namespace
}  // namespace ridge
