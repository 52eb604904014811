#include "format/imatrix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "format/gguf.h"
#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

test::Bytes raw_floats(std::initializer_list<float> values) {
  test::Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

TEST(Imatrix, ComesBackAsItWasWritten) {
  test::TempFolder folder;
  Imatrix m;
  m.datasets = {"notes.txt", "code"};
  m.chunks = 7;
  m.chunk_tokens = 512;
  m.entries.push_back(
      {.name = "blk.0.ffn_down_exps.weight", .columns = 2, .in_sum2 = {1, 2, 0, 0, 5, 6.5}, .counts = {3, 0, 9}});
  m.entries.push_back({.name = "blk.0.ffn_up.weight", .columns = 3, .in_sum2 = {0.25, 4, 9}, .counts = {12}});
  ASSERT_TRUE(write_imatrix(m, folder / "m.gguf").ok());
  auto read = read_imatrix(folder / "m.gguf");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().datasets, m.datasets);
  EXPECT_EQ(read.value().chunks, 7u);
  EXPECT_EQ(read.value().chunk_tokens, 512u);
  ASSERT_EQ(read.value().entries.size(), 2u);
  for (const ImatrixEntry& e : m.entries) {
    const ImatrixEntry* back = read.value().find(e.name);
    ASSERT_NE(back, nullptr) << e.name;
    EXPECT_EQ(back->columns, e.columns);
    EXPECT_EQ(back->in_sum2, e.in_sum2);
    EXPECT_EQ(back->counts, e.counts);
  }
  EXPECT_EQ(read.value().find("blk.1.ffn_up.weight"), nullptr);
}

TEST(Imatrix, NumbersOfChunksHave32Bits) {
  test::TempFolder folder;
  Imatrix m;
  m.chunks = 7;
  m.entries.push_back({.name = "blk.0.ffn_up.weight", .columns = 1, .in_sum2 = {1}, .counts = {1}});
  ASSERT_TRUE(write_imatrix(m, folder / "m.gguf").ok());
  const test::Bytes bytes = test::read_file(folder / "m.gguf");
  const std::string text(bytes.begin(), bytes.end()), key = "imatrix.chunk_count";
  const size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos);
  uint32_t type = 0, value = 0;
  std::memcpy(&type, bytes.data() + at + key.size(), 4);
  std::memcpy(&value, bytes.data() + at + key.size() + 4, 4);
  EXPECT_EQ(type, 4u) << "llama.cpp insists on u32";
  EXPECT_EQ(value, 7u);
  EXPECT_EQ(bytes.size() % 32, 0u) << "llama.cpp reads the last tensor with its padding";
}

class HostileImatrix : public ::testing::Test {
 protected:
  void refuse(const test::GgufBuilder& gguf, const char* word) {
    test::write_file(folder_ / "bad.gguf", gguf.build());
    auto read = read_imatrix(folder_ / "bad.gguf");
    ASSERT_FALSE(read.ok()) << word;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  }
  test::TempFolder folder_;
};

TEST_F(HostileImatrix, IsRefused) {
  refuse(test::GgufBuilder().tensor({.name = "blk.0.ffn_up.weight", .shape = {4, 1}}), "no sums");
  refuse(test::GgufBuilder().tensor({.name = "a.in_sum2", .shape = {4, 1}, .data = raw_floats({1, 1, 1, 1})}),
         "no counts");
  refuse(test::GgufBuilder()
             .tensor({.name = "a.in_sum2", .shape = {2, 2}, .data = raw_floats({1, 1, 1, 1})})
             .tensor({.name = "a.counts", .shape = {1, 1}, .data = raw_floats({1})}),
         "different shapes");
  for (const float bad : {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    refuse(test::GgufBuilder()
               .tensor({.name = "a.in_sum2", .shape = {2, 1}, .data = raw_floats({1, bad})})
               .tensor({.name = "a.counts", .shape = {1, 1}, .data = raw_floats({1})}),
           "no sum of squares");
  }
  refuse(test::GgufBuilder().string("general.type", "adapter").tensor({.name = "a.in_sum2", .shape = {4, 1}}),
         "not imatrix");
}

}  // namespace
}  // namespace ridge
