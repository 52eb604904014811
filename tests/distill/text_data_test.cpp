#include "distill/text_data.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/distill/text_file.h"

namespace ridge::distill {
namespace {

TEST(ByteVocabulary, IsOneTokenForEachByte) {
  const Vocabulary words = byte_vocabulary().value();
  EXPECT_EQ(words.tokenizer->size(), 257u);
  EXPECT_EQ(words.tokenizer->eos(), TokenId{256});
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text :
       {std::string("Once upon a time,\n\n  \"a\" fox"), std::string("naïve 여우 🦊"), all}) {
    const auto ids = words.tokenizer->encode(text, {.add_special = true, .parse_special = false});
    ASSERT_EQ(ids.size(), text.size());
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], static_cast<uint8_t>(text[i]));
    EXPECT_EQ(words.tokenizer->decode(ids, {}), text);
  }
}

TEST(SameVocabulary, NamesWhatDiffers) {
  const Vocabulary a = byte_vocabulary().value();
  EXPECT_TRUE(check_same_vocabulary(*a.tokenizer, *byte_vocabulary().value().tokenizer, "t").ok());
  Metadata keys = a.keys;
  StringPool tokens;
  for (size_t i = 0; i < a.tokenizer->size(); ++i) {
    tokens.push_back(i == 65 ? "AA" : std::string(a.tokenizer->text(static_cast<TokenId>(i))));
  }
  keys.entries()["tokenizer.ggml.tokens"] = MetadataArray(tokens);
  const auto other = Tokenizer::from_metadata(keys);
  ASSERT_TRUE(other.ok()) << other.error().message;
  const auto differs = check_same_vocabulary(*a.tokenizer, *other.value(), "teacher.gguf");
  ASSERT_FALSE(differs.ok());
  EXPECT_EQ(differs.error().code, ErrorCode::bad_input);
  EXPECT_NE(differs.error().message.find("token 65 is 'AA' for the teacher and 'A'"), std::string::npos);
}

TEST(ReadData, HoldsTheEndOut) {
  test::TempFolder folder;
  const Vocabulary words = byte_vocabulary().value();
  const std::string text(1000, 'a');
  const TextData data = read_data(test::text_file(folder, "a.txt", text + std::string(250, 'b')), *words.tokenizer,
                                  {.held_out = 0.2, .least = 9})
                            .value();
  EXPECT_EQ(data.train, std::vector<TokenId>(1000, 'a'));
  EXPECT_EQ(data.held, std::vector<TokenId>(250, 'b'));
  EXPECT_EQ(data.bytes, 1250u);
  EXPECT_DOUBLE_EQ(data.bytes_per_token, 1);
}

TEST(ReadData, TakesAFolderInOrder) {
  test::TempFolder folder;
  std::filesystem::create_directory(folder.path() + "/sub");
  test::text_file(folder, "b.txt", "bbbb");
  test::text_file(folder, "sub/c.txt", "cccc");
  test::text_file(folder, "a.txt", "aaaa");
  const Vocabulary words = byte_vocabulary().value();
  const TextData data = read_data(folder.path(), *words.tokenizer, {.held_out = 0.3, .least = 2}).value();
  std::vector<TokenId> all = data.train;
  all.insert(all.end(), data.held.begin(), data.held.end());
  const std::vector<TokenId> want = {'a', 'a', 'a', 'a', 256, 'b', 'b', 'b', 'b', 256, 'c', 'c', 'c', 'c'};
  EXPECT_EQ(all, want);
}

TEST(ReadData, RefusesWhatIsNoText) {
  test::TempFolder folder;
  const Vocabulary words = byte_vocabulary().value();
  const std::string text(1000, 'x');
  const struct {
    std::string content, part;
  } cases[] = {{"", "no text"},
               {text + std::string(1, '\0') + text, "a zero byte at offset 1,000"},
               {text + "\xff" + text, "no UTF-8 at offset 1,000"},
               {"too short", "too few"}};
  for (const auto& c : cases) {
    const auto read =
        read_data(test::text_file(folder, "t.txt", c.content), *words.tokenizer, {.held_out = 0.1, .least = 65});
    ASSERT_FALSE(read.ok()) << c.part;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_NE(read.error().message.find(c.part), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(read_data(folder.path() + "/gone", *words.tokenizer, {}).ok());
  std::filesystem::create_directory(folder.path() + "/empty");
  EXPECT_FALSE(read_data(folder.path() + "/empty", *words.tokenizer, {}).ok());
}

}  // namespace
}  // namespace ridge::distill
