#include "memory/io_facts.h"

#include <gtest/gtest.h>

#include "tests/memory/fixture.h"

namespace ridge {
namespace {

class IoFactsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "weights";
    test::write_clean_file(path_, test::random_bytes(100'000, 5));
  }
  IoFacts facts(Syscalls* calls = nullptr) {
    auto result = io_facts(path_, calls);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return std::move(result).value();
  }

  test::TempFolder folder_;
  std::string path_;
};

TEST_F(IoFactsTest, TellsWhatARunWouldUse) {
  const IoFacts f = facts();
  EXPECT_TRUE(f.read_works) << f.read_error;
  EXPECT_EQ(f.direct, f.refusal.empty());
  EXPECT_FALSE(f.engine.empty());
  EXPECT_EQ(test::cached_pages(path_), 0u);
}

TEST_F(IoFactsTest, RefusedDirectReadsAreToldWithTheirReason) {
  for (bool at_open : {true, false}) {
    test::FaultySyscalls calls;
    calls.refuse_direct_open = at_open;
    calls.refuse_direct_read = !at_open;
    const IoFacts f = facts(&calls);
    EXPECT_FALSE(f.direct);
    EXPECT_NE(f.refusal.find("Invalid argument"), std::string::npos) << f.refusal;
    EXPECT_FALSE(f.uring_tried);
    EXPECT_TRUE(f.read_works) << "a refusal costs copies, not the run";
  }
}

TEST_F(IoFactsTest, AForbiddenRingIsToldWithItsError) {
  if (!facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << facts().refusal;
  for (int error : {EPERM, ENOSYS, ENOMEM}) {
    test::FaultySyscalls calls;
    calls.setup_error = -error;
    const IoFacts f = facts(&calls);
    if (!f.uring_tried) GTEST_SKIP() << "built without io_uring";
    EXPECT_EQ(f.uring_error, error);
    EXPECT_TRUE(f.read_works);
    EXPECT_EQ(f.engine.find("pread"), 0u) << f.engine;
  }
}

TEST_F(IoFactsTest, AnUnreadableDeviceIsTold) {
  test::FaultySyscalls calls;
  calls.fault = [](int64_t, int) -> int64_t { return -EIO; };
  const IoFacts f = facts(&calls);
  EXPECT_FALSE(f.read_works);
  EXPECT_NE(f.read_error.find("Input/output error"), std::string::npos) << f.read_error;
}

TEST_F(IoFactsTest, AMissingFileIsBadInput) {
  auto f = io_facts(folder_ / "absent");
  ASSERT_FALSE(f.ok());
  EXPECT_EQ(f.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge
