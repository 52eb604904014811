#include "format/spool_file.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::TempFolder;

TEST(SpoolFile, GivesBackWhatWasAppendedAndLeavesNothing) {
  TempFolder folder;
  std::vector<uint8_t> all;
  {
    auto spool = SpoolFile::create(folder.path());
    ASSERT_TRUE(spool.ok());
    for (size_t n : {size_t{1}, size_t{200'000}, size_t{0}, size_t{5'000}}) {
      std::vector<uint8_t> bytes(n);
      for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(all.size() + 7 * i);
      ASSERT_TRUE(spool.value().append(bytes).ok());
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    EXPECT_EQ(spool.value().size(), all.size());
    std::vector<uint8_t> back(all.size() - 3);
    ASSERT_TRUE(spool.value().read(3, back).ok());
    EXPECT_TRUE(std::equal(back.begin(), back.end(), all.begin() + 3));
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(SpoolFile, SaysWhichFolderIsMissing) {
  auto spool = SpoolFile::create("/nowhere/at/all");
  ASSERT_FALSE(spool.ok());
  EXPECT_EQ(spool.error().code, ErrorCode::io);
  EXPECT_NE(spool.error().message.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace ridge
