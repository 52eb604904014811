// Right files are read right: both versions, every type of value, split models, real vocabularies.
#include "format/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::TempFolder;
using test::ValueType;

Gguf parsed(const GgufBuilder& builder) {
  Result<Gguf> gguf = parse_gguf(builder.build(), "test.gguf");
  EXPECT_TRUE(gguf.ok()) << gguf.error().message;
  return gguf.ok() ? std::move(gguf).value() : Gguf();
}

TEST(Gguf, ReadsTensorsWhereTheyLie) {
  GgufBuilder builder;
  builder.string("general.architecture", "llama");
  builder.tensor({.name = "b.weight", .shape = {64, 3}, .type = Type::Q4_0});
  builder.tensor({.name = "a.weight", .shape = {5, 2, 3, 2}, .type = Type::F16});
  builder.tensor({.name = "c.bias", .shape = {7}});
  Gguf gguf = parsed(builder);

  EXPECT_EQ(gguf.version(), 3u);
  ASSERT_EQ(gguf.tensors().size(), 3u);
  EXPECT_EQ(gguf.tensors()[0].name, "b.weight");  // file order
  const GgufTensor* a = gguf.find("a.weight");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, Type::F16);
  EXPECT_EQ(a->dims, 4u);
  EXPECT_EQ(a->cols(), 5u);
  EXPECT_EQ(a->rows(), 12u);
  EXPECT_EQ(a->bytes, 120u);
  EXPECT_EQ(a->file, 0u);
  const GgufTensor* b = gguf.find("b.weight");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->bytes, 3u * 2 * 18);
  EXPECT_EQ(b->offset, builder.data_begin());
  EXPECT_EQ(a->offset, builder.data_begin() + 128);  // 108 rounded up
  EXPECT_EQ(gguf.find("c.bias")->bytes, 28u);
  EXPECT_EQ(gguf.find("c"), nullptr);
  EXPECT_EQ(gguf.find(""), nullptr);
  EXPECT_EQ(gguf.find("z"), nullptr);
}

TEST(Gguf, ReadsVersion2) {
  GgufBuilder builder;
  builder.version = 2;
  builder.number<uint32_t>("n", 7).tensor({.name = "t", .shape = {4}});
  Gguf gguf = parsed(builder);
  EXPECT_EQ(gguf.version(), 2u);
  EXPECT_EQ(gguf.metadata().require_uint("n").value(), 7u);
  EXPECT_EQ(gguf.tensors().size(), 1u);
}

TEST(Gguf, HonoursTheAlignmentKey) {
  GgufBuilder builder;
  builder.alignment = 256;
  builder.number<uint32_t>("general.alignment", 256);
  builder.tensor({.name = "a", .shape = {1}}).tensor({.name = "b", .shape = {1}});
  Gguf gguf = parsed(builder);
  EXPECT_EQ(gguf.tensors()[0].offset % 256, 0u);
  EXPECT_EQ(gguf.tensors()[1].offset, gguf.tensors()[0].offset + 256);
}

TEST(Gguf, AcceptsFilesWithoutTensorsOrPadding) {
  GgufBuilder builder;
  builder.string("k", "v");
  EXPECT_TRUE(parsed(builder).tensors().empty());
  EXPECT_TRUE(parsed(GgufBuilder()).metadata().entries().empty());
}

TEST(Gguf, ReadsEveryScalar) {
  GgufBuilder builder;
  builder.number<uint8_t>("u8", 255).number<int8_t>("i8", -128);
  builder.number<uint16_t>("u16", 65535).number<int16_t>("i16", -32768);
  builder.number<uint32_t>("u32", 4294967295u).number<int32_t>("i32", std::numeric_limits<int32_t>::min());
  builder.number<uint64_t>("u64", 1ull << 40).number<uint64_t>("huge", ~0ull);
  builder.number<int64_t>("i64", std::numeric_limits<int64_t>::min());
  builder.number<float>("f32", 0.1f).number<double>("f64", 0.1).number<bool>("yes", true).number<bool>("no", false);
  builder.string("text", std::string_view("a\0b", 3)).string("none", "");
  Gguf gguf = parsed(builder);
  const Metadata& m = gguf.metadata();

  EXPECT_EQ(m.require_uint("u8").value(), 255u);
  EXPECT_EQ(m.require_uint("u16").value(), 65535u);
  EXPECT_EQ(m.require_uint("u32").value(), 4294967295u);
  EXPECT_EQ(m.require_uint("u64").value(), 1ull << 40);
  EXPECT_EQ(m.require_uint("huge").value(), ~0ull);
  EXPECT_EQ(*m.number("i8").value(), -128.0);
  EXPECT_EQ(*m.number("i16").value(), -32768.0);
  EXPECT_EQ(*m.number("i32").value(), -2147483648.0);
  EXPECT_EQ(std::get<int64_t>(*m.find("i64")), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*m.number("f32").value(), static_cast<double>(0.1f));
  EXPECT_EQ(*m.number("f64").value(), 0.1);
  EXPECT_TRUE(*m.boolean("yes").value());
  EXPECT_FALSE(*m.boolean("no").value());
  EXPECT_EQ(m.require_string("text").value(), std::string("a\0b", 3));
  EXPECT_EQ(*m.string("none").value(), "");
}

template <class Stored, class Kept>
void expect_array(std::vector<Stored> values) {
  GgufBuilder builder;
  builder.numbers<Stored>("k", values);
  Gguf gguf = parsed(builder);
  const auto* array = std::get_if<MetadataArray>(gguf.metadata().find("k"));
  ASSERT_NE(array, nullptr);
  const auto* kept = std::get_if<std::vector<Kept>>(array);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, std::vector<Kept>(values.begin(), values.end()));
}

TEST(Gguf, ReadsEveryArray) {
  expect_array<uint8_t, int32_t>({0, 255});
  expect_array<int8_t, int32_t>({-128, 127});
  expect_array<uint16_t, int32_t>({0, 65535});
  expect_array<int16_t, int32_t>({-32768, 32767});
  expect_array<uint32_t, int64_t>({0, 4294967295u});
  expect_array<int32_t, int32_t>({-5, 5, std::numeric_limits<int32_t>::min()});
  expect_array<float, float>({0.1f, -1e30f});
  expect_array<double, double>({0.1, -1e300});
  expect_array<bool, int32_t>({true, false, true});
  expect_array<uint64_t, int64_t>({0, std::numeric_limits<int64_t>::max()});
  expect_array<int64_t, int64_t>({std::numeric_limits<int64_t>::min()});
  expect_array<uint16_t, int32_t>({});
  expect_array<uint16_t, int32_t>(std::vector<uint16_t>(5000, 41234));  // more than one piece
}

TEST(Gguf, ReadsArraysOfStrings) {
  GgufBuilder builder;
  builder.strings("pieces", {"a", "", "\xe2\x96\x81the", std::string(70000, 'x')}).strings("empty", {});
  Gguf gguf = parsed(builder);
  const StringPool* pool = gguf.metadata().strings("pieces").value();
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(pool->size(), 4u);
  EXPECT_EQ((*pool)[0], "a");
  EXPECT_EQ((*pool)[1], "");
  EXPECT_EQ((*pool)[2], "\xe2\x96\x81the");
  EXPECT_EQ((*pool)[3].size(), 70000u);
  EXPECT_EQ(gguf.metadata().strings("empty").value()->size(), 0u);
  EXPECT_EQ(gguf.metadata().strings("absent").value(), nullptr);
}

