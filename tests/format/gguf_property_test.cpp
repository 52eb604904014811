// Files cut at every byte are refused; files with flipped bits are refused or sound; neither costs memory beyond the
// bound that gguf_reader.h states.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "format/gguf.h"
#include "tests/format/allocation_count.h"
#include "tests/format/gguf_builder.h"
#include "tests/format/gguf_invariants.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::AllocationPeak;
using test::Bytes;
using test::GgufBuilder;

GgufBuilder varied() {
  GgufBuilder builder;
  builder.string("general.architecture", "llama").number<uint32_t>("general.alignment", 32);
  builder.number<uint8_t>("u8", 1).number<int8_t>("i8", -1).number<uint16_t>("u16", 2).number<int16_t>("i16", -2);
  builder.number<int32_t>("i32", -3).number<uint64_t>("u64", 4).number<int64_t>("i64", -4);
  builder.number<float>("f32", 0.5f).number<double>("f64", 0.25).number<bool>("flag", true);
  builder.strings("pieces", {"a", "", "bc", "def"}).numbers<float>("scores", {1, 2, 3, 4});
  builder.numbers<int32_t>("types", {1, 1, 1, 3}).numbers<uint8_t>("bytes", {1, 2, 3});
  builder.numbers<bool>("flags", {true, false}).numbers<uint64_t>("wide", {5, 6}).strings("none", {});
  builder.tensor({.name = "token_embd.weight", .shape = {64, 4}, .type = Type::Q4_0});
  builder.tensor({.name = "output_norm.weight", .shape = {64}});
  builder.tensor({.name = "blk.0.exps", .shape = {32, 2, 3}, .type = Type::Q8_0});
  builder.tensor({.name = "blk.0.k", .shape = {256, 2}, .type = Type::Q4_K});
  return builder;
}

// Five times the bytes, the map nodes of the entries (at most 16,384, of 14 bytes or more), and some for one Gguf.
size_t memory_bound(size_t file_bytes) {
  return 5 * file_bytes + 10 * std::min<size_t>(file_bytes, 16'384 * 14) + 4096;
}

void expect_sound_or_refused(std::span<const uint8_t> bytes) {
  AllocationPeak peak;
  Result<Gguf> gguf = parse_gguf(bytes, "m.gguf");
  ASSERT_LE(peak.bytes(), memory_bound(bytes.size()));
  if (!gguf.ok()) {
    ASSERT_EQ(gguf.error().code, ErrorCode::bad_input) << gguf.error().message;
    ASSERT_EQ(gguf.error().message.find('\n'), std::string::npos) << gguf.error().message;
    return;
  }
  ASSERT_EQ(test::broken_invariant(gguf.value(), bytes.size()), "");
}

void expect_cuts_refused(std::span<const uint8_t> bytes, size_t from, size_t to, size_t step) {
  for (size_t length = from; length < to; length += step) {
    AllocationPeak peak;
    Result<Gguf> gguf = parse_gguf(bytes.subspan(0, length), "m.gguf");
    ASSERT_FALSE(gguf.ok()) << "cut at " << length;
    ASSERT_LE(peak.bytes(), memory_bound(length));
    if (length == 0) continue;
    ASSERT_NE(gguf.error().message.find("cut short"), std::string::npos) << length << ": " << gguf.error().message;
  }
}

void flip_bits(std::span<const uint8_t> original, size_t within, int rounds, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(original.begin(), original.end());
  for (int i = 0; i < rounds; ++i) {
    std::copy_n(original.begin(), within, bytes.begin());
    // Mostly one bit; sometimes several, or a byte of all ones, which makes counts and lengths absurd.
    for (uint32_t flips = 1 + (random() % 4 == 0 ? random() % 8 : 0); flips > 0; --flips) {
      size_t at = random() % within;
      bytes[at] = static_cast<uint8_t>(random() % 8 == 0 ? 0xff : bytes[at] ^ (1u << random() % 8));
    }
    ASSERT_NO_FATAL_FAILURE(expect_sound_or_refused(bytes)) << "seed " << seed << ", round " << i;
  }
}

TEST(GgufProperty, EveryCutIsRefused) {
  GgufBuilder builder = varied();
  for (uint32_t version : {2u, 3u}) {
    builder.version = version;
    Bytes bytes = builder.build();
    ASSERT_TRUE(parse_gguf(bytes, "m.gguf").ok());
    expect_cuts_refused(bytes, 0, bytes.size(), 1);
  }
}

TEST(GgufProperty, FlippedBitsAreRefusedOrHarmless) {
  GgufBuilder builder = varied();
  Bytes bytes = builder.build();
  flip_bits(bytes, builder.head_bytes(), 60'000, 1);
}

TEST(GgufProperty, RandomBytesAfterAGoodHeader) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    GgufBuilder builder;
    builder.entry_count = random() % 4;
    builder.tensor_count = random() % 4;
    Bytes bytes = builder.build();
    // Small numbers are likely, so that lengths and types often make sense.
    size_t extra = random() % 200;
    for (size_t k = 0; k < extra; ++k) bytes.push_back(static_cast<uint8_t>(random() % 3 == 0 ? random() % 16 : 0));
    ASSERT_NO_FATAL_FAILURE(expect_sound_or_refused(bytes)) << "round " << i;
  }
}

// Files made to cost as much memory as possible for their size.
TEST(GgufProperty, GreedyFilesStayWithinTheBound) {
  GgufBuilder bytes;
  bytes.numbers<uint8_t>("k", std::vector<uint8_t>(1 << 20, 1));
  expect_sound_or_refused(bytes.build());

  GgufBuilder empty_strings;
  empty_strings.strings("k", std::vector<std::string>(1 << 17));
  expect_sound_or_refused(empty_strings.build());

  GgufBuilder long_strings;
  long_strings.strings("k", {std::string(1 << 20, 'a'), std::string((1 << 20) + 1, 'b')});
  expect_sound_or_refused(long_strings.build());

  GgufBuilder entries;
  for (int i = 0; i < 16'384; ++i) entries.number<uint8_t>("k" + std::to_string(i), 1);
  expect_sound_or_refused(entries.build());

  GgufBuilder tensors;
  tensors.alignment = 1;
  tensors.number<uint32_t>("general.alignment", 1);
  for (int i = 0; i < 20'000; ++i)
    tensors.tensor({.name = std::to_string(i), .shape = {}, .type = Type::F16, .data = Bytes(2)});
  expect_sound_or_refused(tensors.build());
}

TEST(GgufProperty, TinyModelsCutAndFlipped) {
  std::string folder = std::string(RIDGE_SHARED_DIR) + "/golden/tiny/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs ../shared/golden/tiny";
  for (const char* name : {"llama.gguf", "deepseek2-absorbed.gguf", "gemma3.gguf", "gpt-oss.gguf", "type-Q4_K.gguf"}) {
    Bytes bytes = test::read_file(folder + name);
    Result<Gguf> gguf = parse_gguf(bytes, name);
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    uint64_t head = bytes.size();
    for (const GgufTensor& t : gguf.value().tensors()) head = std::min(head, t.offset);
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(expect_cuts_refused(bytes, 0, head, 1));
    ASSERT_NO_FATAL_FAILURE(expect_cuts_refused(bytes, head, bytes.size(), 4099));
    ASSERT_NO_FATAL_FAILURE(flip_bits(bytes, head, 1500, 3));
  }
}

}  // namespace
}  // namespace ridge
