#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(RIDGE_TEST_DATA) + "/templates/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ChatInput input_for(const nlohmann::json& conversation, bool prompt) {
  ChatInput input;
  for (const auto& message : conversation) input.messages.push_back({message[0], message[1]});
  input.add_generation_prompt = prompt;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  std::tm now = {};  // 2025-03-09 14:05:07, as make_expected.py has it
  now.tm_year = 125;
  now.tm_mon = 2;
  now.tm_mday = 9;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 7;
  input.now = now;
  return input;
}

std::string render(std::string_view source, const ChatInput& input = {.messages = {{"user", "Hi"}}}) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(source);
  if (!chat.ok()) return chat.error().message;
  const Result<std::string> text = chat.value().render(input);
  return text.ok() ? text.value() : text.error().message;
}

TEST(ChatTemplate, ModelsTemplatesRenderAsJinja2RendersThem) {
  const auto expected = nlohmann::json::parse(read("expected.json"));
  std::map<std::string, ChatTemplate> parsed;
  for (const auto& row : expected["rendered"]) {
    const std::string file = row[0];
    const std::string conversation = row[1];
    if (!parsed.contains(file)) {
      Result<ChatTemplate> chat = ChatTemplate::parse(read(file));
      ASSERT_TRUE(chat.ok()) << file << ": " << chat.error().message;
      parsed.emplace(file, std::move(chat).value());
    }
    const bool prompt = row[2];
    const Result<std::string> text = parsed.at(file).render(input_for(expected["conversations"][conversation], prompt));
    SCOPED_TRACE(file + ", conversation '" + conversation + "', generation prompt " + (prompt ? "on" : "off"));
    if (row[3].is_null()) {
      EXPECT_FALSE(text.ok()) << text.value();
    } else if (!text.ok()) {
      ADD_FAILURE() << text.error().message;
    } else {
      EXPECT_EQ(text.value(), row[3].get<std::string>());
    }
  }
  EXPECT_GE(parsed.size(), 20u);
}

TEST(ChatTemplate, GivesTheVariablesThatTemplatesExpect) {
  const std::string source =
      "{{ messages | length }}|{{ messages[0].role }}|{{ messages[0]['content'] }}|{{ bos_token }}|{{ eos_token }}|"
      "{{ add_generation_prompt }}|{{ tools is none }}|{{ documents is none }}|{{ enable_thinking is defined }}";
  const ChatInput input{.messages = {{"user", "a"}, {"assistant", "b"}},
                        .add_generation_prompt = false,
                        .bos_token = "<s>",
                        .eos_token = "</s>"};
  EXPECT_EQ(render(source, input), "2|user|a|<s>|</s>|False|True|True|False");
}

TEST(ChatTemplate, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(render("ab\n  {{ messages | }}"),
            "chat template, line 2, column 17: expected the name of a filter, not '}}'");
  EXPECT_EQ(render("{% if x %}\n{% for y in z %}\n"),
            "chat template, line 2, column 1: this for block has no end; close it with {% endfor %}");
  EXPECT_EQ(render("é {% include 'x' %}"),
            "chat template, line 1, column 6: the tag 'include' is not supported: a chat template stands alone");
}

TEST(ChatTemplate, FailuresWhileRenderingNameThePlaceAndTheCause) {
  EXPECT_EQ(render("{{ messages[0].tool_calls[0] }}"),
            "chat template, line 1, column 26: 'tool_calls' is undefined; it has no items");
  EXPECT_EQ(render("\n {{ raise_exception('System role not supported') }}"),
            "chat template, line 2, column 20: the template refuses this conversation: System role not supported");
  EXPECT_EQ(
      render("{{ 'x' | from_json }}"),
      "chat template, line 1, column 10: the filter 'from_json' is not known here (docs/chat-templates.md lists them)");
}

TEST(ChatTemplate, AnUnknownFilterMattersOnlyWhereItIsUsed) {
  EXPECT_EQ(render("{% if tools %}{{ tools | from_json }}{% endif %}ok"), "ok");
}

TEST(ChatTemplate, TodayIsTheDefaultDate) {
  const std::string year = render("{{ strftime_now('%Y') }}");
  ASSERT_EQ(year.size(), 4u);
  EXPECT_GE(year, "2024");
}

TEST(ChatTemplate, ContentIsNeverReadAsTemplate) {
  const ChatInput input{.messages = {{"user", "{{ 1 + 1 }}{% raw %}"}}};
  EXPECT_EQ(render("{{ messages[0].content }}", input), "{{ 1 + 1 }}{% raw %}");
}

TEST(ChatTemplate, BytesThatAreNoUtf8PassThrough) {
  const std::string bytes("a\xFF\xC3(\xE2\x82\0b", 8);
  const ChatInput input{.messages = {{"user", bytes}}};
  EXPECT_EQ(render("{{ messages[0].content | trim }}", input), bytes);
  EXPECT_EQ(render("{{ messages[0].content | length }}", input), "8");
}

TEST(ChatTemplate, ALongConversationFits) {
  ChatInput input;
  for (int i = 0; i < 2000; ++i) {
    input.messages.push_back({"user", std::string(2000, 'q')});
    input.messages.push_back(
        {"assistant", "<think>\n" + std::string(2000, 't') + "\n</think>\n\n" + std::string(2000, 'a')});
  }
  input.messages.push_back({"user", "and now?"});
  for (const char* name : {"smollm2.jinja", "qwen3.jinja", "llama-3.1.jinja", "gpt-oss.jinja", "deepseek-r1.jinja"}) {
    const std::string text = render(read(name), input);
    EXPECT_GT(text.size(), 7'000'000u) << name << ": " << text.substr(0, 200);
  }
}

TEST(ChatTemplate, ThreadsMayShareOne) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(read("qwen3.jinja"));
  ASSERT_TRUE(chat.ok());
  const ChatInput input{.messages = {{"system", "s"}, {"user", "u"}}};
  const std::string once = chat.value().render(input).value();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) text = chat.value().render(input).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, once);
}

}  // namespace
}  // namespace ridge
