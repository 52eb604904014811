#include "format/gguf_raw.h"

#include <gtest/gtest.h>

#include <fstream>

#include "format/gguf_writer.h"
#include "tests/temp_folder.h"

namespace ridge::test {
namespace {

// A header with all kinds of values, and two tensors of zeros.
std::string write_model(const std::string& path) {
  Metadata meta;
  meta.entries()["general.architecture"] = std::string("llama");
  meta.entries()["general.file_type"] = int64_t{0};
  meta.entries()["a.bool"] = true;
  meta.entries()["a.double"] = 0.1;
  meta.entries()["a.large"] = int64_t{1} << 40;
  StringPool words;
  words.push_back("one");
  words.push_back("");
  meta.entries()["a.words"] = MetadataArray(std::move(words));
  meta.entries()["a.numbers"] = MetadataArray(std::vector<float>{1, 2.5f});
  std::vector<GgufTensor> tensors = {{.name = "x", .shape = {33, 2, 1, 1}, .dims = 2, .type = Type::F16},
                                     {.name = "y", .shape = {5, 1, 1, 1}, .dims = 1}};
  std::string text = gguf_header(meta, tensors);
  text.resize((tensors[1].offset + tensors[1].bytes + 31) / 32 * 32, '\0');
  std::ofstream(path, std::ios::binary) << text;
  return text;
}

TEST(GgufRaw, WritesTheSameBytes) {
  TempFolder folder;
  const std::string path = folder / "a.gguf", text = write_model(path);
  const Result<Gguf> gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok());
  const Result<GgufRaw> raw = GgufRaw::read(gguf.value());
  ASSERT_TRUE(raw.ok());
  std::vector<GgufTensor> tensors(gguf.value().tensors().begin(), gguf.value().tensors().end());
  raw.value().lay_out(tensors);
  const std::string header = raw.value().header(tensors);
  EXPECT_EQ(header, text.substr(0, header.size()));
  EXPECT_EQ(raw.value().header_bytes(tensors), header.size());
  EXPECT_EQ(raw.value().file_bytes(tensors), text.size());
}

TEST(GgufRaw, SetsOneKeyInItsPlaceAndAddsAnother) {
  TempFolder folder;
  const std::string path = folder / "a.gguf", text = write_model(path);
  const Result<Gguf> gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok());
  GgufRaw raw = std::move(GgufRaw::read(gguf.value())).value();
  raw.set("general.file_type", 7);
  raw.set("b.new", 3);
  std::vector<GgufTensor> tensors(gguf.value().tensors().begin(), gguf.value().tensors().end());
  tensors[0].type = Type::F32;
  raw.lay_out(tensors);
  std::string changed = raw.header(tensors);
  changed.resize(raw.file_bytes(tensors), '\0');
  std::ofstream(folder / "b.gguf", std::ios::binary) << changed;
  const Result<Gguf> back = Gguf::open(folder / "b.gguf");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back.value().metadata().require_uint("general.file_type").value(), 7u);
  EXPECT_EQ(back.value().metadata().require_uint("b.new").value(), 3u);
  EXPECT_EQ(back.value().metadata().number("a.double").value(), gguf.value().metadata().number("a.double").value());
  EXPECT_EQ(back.value().find("x")->type, Type::F32);
  EXPECT_EQ(back.value().find("x")->bytes, 33u * 2 * 4);
}

// The file was replaced after it was opened: a line, never a crash.
TEST(GgufRaw, NoticesAnotherFile) {
  TempFolder folder;
  const std::string path = folder / "a.gguf", text = write_model(path);
  const Result<Gguf> gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok());
  for (size_t size = 0; size < text.size(); size += 7) {
    std::ofstream(path, std::ios::binary) << text.substr(0, size);
    const Result<GgufRaw> raw = GgufRaw::read(gguf.value());
    if (!raw.ok()) {
      EXPECT_EQ(raw.error().code, ErrorCode::bad_input);
    }
  }
  std::ofstream(path, std::ios::binary) << text.substr(0, 40);
  EXPECT_FALSE(GgufRaw::read(gguf.value()).ok());
}

}  // namespace
}  // namespace ridge::test
