// Reads messages from a person at a terminal: a line with editing and history, or a pasted text of several lines as
// one message.
//
// A terminal that knows bracketed paste marks what was pasted; of others, what is already waiting after the end of a
// line belongs to the same message, because nobody types a line in 20 ms.
//
// Not for: input that is no terminal (read_text() in common.h).
//
//   LineEditor editor(64 * kKiB);
//   while (auto message = editor.read()) answer(message->text);
//
// One thread, one object at a time: the terminal is only one.
#pragma once

#include <histedit.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ridge::cli {

struct Message {
  std::string text;
  bool too_long = false;  // a pasted text was longer than the limit; it is cut
};

class LineEditor {
 public:
  // Pasted texts are cut at `most_bytes`.
  explicit LineEditor(uint64_t most_bytes);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next message, without the newline at its end. Nothing at the end of input, and when a signal came
  // (interrupt_flag() tells which).
  std::optional<Message> read();

 private:
  enum : int { kEnd = -1, kInterrupted = -2, kNothing = -3 };
  static constexpr int kForever = -1;

  static int on_character(EditLine* editor, wchar_t* out);
  static unsigned char on_paste(EditLine* editor, int key);
  int character(wchar_t& out);
  int multibyte(unsigned char first, wchar_t& out);
  int end_of_line(wchar_t& out);
  int byte(int timeout_ms);
  int peek(int timeout_ms);
  bool marks(const char* rest);
  bool collect_marked();
  void add_pasted(unsigned char c);
  bool switch_marks(const char* sequence) const;

  struct EndEditor {
    void operator()(EditLine* e) const { ::el_end(e); }
  };
  struct EndHistory {
    void operator()(History* h) const { ::history_end(h); }
  };
  std::unique_ptr<History, EndHistory> history_;
  std::unique_ptr<EditLine, EndEditor> editor_;
  uint64_t most_bytes_;
  std::string waiting_;  // bytes that were read and not used yet
  size_t used_ = 0;      // of them
  std::string pasted_;   // for on_paste() to insert
  bool first_ = true;    // nothing of this message was read yet
  bool too_long_ = false;
  bool accept_ = false;  // the newline at the end of what was pasted comes next
};

}  // namespace ridge::cli
