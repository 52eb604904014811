// Wrong files are refused, each with a message that says what, where, and what to do.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "format/gguf.h"
#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::append;
using test::append_string;
using test::Bytes;
using test::GgufBuilder;
using test::TempFolder;
using test::ValueType;
using test::write_file;

constexpr uint64_t kHuge = 1ull << 62;

void expect_refused(const Bytes& bytes, const std::string& message) {
  Result<Gguf> gguf = parse_gguf(bytes, "m.gguf");
  ASSERT_FALSE(gguf.ok()) << "expected: " << message;
  EXPECT_EQ(gguf.error().code, ErrorCode::bad_input);
  EXPECT_EQ(gguf.error().message, "m.gguf: " + message);
}

void expect_refused(const GgufBuilder& builder, const std::string& message) {
  expect_refused(builder.build(), message);
}

Bytes text_bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(GgufHostile, NotGguf) {
  expect_refused(Bytes(), "the file is empty, expected a GGUF model; fetch it again");
  expect_refused(text_bytes("hello, world"),
                 "not a GGUF file: it begins with 'hell', expected 'GGUF'; give a .gguf file");
  expect_refused(text_bytes("\x01\x02"),
                 "not a GGUF file: it begins with '\\x01\\x02', expected 'GGUF'; give a .gguf file");
  expect_refused(text_bytes("PK\x03\x04......"),
                 "not a GGUF file: it is a zip archive, perhaps a PyTorch checkpoint; convert it to GGUF first");
  expect_refused(text_bytes("\x80\x02}q"),
                 "not a GGUF file: it is a Python pickle, perhaps an old PyTorch checkpoint; convert it to GGUF first");
  Bytes safetensors;
  append<uint64_t>(safetensors, 900);
  for (char c : std::string_view("{\"a\":")) safetensors.push_back(static_cast<uint8_t>(c));
  expect_refused(safetensors,
                 "not a GGUF file: it is a safetensors file; convert it to GGUF first "
                 "(`ridge image` takes those of image models)");
  expect_refused(text_bytes("RIDGEPCK...."), "not a GGUF file: it is a pack; give the file that was packed");
  expect_refused(text_bytes("version https://git-lfs.github.com/spec/v1"),
                 "not a GGUF file: it is a Git LFS pointer, not the file itself; run 'git lfs pull'");
  expect_refused(text_bytes("<!DOCTYPE html>"), "not a GGUF file: it is a web page; download the file itself");
  expect_refused(text_bytes("tjgg\1\0\0\0"),
                 "not a GGUF file: it is a GGJT file from before GGUF; fetch the model as GGUF");
}

TEST(GgufHostile, Versions) {
  GgufBuilder builder;
  builder.version = 1;
  expect_refused(builder, "GGUF version 1; Ridge reads versions 2 and 3: fetch or convert the model anew");
  builder.version = 4;
  expect_refused(builder, "GGUF version 4; Ridge reads versions 2 and 3: fetch or convert the model anew");
  builder.version = 0;
  expect_refused(builder, "GGUF version 0; Ridge reads versions 2 and 3: fetch or convert the model anew");
  builder.version = 0x03000000;
  expect_refused(builder, "a big-endian GGUF file; Ridge reads little-endian ones: fetch or convert the model as such");
}

TEST(GgufHostile, CutHeader) {
  expect_refused(text_bytes("GG"), "the file ends at 2, inside the header: it is cut short; fetch it again");
  Bytes bytes = GgufBuilder().build();
  bytes.resize(23);
  expect_refused(bytes, "the file ends at 23, inside the header: it is cut short; fetch it again");
}

TEST(GgufHostile, AbsurdCounts) {
  GgufBuilder tensors;
  tensors.tensor_count = kHuge;
  expect_refused(
      tensors,
      "the header claims 4,611,686,018,427,387,904 tensors, but only 0 bytes follow: the file is cut short or "
      "damaged; fetch it again");
  GgufBuilder entries;
  entries.entry_count = ~0ull;
  expect_refused(
      entries,
      "the header claims 18,446,744,073,709,551,615 metadata entries, but only 0 bytes follow: the file is cut "
      "short or damaged; fetch it again");
  // As many as the bytes allow, and still too many.
  GgufBuilder padded;
  padded.string("k", std::string(1 << 18, 'x'));
  padded.entry_count = 18'000;
  expect_refused(
      padded,
      "the header claims 18,000 metadata entries and 0 tensors; Ridge reads at most 16,384 and 262,144: the file is "
      "damaged; fetch it again");
}

