#include "distill/corpus.h"

#include <gtest/gtest.h>

#include <set>

#include "distill/rationales.h"
#include "distill/text_data.h"
#include "tests/distill/text_file.h"

namespace ridge::distill {
namespace {

uint64_t hash_of(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

TEST(Corpus, IsTheSameEverywhere) {
  const std::string text = make_corpus({.bytes = 100'000, .seed = 1});
  EXPECT_EQ(text, make_corpus({.bytes = 100'000, .seed = 1}));
  EXPECT_NE(text, make_corpus({.bytes = 100'000, .seed = 2}));
  // A longer one begins as the shorter one does.
  EXPECT_TRUE(make_corpus({.bytes = 200'000, .seed = 1}).starts_with(text));
  EXPECT_EQ(hash_of(text), 0x442e41023e3dc57du);
}

TEST(Corpus, HasStoriesAndProblems) {
  const std::string text = make_corpus({.bytes = 2'000'000});
  ASSERT_GE(text.size(), 2'000'000u);
  EXPECT_LT(text.size(), 2'002'000u);
  EXPECT_TRUE(text.ends_with("\n\n"));
  size_t stories = 0, problems = 0;
  std::set<std::string> distinct;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find("\n\n", begin);
    const std::string item = text.substr(begin, end - begin);
    const bool problem = item.starts_with("Question: ");
    problem ? ++problems : ++stories;
    if (problem) {
      EXPECT_NE(item.find("\nSteps: "), std::string::npos) << item;
      EXPECT_NE(item.find("\nAnswer: "), std::string::npos) << item;
    }
    distinct.insert(item);
    begin = end + 2;
  }
  EXPECT_NEAR(static_cast<double>(problems) / static_cast<double>(problems + stories), 1.0 / 8, 0.02);
  EXPECT_GT(distinct.size(), (stories + problems) * 95 / 100);  // not a few texts over and over
}

TEST(Corpus, AnswersFollowFromTheirSteps) {
  test::TempFolder folder;
  const std::string path = test::text_file(folder, "items.jsonl", make_rationales({.items = 200, .seed = 5}));
  const Vocabulary words = byte_vocabulary().value();
  const Rationales items = read_rationales(path, *words.tokenizer, 512).value();
  EXPECT_EQ(items.train.size(), 180u);
  ASSERT_EQ(items.held.size(), 20u);
  for (const RationaleItem& item : items.held) {
    const std::string reply = words.tokenizer->decode(item.reply, {});
    EXPECT_EQ(answer_in(reply), item.answer);
    const size_t last = reply.find(item.answer + ".");  // the last step ends with it
    EXPECT_NE(last, std::string::npos) << reply;
  }
}

TEST(RationalesFile, RefusesWhatIsNone) {
  test::TempFolder folder;
  const Vocabulary words = byte_vocabulary().value();
  const std::string good = R"({"question": "a", "steps": "b", "answer": "c"})";
  const std::pair<std::string, std::string> cases[] = {
      {"", "0 items"},
      {good + "\n", "1 item"},
      {good + "\nno JSON\n", "line 2"},
      {good + "\n[]\n", "line 2"},
      {good + "\n{\"question\": \"a\", \"steps\": \"b\"}\n", "line 2"},
      {good + "\n{\"question\": \"a\", \"steps\": 1, \"answer\": \"c\"}\n", "line 2"},
      {good + "\n{\"question\": \"a\", \"steps\": \"b\", \"answer\": \" \"}\n", "line 2"},
  };
  for (const auto& [text, part] : cases) {
    const auto read = read_rationales(test::text_file(folder, "items.jsonl", text), *words.tokenizer, 128);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  }
  EXPECT_EQ(answer_in("no mark"), "");
  EXPECT_EQ(answer_in("a\nAnswer:  7 \nmore"), "7");
}

}  // namespace
}  // namespace ridge::distill