TEST(Metadata, ConvertsNumbersAndArrays) {
  GgufBuilder builder;
  builder.number<uint32_t>("one", 8).numbers<int32_t>("many", {8, 0, 3}).numbers<int32_t>("signs", {8, -1});
  builder.number<float>("half", 0.5f).numbers<float>("floats", {0.5f, 2}).numbers<bool>("flags", {true, false});
  Gguf gguf = parsed(builder);
  const Metadata& m = gguf.metadata();
  EXPECT_EQ(m.uints("one").value(), std::vector<uint64_t>{8});
  EXPECT_EQ(m.uints("many").value(), (std::vector<uint64_t>{8, 0, 3}));
  EXPECT_EQ(m.uints("flags").value(), (std::vector<uint64_t>{1, 0}));
  EXPECT_TRUE(m.uints("absent").value().empty());
  EXPECT_FALSE(m.uints("signs").ok());
  EXPECT_FALSE(m.uints("floats").ok());
  EXPECT_EQ(m.numbers("half").value(), std::vector<double>{0.5});
  EXPECT_EQ(m.numbers("floats").value(), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(m.numbers("many").value(), (std::vector<double>{8, 0, 3}));
  EXPECT_TRUE(m.numbers("absent").value().empty());
}

TEST(Metadata, SaysWhichKeyIsWrongAndHow) {
  GgufBuilder builder;
  builder.string("text", "x").number<int32_t>("minus", -3).strings("list", {"a"}).number<float>("real", 1);
  Gguf gguf = parsed(builder);
  const Metadata& m = gguf.metadata();
  EXPECT_EQ(m.require_uint("layers").error().message,
            "test.gguf: metadata key 'layers' is missing, expected an integer; convert the model again");
  EXPECT_EQ(m.require_uint("text").error().message,
            "test.gguf: metadata key 'text' is a string, expected an integer; convert the model again");
  EXPECT_EQ(m.uint("minus").error().message,
            "test.gguf: metadata key 'minus' holds -3, expected a whole number of at least 0; convert the model again");
  EXPECT_EQ(m.uint("minus").error().code, ErrorCode::bad_input);
  EXPECT_FALSE(m.uint("real").ok());
  EXPECT_FALSE(m.boolean("minus").ok());
  EXPECT_FALSE(m.string("list").ok());
  EXPECT_FALSE(m.strings("text").ok());
  EXPECT_FALSE(m.number("text").ok());
  EXPECT_FALSE(m.numbers("list").ok());
  EXPECT_FALSE(m.numbers("text").ok());
  EXPECT_FALSE(m.require_string("absent").ok());
  EXPECT_FALSE(m.uint("absent").value().has_value());
}

TEST(Metadata, HandsArraysOut) {
  GgufBuilder builder;
  builder.strings("pieces", {"a", "b"}).number<uint32_t>("n", 1);
  Gguf gguf = parsed(builder);
  EXPECT_FALSE(gguf.metadata().take_array("n").has_value());
  EXPECT_NE(gguf.metadata().find("n"), nullptr);
  std::optional<MetadataArray> taken = gguf.metadata().take_array("pieces");
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(std::get<StringPool>(*taken)[1], "b");
  EXPECT_EQ(gguf.metadata().find("pieces"), nullptr);
  EXPECT_FALSE(gguf.metadata().take_array("pieces").has_value());
  gguf.metadata().erase("n");
  gguf.metadata().erase("never there");
  EXPECT_TRUE(gguf.metadata().entries().empty());
}

// Real files, when the larger golden data is here.
std::vector<std::string> shared_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(RIDGE_SHARED_DIR) + folder, absent)) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(Gguf, ReadsTheVocabularies) {
  std::vector<std::string> paths = shared_files("/vocab");
  if (paths.empty()) GTEST_SKIP() << "needs ../shared/vocab";
  for (const std::string& path : paths) {
    Result<Gguf> gguf = Gguf::open(path);
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    const StringPool* pieces = gguf.value().metadata().strings("tokenizer.ggml.tokens").value();
    ASSERT_NE(pieces, nullptr) << path;
    EXPECT_GT(pieces->size(), 30'000u) << path;
    EXPECT_EQ(gguf.value().metadata().uints("tokenizer.ggml.token_type").value().size(), pieces->size()) << path;
  }
}

TEST(Gguf, ReadsTheTinyModels) {
  std::vector<std::string> paths = shared_files("/golden/tiny");
  if (paths.empty()) GTEST_SKIP() << "needs ../shared/golden/tiny";
  for (const std::string& path : paths) {
    Result<Gguf> gguf = Gguf::open(path);
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    EXPECT_NE(gguf.value().find("token_embd.weight"), nullptr) << path;
    EXPECT_EQ(gguf.value().files()[0].bytes, std::filesystem::file_size(path));
  }
}

}  // namespace
}  // namespace ridge
