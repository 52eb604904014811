#include "format/spiece.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "format/protobuf.h"
#include "tests/format/allocation_count.h"
#include "tests/format/spiece_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::AllocationPeak;
using test::ProtobufWriter;
using test::small_spiece;
using test::SpieceBuilder;

std::string refusal_of_spiece(std::span<const uint8_t> bytes) {
  Result<Metadata> metadata = parse_spiece(bytes, "spiece.model");
  if (metadata.ok()) return "accepted";
  EXPECT_EQ(metadata.error().code, ErrorCode::bad_input);
  EXPECT_EQ(metadata.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(metadata.error().message.rfind("spiece.model: ", 0), 0u) << metadata.error().message;
  return metadata.error().message;
}

void expect_refused(const SpieceBuilder& model, std::string_view words) {
  EXPECT_NE(refusal_of_spiece(model.build()).find(words), std::string::npos)
      << refusal_of_spiece(model.build()) << ", expected " << words;
}

// Text, score and type as they are; counts agree.
void expect_sound(Metadata& metadata) {
  auto texts = metadata.take_array("tokenizer.ggml.tokens");
  auto scores = metadata.take_array("tokenizer.ggml.scores");
  auto types = metadata.take_array("tokenizer.ggml.token_type");
  ASSERT_TRUE(texts && scores && types);
  const size_t n = std::get<StringPool>(*texts).size();
  ASSERT_EQ(std::get<std::vector<float>>(*scores).size(), n);
  ASSERT_EQ(std::get<std::vector<int32_t>>(*types).size(), n);
  for (float score : std::get<std::vector<float>>(*scores)) ASSERT_TRUE(std::isfinite(score));
  for (int32_t type : std::get<std::vector<int32_t>>(*types)) ASSERT_TRUE(type >= 1 && type <= 6);
}

void expect_sound_or_refused(std::span<const uint8_t> bytes) {
  AllocationPeak peak;
  Result<Metadata> metadata = parse_spiece(bytes, "spiece.model");
  ASSERT_LE(peak.bytes(), 12 * bytes.size() + 4096);
  if (metadata.ok()) return expect_sound(metadata.value());
  ASSERT_EQ(metadata.error().code, ErrorCode::bad_input);
  ASSERT_EQ(metadata.error().message.find('\n'), std::string::npos) << metadata.error().message;
}

TEST(Spiece, BecomesTheMetadataOfAT5File) {
  const auto bytes = small_spiece().build();
  Result<Metadata> read = parse_spiece(bytes, "spiece.model");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Metadata& m = read.value();
  EXPECT_EQ(m.require_string("tokenizer.ggml.model").value(), "t5");
  EXPECT_EQ(m.uint("tokenizer.ggml.eos_token_id").value(), 1u);
  EXPECT_EQ(m.uint("tokenizer.ggml.unknown_token_id").value(), 2u);
  EXPECT_EQ(std::get<int64_t>(*m.find("tokenizer.ggml.bos_token_id")), -1);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_eos_token").value(), true);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_bos_token").value(), false);
  EXPECT_EQ(m.boolean("tokenizer.ggml.add_space_prefix").value(), true);
  EXPECT_EQ(m.boolean("tokenizer.ggml.remove_extra_whitespaces").value(), true);
  const StringPool* texts = m.strings("tokenizer.ggml.tokens").value();
  ASSERT_NE(texts, nullptr);
  ASSERT_EQ(texts->size(), 9u);
  EXPECT_EQ((*texts)[4], "▁a");
  EXPECT_EQ(m.numbers("tokenizer.ggml.scores").value()[5], -2.5);
  EXPECT_EQ(m.numbers("tokenizer.ggml.token_type").value()[2], 2);
}

TEST(Spiece, DefaultsHoldWhereTheFileSaysNothing) {
  SpieceBuilder model;  // as sentencepiece_model.proto: <unk> <s> </s>
  model.piece("<unk>", 0, 2).piece("<s>", 0, 3).piece("</s>", 0, 3).piece("x", -1);
  model.normalizer.string(2, "abc").number(3, 0).number(4, 0);
  Result<Metadata> read = parse_spiece(model.build(), "spiece.model");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().uint("tokenizer.ggml.bos_token_id").value(), 1u);
  EXPECT_EQ(read.value().uint("tokenizer.ggml.eos_token_id").value(), 2u);
  EXPECT_EQ(read.value().boolean("tokenizer.ggml.add_space_prefix").value(), false);
  EXPECT_EQ(read.value().boolean("tokenizer.ggml.remove_extra_whitespaces").value(), false);
  EXPECT_EQ(read.value().numbers("tokenizer.ggml.precompiled_charsmap").value(), (std::vector<double>{'a', 'b', 'c'}));
}

