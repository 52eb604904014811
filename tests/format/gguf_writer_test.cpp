#include "format/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ridge {
namespace {

Metadata every_kind() {
  Metadata metadata;
  auto& entries = metadata.entries();
  StringPool words;
  for (std::string_view word : {"a", "", "ccc"}) words.push_back(word);
  entries["a.bool"] = true;
  entries["a.int"] = int64_t{-7};
  entries["a.large"] = UINT64_MAX;
  entries["a.number"] = 0.25;
  entries["a.text"] = std::string("text");
  entries["a.words"] = MetadataArray(words);
  entries["a.ints"] = MetadataArray(std::vector<int32_t>{1, -2, 3});
  entries["a.floats"] = MetadataArray(std::vector<float>{0.5f, 1.5f});
  entries["general.alignment"] = int64_t{4096};
  return metadata;
}

// The number of the value's type, as it stands behind its key.
uint32_t type_of(const std::string& header, const std::string& key) {
  uint32_t type = 0;
  std::memcpy(&type, header.data() + header.find(key) + key.size(), sizeof type);
  return type;
}

TEST(GgufWriter, WritesNumbersWith32BitsWhereThatLosesNothing) {
  Metadata metadata;
  auto& entries = metadata.entries();
  entries["small.count"] = int64_t{7};
  entries["largest.count"] = int64_t{UINT32_MAX};
  entries["long.count"] = int64_t{UINT32_MAX} + 1;
  entries["negative.count"] = int64_t{-1};
  entries["short.float"] = double{1e-5f};
  entries["long.float"] = 1e-5;
  std::vector<GgufTensor> tensors = {{.name = "t", .shape = {5, 1, 1, 1}, .dims = 1, .type = Type::F32}};
  const std::string header = gguf_header(metadata, tensors);
  EXPECT_EQ(type_of(header, "small.count"), 4u);  // u32, which llama.cpp demands
  EXPECT_EQ(type_of(header, "largest.count"), 4u);
  EXPECT_EQ(type_of(header, "long.count"), 11u);
  EXPECT_EQ(type_of(header, "negative.count"), 11u);
  EXPECT_EQ(type_of(header, "short.float"), 6u);
  EXPECT_EQ(type_of(header, "long.float"), 12u);
}

TEST(GgufWriter, IsReadBackAsWritten) {
  std::vector<GgufTensor> tensors = {{.name = "first", .shape = {32, 3, 1, 1}, .dims = 2, .type = Type::Q4_0},
                                     {.name = "second", .shape = {5, 1, 1, 1}, .dims = 1, .type = Type::F32},
                                     {.name = "third", .shape = {4, 2, 3, 1}, .dims = 3, .type = Type::F16}};
  const std::string header = gguf_header(every_kind(), tensors);
  std::vector<uint8_t> bytes(tensors.back().offset + tensors.back().bytes);
  std::memcpy(bytes.data(), header.data(), header.size());
  auto parsed = parse_gguf(bytes, "made.gguf");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const Gguf& file = parsed.value();
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const GgufTensor& t : tensors) {
    const GgufTensor* read = file.find(t.name);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->shape, t.shape);
    EXPECT_EQ(read->dims, t.dims);
    EXPECT_EQ(read->type, t.type);
    EXPECT_EQ(read->bytes, t.bytes);
    EXPECT_EQ(read->offset, t.offset);
    EXPECT_EQ(t.offset % kGgufAlignment, 0u);
  }
  EXPECT_EQ(tensors[0].bytes, 3u * 18);
  const Metadata& metadata = file.metadata();
  EXPECT_EQ(metadata.entries().size(), every_kind().entries().size() - 1);
  EXPECT_EQ(metadata.find("general.alignment"), nullptr);
  EXPECT_EQ(metadata.boolean("a.bool").value(), true);
  EXPECT_EQ(std::get<int64_t>(*metadata.find("a.int")), -7);
  EXPECT_EQ(std::get<uint64_t>(*metadata.find("a.large")), UINT64_MAX);
  EXPECT_EQ(metadata.number("a.number").value(), 0.25);
  EXPECT_EQ(metadata.string("a.text").value(), "text");
  const StringPool* words = metadata.strings("a.words").value();
  ASSERT_EQ(words->size(), 3u);
  EXPECT_EQ((*words)[2], "ccc");
  EXPECT_EQ(metadata.numbers("a.ints").value(), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(metadata.numbers("a.floats").value(), (std::vector<double>{0.5, 1.5}));
}

// As writers of the format do: the last tensor is filled up too.
TEST(GgufWriter, FilesEndAtTheAlignment) {
  std::vector<GgufTensor> tensors = {{.name = "a", .shape = {8, 1, 1, 1}, .dims = 1, .type = Type::F32},
                                     {.name = "b", .shape = {1, 1, 1, 1}, .dims = 2, .type = Type::F32}};
  const std::string header = gguf_header({}, tensors);
  EXPECT_EQ(gguf_file_bytes(tensors), header.size() + 2 * kGgufAlignment);
}

}  // namespace
}  // namespace ridge
