// The chat of `ridge run` on a terminal: messages in (a line, or a pasted text), streamed answers out.
//
// Ctrl-C stops the answer and keeps what was said; Ctrl-D leaves. When the context is full the oldest turns are
// dropped, and that is said.
#include <fmt/format.h>
#include <langinfo.h>

#include <clocale>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "cli/line_editor.h"
#include "cli/run.h"

namespace ridge::cli {
namespace {

// A quarter of the context stays free for the answer.
constexpr uint64_t kAnswerShare = 4;

// The conversation as the model will see it: for a model without a template, its text so far.
class Conversation {
 public:
  Conversation(const Engine& engine, const Prompt& prompt, const RunFlags& flags) : engine_(engine), prompt_(prompt) {
    if (flags.system && prompt.is_chat()) {
      messages_.push_back({"system", *flags.system});
      fixed_ = 1;
    }
  }

  void say(std::string role, std::string content) { messages_.push_back({std::move(role), std::move(content)}); }

  // Whether the system message leaves a question its room.
  Result<void> check_system() const {
    if (fixed_ == 0) return {};
    std::vector<ChatMessage> empty = messages_;
    empty.push_back({"user", ""});
    const size_t taken = RIDGE_TRY(prompt_.conversation(empty)).size();
    if (taken < engine_.context() - engine_.context() / kAnswerShare) return {};
    return bad_input(fmt::format("--system takes {} of {} positions: shorten it, or give a larger --context", taken,
                                 engine_.context()));
  }

  // Tokens of the conversation, the oldest turns dropped until the answer has room. If the newest line has none even
  // alone, nothing is dropped.
  Result<std::vector<TokenId>> tokens() {
    const std::vector<ChatMessage> before = messages_;
    size_t dropped = 0;
    for (;;) {
      std::vector<TokenId> ids = RIDGE_TRY(prompt_.conversation(messages_));
      uint64_t room = engine_.context() - engine_.context() / kAnswerShare;
      if (ids.size() <= room || messages_.size() <= fixed_ + 1) {
        if (ids.size() >= engine_.context()) {
          messages_ = before;
        } else if (dropped > 0) {
          note(fmt::format("the context of {} is full: the {} dropped", engine_.context(),
                           counted(dropped, "oldest message was", "oldest messages were")));
        }
        return ids;
      }
      // A turn is a question and its answer; templates insist that they alternate.
      size_t turn = std::min<size_t>(2, messages_.size() - fixed_ - 1);
      messages_.erase(messages_.begin() + static_cast<ptrdiff_t>(fixed_),
                      messages_.begin() + static_cast<ptrdiff_t>(fixed_ + turn));
      dropped += turn;
    }
  }

  void take_back() { messages_.pop_back(); }

 private:
  const Engine& engine_;
  const Prompt& prompt_;
  std::vector<ChatMessage> messages_;
  size_t fixed_ = 0;
};

// "/task NAME": the cache is pinned for another task. A line that begins so is no message where a map is there.
bool is_task_command(const Engine& engine, const std::string& line) {
  return engine.task_table() != nullptr && (line == "/task" || line.starts_with("/task "));
}

void change_task(Engine& engine, const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t", std::string_view("/task").size());
  const size_t end = line.find_last_not_of(" \t\n");
  const std::string name = begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
  if (Result<void> done = engine.name_task(name); !done.ok()) return warn(done.error().message);
  note(fmt::format("the cache is for {} from the next answer on", name));
}

}  // namespace

Result<void> chat(Engine& engine, const RunFlags& flags, const Prompt& prompt, Sampler& sampler,
                  Speculator* speculator) {
  // Without a UTF-8 locale the line editor drops every character that is not ASCII.
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string_view(::nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  note(prompt.is_chat() ? "chat: Ctrl-C stops an answer, Ctrl-D leaves"
                        : "this model has no chat template: it continues your text; Ctrl-C stops it, Ctrl-D leaves");
  Conversation conversation(engine, prompt, flags);
  RIDGE_TRY(conversation.check_system());
  GenerateOptions options = generate_options(flags);
  options.interrupted = &interrupt_flag();
  bool told_reuse = false;
  uint64_t told_switches = 0;
  LineEditor editor(engine.message_room());
  options.speculator = speculator;
  for (;;) {
    clear_interrupt();
    std::optional<Message> line = editor.read();
    if (!line) {
      if (interrupt_flag()) {  // Ctrl-C at the prompt empties the line
        RIDGE_TRY(print("\n"));
        continue;
      }
      RIDGE_TRY(print("\n"));
      if (flags.save_state && engine.position() > 0) return save_state(engine, *flags.save_state);
      return {};
    }
    if (line->too_long) {
      warn(fmt::format("the text is longer than the {} that a message may have here: give it with -f FILE",
                       format_bytes(engine.message_room())));
      continue;
    }
    if (line->text.find_first_not_of(" \t\n") == std::string::npos) continue;
    if (is_task_command(engine, line->text)) {
      change_task(engine, line->text);
      continue;
    }
    if (Result<void> valid = require_utf8(line->text, "the line"); !valid.ok()) {
      warn(valid.error().message);
      continue;
    }
    conversation.say("user", line->text);
    auto ids = conversation.tokens();
    if (ids.ok() && ids.value().size() >= engine.context()) {
      warn(fmt::format("the line is too long for the context of {}: shorten it, or start with a larger --context",
                       engine.context()));
      conversation.take_back();
      continue;
    }
    if (ids.ok() && flags.show_prompt) show_prompt(*engine.tokenizer(), ids.value());
    engine.begin_turn();
    Result<void> printed;
    auto answer = !ids.ok() ? Result<Generation>(ids.error())
                            : generate(engine, ids.value(), options, sampler, [&](std::string_view piece) {
                                printed = print(piece);
                                return printed.ok();
                              });
    RIDGE_TRY(std::move(printed));
    if (!answer.ok()) return answer.error();
    conversation.say("assistant", answer.value().text);
    RIDGE_TRY(print("\n"));
    tell_switches(engine, told_switches);
    if (flags.load_state && !std::exchange(told_reuse, true)) {
      note(fmt::format("{} of {} prompt tokens were in the state", answer.value().reused_tokens,
                       answer.value().prompt_tokens));
    }
    if (answer.value().reason == StopReason::context_full) note("the answer was cut: the context is full");
  }
}

}  // namespace ridge::cli