TEST(GgufHostile, Keys) {
  GgufBuilder twice;
  twice.number<uint8_t>("a", 1).number<uint8_t>("a", 2);
  expect_refused(twice,
                 "metadata entry 2 of 2 ('a') has the key of an earlier entry: the file is damaged; fetch it again");
  GgufBuilder empty;
  empty.number<uint8_t>("", 1).string("b", "text");
  expect_refused(empty, "metadata entry 1 of 2 has an empty key: the file is damaged; fetch it again");
  GgufBuilder long_key;
  long_key.number<uint8_t>(std::string(70'000, 'k'), 1);
  expect_refused(
      long_key,
      "metadata entry 1 of 1 claims 70,000 bytes of a key; at most 65,535 are allowed: the file is damaged; fetch "
      "it again");
  GgufBuilder escape;
  escape.raw("a\x1b[2J", 77, {});
  escape.number<uint8_t>("b", 1);
  expect_refused(
      escape,
      "metadata entry 1 of 2 ('a\\x1b[2J') has a value of type 77, expected 0 to 12: the file is damaged; fetch it "
      "again");
}

TEST(GgufHostile, Values) {
  Bytes length;
  append<uint64_t>(length, kHuge);
  GgufBuilder long_string;
  long_string.raw("k", 8, length);
  expect_refused(
      long_string,
      "metadata entry 1 of 1 ('k') claims 4,611,686,018,427,387,904 bytes of a string, but only 0 bytes follow: "
      "the file is cut short or damaged; fetch it again");
  GgufBuilder boolean;
  boolean.raw("k", 7, {2});
  expect_refused(
      boolean,
      "metadata entry 1 of 1 ('k') holds 2 as a boolean, expected 0 or 1: the file is damaged; fetch it again");
  GgufBuilder cut;
  cut.raw("key", 12, {1, 2, 3, 4});
  expect_refused(cut, "the file ends at 43, inside metadata entry 1 of 1 ('key'): it is cut short; fetch it again");
}

Bytes array(uint32_t type, uint64_t count, const Bytes& elements = {}) {
  Bytes bytes;
  append<uint32_t>(bytes, type);
  append<uint64_t>(bytes, count);
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

TEST(GgufHostile, Arrays) {
  GgufBuilder nested;
  nested.raw("k", 9, array(9, 1, array(0, 1, {7})));
  expect_refused(
      nested,
      "metadata entry 1 of 1 ('k') is an array of arrays, which no model needs: the file is damaged; fetch it again");
  GgufBuilder type;
  type.raw("k", 9, array(13, 0));
  expect_refused(
      type,
      "metadata entry 1 of 1 ('k') is an array of type 13, expected 0 to 12: the file is damaged; fetch it again");
  // The counts that matter: elements that cannot be there must not be allocated, whatever their size.
  for (uint32_t element : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 10u, 11u, 12u}) {
    for (uint64_t count : {uint64_t{9}, kHuge, kHuge + 1, ~uint64_t{0}, ~uint64_t{0} / 8 + 2}) {
      GgufBuilder builder;
      builder.raw("k", 9, array(element, count, Bytes(8, 1)));
      Result<Gguf> gguf = parse_gguf(builder.build(), "m.gguf");
      ASSERT_FALSE(gguf.ok());
      EXPECT_NE(gguf.error().message.find("array elements, but only 8 bytes follow"), std::string::npos)
          << gguf.error().message;
    }
  }
  GgufBuilder strings;
  strings.raw("k", 9, array(8, 3, Bytes(16)));
  expect_refused(
      strings,
      "metadata entry 1 of 1 ('k') claims 3 strings, but only 16 bytes follow: the file is cut short or damaged; "
      "fetch it again");
  GgufBuilder flags;
  flags.raw("k", 9, array(7, 2, {1, 2}));
  expect_refused(
      flags, "metadata entry 1 of 1 ('k') holds 2 as a boolean, expected 0 or 1: the file is damaged; fetch it again");
  GgufBuilder large;
  large.numbers<uint64_t>("k", {1, 1ull << 63});
  expect_refused(
      large,
      "metadata entry 1 of 1 ('k') holds 9,223,372,036,854,775,808; numbers in arrays must be below 2^63: the file "
      "is damaged; fetch it again");
}

TEST(GgufHostile, Alignment) {
  for (uint32_t wrong : {0u, 24u}) {
    GgufBuilder builder;
    builder.number<uint32_t>("general.alignment", wrong).tensor({.name = "t", .shape = {1}});
    expect_refused(builder, "metadata key 'general.alignment' is " + std::to_string(wrong) +
                                ", expected a power of two: the file is damaged; fetch it again");
  }
  GgufBuilder text;
  text.string("general.alignment", "32");
  expect_refused(text, "metadata key 'general.alignment' is a string, expected an integer; convert the model again");
  GgufBuilder beyond;
  beyond.number<uint64_t>("general.alignment", 1ull << 63).tensor({.name = "t", .shape = {1}});
  expect_refused(
      beyond,
      "tensor 't' ends at 9,223,372,036,854,775,812, past the end of the file (100): the file is cut short; fetch "
      "it again");
}

TEST(GgufHostile, TensorNames) {
  GgufBuilder twice;
  twice.tensor({.name = "a", .shape = {8}}).tensor({.name = "b", .shape = {8}}).tensor({.name = "a", .shape = {8}});
  expect_refused(twice, "two tensors are called 'a': the file is damaged; fetch it again");
  GgufBuilder empty;
  empty.tensor({.name = "", .shape = {8}});
  expect_refused(empty, "tensor entry 1 of 1 has an empty name: the file is damaged; fetch it again");
  GgufBuilder long_name;
  long_name.tensor({.name = std::string(1025, 'n'), .shape = {8}});
  expect_refused(
      long_name,
      "tensor entry 1 of 1 claims 1,025 bytes of a tensor's name; at most 1,024 are allowed: the file is damaged; "
      "fetch it again");
  GgufBuilder longest;
  longest.tensor({.name = std::string(1024, 'n'), .shape = {8}});
  EXPECT_TRUE(parse_gguf(longest.build(), "m.gguf").ok());
}

TEST(GgufHostile, Shapes) {
  GgufBuilder many;
  many.tensor({.name = "t", .shape = {1}, .dims = 5});
  expect_refused(many,
                 "tensor entry 1 of 1 ('t') has 5 dimensions, expected at most 4: the file is damaged; fetch it again");
  GgufBuilder zero;
  zero.tensor({.name = "t", .shape = {4, 0}, .data = Bytes(4)});
  expect_refused(zero,
                 "tensor entry 1 of 1 ('t') has a dimension of 0 (number 2): the file is damaged; fetch it again");
  GgufBuilder product;
  product.tensor({.name = "t", .shape = {1ull << 32, 1ull << 31, 2}, .data = Bytes(4)});
  expect_refused(
      product,
      "tensor entry 1 of 1 ('t') has the shape 4294967296 × 2147483648 × 1 × 1, whose product overflows: the file is "
      "damaged; fetch it again");
  GgufBuilder bytes;
  bytes.tensor({.name = "t", .shape = {1ull << 62}, .data = Bytes(4)});
  expect_refused(
      bytes,
      "tensor entry 1 of 1 ('t') has the shape 4611686018427387904 × 1 × 1 × 1, whose size in bytes overflows: the "
      "file is damaged; fetch it again");
  GgufBuilder block;
  block.tensor({.name = "t", .shape = {48, 2}, .type = Type::Q4_0, .data = Bytes(54)});
  expect_refused(
      block,
      "tensor entry 1 of 1 ('t') has rows of 48 elements, expected a multiple of 32 for Q4_0: the file is damaged; "
      "fetch it again");
}

TEST(GgufHostile, TensorTypes) {
  std::string known;
  for (const TypeInfo& type : all_types()) known += (known.empty() ? "" : ", ") + std::string(type.name);
  auto refusal = [&](const std::string& type) {
    return "tensor 'blk.0.w' is of type " + type + ", which Ridge cannot compute with; it knows " + known +
           ": fetch the model in one of these";
  };
  GgufBuilder other;
  other.tensor({.name = "blk.0.w", .shape = {256}, .type_number = 40});
  expect_refused(other, refusal("40 (NVFP4)"));
  GgufBuilder unknown;
  unknown.tensor({.name = "blk.0.w", .shape = {256}, .type_number = 4'000'000'000});
  expect_refused(unknown, refusal("4000000000"));
}

TEST(GgufHostile, TensorPlaces) {
  GgufBuilder odd;
  odd.tensor({.name = "t", .shape = {8}, .offset = 4});
  expect_refused(odd,
                 "tensor 't' begins at 4 of the data, expected a multiple of 32: the file is damaged; fetch it again");
  GgufBuilder far;
  far.tensor({.name = "t", .shape = {8}, .offset = ~0ull - 31});
  expect_refused(
      far,
      "tensor 't' begins at 18,446,744,073,709,551,584 of the data and has 32 bytes, more than any file holds: the "
      "file is damaged; fetch it again");
  GgufBuilder overlap;
  overlap.tensor({.name = "a", .shape = {32}}).tensor({.name = "b", .shape = {8}, .offset = 64});
  expect_refused(overlap,
                 "tensors 'a' (bytes 96 to 224) and 'b' (from 160) overlap: the file is damaged; fetch it again");
  GgufBuilder same;
  same.tensor({.name = "a", .shape = {8}}).tensor({.name = "b", .shape = {8}, .offset = 0});
  EXPECT_FALSE(parse_gguf(same.build(), "m.gguf").ok());
}

TEST(GgufHostile, CutData) {
  GgufBuilder builder;
  builder.tensor({.name = "blk.3.ffn_up.weight", .shape = {1000}});
  Bytes bytes = builder.build();
  bytes.resize(bytes.size() - 1);
  expect_refused(
      bytes,
      "tensor 'blk.3.ffn_up.weight' ends at 4,096, past the end of the file (4,095): the file is cut short; fetch "
      "it again");
}

std::string open_error(const std::string& path, ErrorCode code = ErrorCode::bad_input) {
  Result<Gguf> gguf = Gguf::open(path);
  EXPECT_FALSE(gguf.ok());
  if (gguf.ok()) return "";
  EXPECT_EQ(gguf.error().code, code);
  return gguf.error().message;
}

TEST(GgufHostile, FilesThatCannotBeOpened) {
  TempFolder folder;
  EXPECT_EQ(open_error(folder / "absent.gguf"), folder / "absent.gguf: no such file; check the path");
  EXPECT_EQ(open_error(folder.path()), folder.path() + ": is a folder; give the path of a file in it");
  EXPECT_EQ(open_error(""), "a file name is empty; give the path of a file");
  EXPECT_EQ(open_error("/dev/zero"), "/dev/zero: is a pipe or device, not a regular file; copy it into a file first");
  write_file(folder / "f", Bytes(1));
  EXPECT_EQ(open_error(folder / "f/x.gguf"), folder / "f/x.gguf: Not a directory; check the path");
  write_file(folder / "empty.gguf", {});
  EXPECT_EQ(open_error(folder / "empty.gguf"),
            folder / "empty.gguf: the file is empty, expected a GGUF model; fetch it again");
}

TEST(GgufHostile, FilesThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "needs a user who is not root: root may read everything";
  TempFolder folder;
  write_file(folder / "secret.gguf", GgufBuilder().build());
  std::filesystem::permissions(folder / "secret.gguf", std::filesystem::perms::none);
  EXPECT_EQ(open_error(folder / "secret.gguf"),
            folder / "secret.gguf: permission denied; make the file readable (chmod +r)");
}

}  // namespace
}  // namespace ridge