TEST(Spiece, RefusesOtherModelsWithTheirKind) {
  SpieceBuilder model = small_spiece();
  model.trainer.number(3, 2);
  expect_refused(model, "type 2 (BPE)");
  model.trainer.number(3, 99);
  expect_refused(model, "type 99 (unknown)");
  model = small_spiece();
  model.trainer.number(24, 1);
  expect_refused(model, "end, not begin, with white space");
  model = small_spiece();
  model.normalizer.number(5, 0);
  expect_refused(model, "not escaped");
  model = small_spiece();
  model.piece("<other unk>", 0, 2);
  expect_refused(model, "both the unknown one");
  SpieceBuilder without;
  without.piece("a", 0);
  expect_refused(without, "no piece is the unknown one");
  EXPECT_NE(refusal_of_spiece({}).find("empty"), std::string::npos);
}

TEST(Spiece, RefusesBrokenPieces) {
  SpieceBuilder model = small_spiece();
  model.piece("", 0);
  expect_refused(model, "has no text");
  model = small_spiece();
  model.piece("x", NAN);
  expect_refused(model, "no number");
  model = small_spiece();
  model.piece("x", 0, 7);
  expect_refused(model, "has type 7");
  model = small_spiece();
  model.pieces.message(1, ProtobufWriter().number(1, 5));
  expect_refused(model, "stored as a varint");
  model = small_spiece();
  model.pieces.message(1, ProtobufWriter().string(1, "x").string(2, "x"));
  expect_refused(model, "expected four bytes");
  model = small_spiece();
  model.pieces.number(2, 1);
  expect_refused(model, "expected a string");
}

TEST(Spiece, RefusesBrokenProtobuf) {
  const auto field = [](std::initializer_list<uint8_t> bytes) {
    SpieceBuilder model = small_spiece();
    model.pieces.bytes.insert(model.pieces.bytes.end(), bytes);
    return model;
  };
  expect_refused(field({0x00, 0x00}), "field number 0");
  expect_refused(field({0x0B}), "wire type 3");  // a group
  expect_refused(field({0x0F}), "wire type 7");
  expect_refused(field({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}), "ten bytes");
  expect_refused(field({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}), "64 bits");
  expect_refused(field({0x80, 0x80, 0x80, 0x80, 0x10, 0x00}), "field number");  // 2^29
  expect_refused(field({0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}), "claims 4,294,967,295 bytes");
  expect_refused(field({0x0A, 0x04, 0x0A, 0x05, 0x61, 0x61}), "claims 5 bytes");  // past the end of its message
  // What is unknown is skipped: all four wire types.
  SpieceBuilder model = small_spiece();
  model.pieces.number(9, 7).string(10, "abc").real(11, 1).tag(12, 1);
  model.pieces.bytes.resize(model.pieces.bytes.size() + 8);
  EXPECT_EQ(refusal_of_spiece(model.build()), "accepted");
}

TEST(Spiece, EveryCutIsRefused) {
  const auto bytes = small_spiece().build();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string message = refusal_of_spiece(std::span(bytes).subspan(0, length));
    ASSERT_NE(message, "accepted") << "cut at " << length;
    if (length == 0) continue;
    ASSERT_NE(message.find("cut short"), std::string::npos) << length << ": " << message;
  }
}

TEST(Spiece, FlippedBitsAreRefusedOrHarmless) {
  const auto original = small_spiece().build();
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; ++i) {
    auto bytes = original;
    for (auto flips = 1 + random() % 4; flips > 0; --flips) {
      const size_t at = random() % bytes.size();
      bytes[at] = static_cast<uint8_t>(random() % 8 == 0 ? 0xff : bytes[at] ^ (1u << random() % 8));
    }
    ASSERT_NO_FATAL_FAILURE(expect_sound_or_refused(bytes)) << "round " << i;
  }
}

TEST(Spiece, GreedyFilesStayWithinTheBound) {
  SpieceBuilder model = small_spiece();
  for (int i = 0; i < 100'000; ++i) model.pieces.message(1, ProtobufWriter().string(1, "a"));
  expect_sound_or_refused(model.build());
  model = small_spiece();
  model.normalizer.string(2, std::string(1 << 20, 'x'));
  expect_sound_or_refused(model.build());
}

TEST(Spiece, FilesAreReadWhole) {
  test::TempFolder folder;
  test::write_file(folder / "spiece.model", small_spiece().build());
  EXPECT_TRUE(read_spiece(folder / "spiece.model").ok());
  Result<Metadata> missing = read_spiece(folder / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge
