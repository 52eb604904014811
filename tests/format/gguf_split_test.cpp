// Split models: found from any part, joined in order, refused when the parts do not belong together.
#include <gtest/gtest.h>

#include "format/gguf.h"
#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::GgufBuilder;
using test::TempFolder;
using test::write_file;

struct Part {
  uint16_t number = 0;  // from 0
  uint16_t count = 3;
  int32_t tensors = 3;  // of all parts
};

GgufBuilder part(const Part& p) {
  GgufBuilder builder;
  if (p.number == 0) builder.string("general.architecture", "llama");
  builder.number<uint16_t>("split.no", p.number).number<uint16_t>("split.count", p.count);
  builder.number<int32_t>("split.tensors.count", p.tensors);
  builder.tensor({.name = "t" + std::to_string(p.number), .shape = {8, 1u + p.number}});
  return builder;
}

std::string part_name(int number, int count) {
  return "m-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) + ".gguf";
}

void write_parts(const TempFolder& folder, int32_t tensors = 3) {
  for (uint16_t i = 0; i < 3; ++i)
    write_file(folder / part_name(i + 1, 3), part({.number = i, .tensors = tensors}).build());
}

std::string refusal(const std::string& path) {
  Result<Gguf> gguf = Gguf::open(path);
  EXPECT_FALSE(gguf.ok());
  if (gguf.ok()) return "";
  EXPECT_EQ(gguf.error().code, ErrorCode::bad_input);
  return gguf.error().message;
}

TEST(GgufSplit, OpensFromAnyPart) {
  TempFolder folder;
  write_parts(folder);
  for (int opened = 1; opened <= 3; ++opened) {
    Result<Gguf> result = Gguf::open(folder / part_name(opened, 3));
    ASSERT_TRUE(result.ok()) << result.error().message;
    const Gguf& gguf = result.value();
    EXPECT_EQ(gguf.metadata().require_string("general.architecture").value(), "llama");
    EXPECT_EQ(gguf.metadata().where, folder / part_name(1, 3));
    ASSERT_EQ(gguf.files().size(), 3u);
    ASSERT_EQ(gguf.tensors().size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(gguf.files()[i].path, folder / part_name(static_cast<int>(i) + 1, 3));
      EXPECT_EQ(gguf.files()[i].bytes, std::filesystem::file_size(gguf.files()[i].path));
      const GgufTensor* tensor = gguf.find("t" + std::to_string(i));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->file, i);
      EXPECT_EQ(tensor->rows(), i + 1);
    }
  }
}

TEST(GgufSplit, AMergedFileStandsAlone) {
  TempFolder folder;
  write_file(folder / "merged.gguf", part({.count = 0}).build());
  EXPECT_TRUE(Gguf::open(folder / "merged.gguf").ok());
}

TEST(GgufSplit, NamesTheMissingPart) {
  TempFolder folder;
  write_parts(folder);
  std::filesystem::remove(folder / part_name(2, 3));
  EXPECT_EQ(
      refusal(folder / part_name(3, 3)),
      folder / "m-00002-of-00003.gguf: part 2 of 3 of this split model is missing; put all parts into one folder");
}

TEST(GgufSplit, RefusesARenamedPart) {
  TempFolder folder;
  write_file(folder / "model.gguf", part({}).build());
  EXPECT_EQ(refusal(folder / "model.gguf"), folder /
                                                "model.gguf: is one of 3 parts of a split model, but is not named like "
                                                "name-00001-of-00003.gguf; give it its own name back");
}

TEST(GgufSplit, RefusesAWrongCount) {
  TempFolder folder;
  write_parts(folder);
  write_file(folder / part_name(3, 3), part({.number = 2, .count = 4}).build());
  EXPECT_EQ(refusal(folder / part_name(1, 3)),
            folder /
                "m-00003-of-00003.gguf: calls itself part 3 of 4, expected part 3 of 3: the parts do not belong "
                "together or were renamed; fetch them again");
}

TEST(GgufSplit, RefusesPartsInTheWrongPlace) {
  TempFolder folder;
  write_parts(folder);
  write_file(folder / part_name(2, 3), part({.number = 2}).build());
  EXPECT_NE(refusal(folder / part_name(1, 3)).find("calls itself part 3 of 3, expected part 2 of 3"),
            std::string::npos);
}

TEST(GgufSplit, RefusesAWrongNumberOfTensors) {
  TempFolder folder;
  write_parts(folder, 4);
  EXPECT_EQ(
      refusal(folder / part_name(1, 3)),
      folder /
          "m-00001-of-00003.gguf: the 3 parts hold 3 tensors, expected 4 (split.tensors.count): a part is damaged "
          "or of another model; fetch them again");
}

TEST(GgufSplit, RefusesATensorInTwoParts) {
  TempFolder folder;
  write_parts(folder);
  GgufBuilder twice;
  twice.number<uint16_t>("split.no", 1).number<uint16_t>("split.count", 3).tensor({.name = "t0", .shape = {8}});
  write_file(folder / part_name(2, 3), twice.build());
  EXPECT_NE(refusal(folder / part_name(1, 3)).find("two tensors are called 't0'"), std::string::npos);
}

TEST(GgufSplit, RefusesAbsurdCounts) {
  TempFolder folder;
  GgufBuilder builder;
  builder.number<uint16_t>("split.no", 0).number<uint64_t>("split.count", 1ull << 60);
  write_file(folder / part_name(1, 3), builder.build());
  EXPECT_NE(refusal(folder / part_name(1, 3)).find("expected at most 99,999"), std::string::npos);
}

TEST(GgufSplit, APartInMemoryHasNoSiblings) {
  Result<Gguf> gguf = parse_gguf(part({}).build(), "bytes");
  ASSERT_FALSE(gguf.ok());
  EXPECT_NE(gguf.error().message.find("is one of 3 parts"), std::string::npos);
}

}  // namespace
}  // namespace ridge
