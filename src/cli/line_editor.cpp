#include "cli/line_editor.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string_view>
#include <utility>

#include "cli/common.h"

namespace ridge::cli {
namespace {

constexpr unsigned char kEscape = 0x1b;
// Bracketed paste: the terminal is asked for it, and puts pasted text between the last two (after an escape).
constexpr const char *kAskForMarks = "\x1b[?2004h", *kNoMarks = "\x1b[?2004l", *kPasteBegins = "[200~",
                     *kPasteEnds = "[201~";
// A key that no one has: stands for the insertion of pasted text in the editor's table of keys.
constexpr wchar_t kPasteKey = 0x1e;
constexpr const char* kPasteKeyName = "^^";
// Between the pieces of a paste; far below what a person needs for the next key.
constexpr int kPieceMs = 20;
// Of an escape sequence, over a slow line.
constexpr int kSequenceMs = 50;

char* prompt(EditLine*) {
  static char text[] = "> ";
  return text;
}

bool is_text(int c) { return c >= 0x20 || c == '\t' || c == '\r' || c == '\n'; }

std::wstring widened(std::string_view text) {
  std::wstring out;
  std::mbstate_t state{};
  for (size_t at = 0; at < text.size();) {
    wchar_t c = 0;
    const size_t used = std::mbrtowc(&c, text.data() + at, text.size() - at, &state);
    if (used == static_cast<size_t>(-2)) break;  // cut in the middle of a character
    if (used == static_cast<size_t>(-1)) {
      out += L'\xfffd';
      state = {};
      ++at;
      continue;
    }
    if (used > 0) out += c;
    at += used > 0 ? used : 1;
  }
  return out;
}

}  // namespace

LineEditor::LineEditor(uint64_t most_bytes) : history_(::history_init()), most_bytes_(most_bytes) {
  // Prompt and echo are no result: they stay out of a file that takes the answers.
  FILE* out = ::isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
  editor_.reset(::el_init("ridge", stdin, out, stderr));
  EditLine* e = editor_.get();
  ::el_set(e, EL_CLIENTDATA, this);
  ::el_set(e, EL_PROMPT, prompt);
  ::el_set(e, EL_SIGNAL, 1);
  ::el_set(e, EL_EDITOR, "emacs");
  constexpr int kKeptLines = 100;
  HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kKeptLines);
  ::el_set(e, EL_HIST, ::history, history_.get());
  ::el_source(e, nullptr);
  ::el_set(e, EL_GETCFN, on_character);
  ::el_set(e, EL_ADDFN, "ridge-paste", "Insert the pasted text", on_paste);
  ::el_set(e, EL_BIND, kPasteKeyName, "ridge-paste", nullptr);
}

// Only where the other end is more than a teletype.
bool LineEditor::switch_marks(const char* sequence) const {
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0 || *terminal == '\0') return false;
  FILE* out = nullptr;
  ::el_get(editor_.get(), EL_GETFP, 1, &out);
  if (out == nullptr || ::isatty(::fileno(out)) != 1) return false;
  return std::fputs(sequence, out) >= 0 && std::fflush(out) == 0;
}

std::optional<Message> LineEditor::read() {
  too_long_ = accept_ = false;
  first_ = true;
  pasted_.clear();
  (void)switch_marks(kAskForMarks);
  int count = 0;
  const char* line = ::el_gets(editor_.get(), &count);
  (void)switch_marks(kNoMarks);
  if (line == nullptr || count <= 0) return std::nullopt;
  Message message{.text = std::string(line, static_cast<size_t>(count)), .too_long = too_long_};
  if (message.text.ends_with('\n')) message.text.pop_back();
  HistEvent event;
  if (!message.text.empty()) ::history(history_.get(), &event, H_ENTER, message.text.c_str());
  return message;
}

int LineEditor::on_character(EditLine* editor, wchar_t* out) {
  LineEditor* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  return self->character(*out);
}

unsigned char LineEditor::on_paste(EditLine* editor, int) {
  LineEditor* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  const std::wstring text = widened(std::exchange(self->pasted_, {}));
  if (text.empty()) return CC_ERROR;
  return ::el_winsertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

// The next byte, or kNothing if none comes in time.
int LineEditor::peek(int timeout_ms) {
  while (used_ == waiting_.size()) {
    waiting_.clear();
    used_ = 0;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&input, 1, timeout_ms);
    if (ready == 0) return kNothing;
    char buffer[4096];
    const ssize_t n = ready < 0 ? -1 : ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n == 0) return kEnd;
    if (n > 0) {
      waiting_.assign(buffer, static_cast<size_t>(n));
    } else if (errno != EINTR && errno != EAGAIN) {
      return kEnd;
    } else if (interrupt_flag()) {  // other signals, such as of a resized window, are the editor's
      return kInterrupted;
    }
  }
  return static_cast<unsigned char>(waiting_[used_]);
}

int LineEditor::byte(int timeout_ms) {
  const int c = peek(timeout_ms);
  if (c >= 0) ++used_;
  return c;
}

// Whether these bytes come next; then they are used up. What is no such sequence stays for the editor.
bool LineEditor::marks(const char* rest) {
  std::string seen;
  for (const char* c = rest; *c != '\0'; ++c) {
    if (peek(kSequenceMs) != static_cast<unsigned char>(*c)) {
      waiting_.insert(used_, seen);
      return false;
    }
    seen += *c;
    ++used_;
  }
  return true;
}

void LineEditor::add_pasted(unsigned char c) {
  if (pasted_.size() >= most_bytes_) {
    too_long_ = true;
    return;
  }
  // Terminals send a carriage return for the end of a line.
  if (c == '\r') c = '\n';
  if (is_text(c) && c != 0x7f) pasted_ += static_cast<char>(c);
}

// Up to the mark of the end. False if a signal or the end of input came first.
bool LineEditor::collect_marked() {
  for (;;) {
    const int c = byte(kForever);
    if (c < 0) return false;
    if (c == kEscape && marks(kPasteEnds)) break;
    add_pasted(static_cast<unsigned char>(c));
  }
  while (pasted_.ends_with('\n')) pasted_.pop_back();
  return true;
}

// After an end of line: what waits is the rest of a pasted text, unless it is a key such as Ctrl-D.
int LineEditor::end_of_line(wchar_t& out) {
  for (int c = peek(kPieceMs); c >= 0 && is_text(c); c = peek(kPieceMs)) {
    ++used_;
    add_pasted(static_cast<unsigned char>(c));
  }
  const bool ended = pasted_.empty() || pasted_.back() == '\n';
  while (pasted_.ends_with('\n')) pasted_.pop_back();
  if (pasted_.empty()) {
    out = L'\n';
    return 1;
  }
  pasted_.insert(0, 1, '\n');
  accept_ = ended;
  out = kPasteKey;
  return 1;
}

int LineEditor::multibyte(unsigned char first, wchar_t& out) {
  std::mbstate_t state{};
  char c = static_cast<char>(first);
  for (int length = 1;; ++length) {
    const size_t used = std::mbrtowc(&out, &c, 1, &state);
    if (used == 1) return 1;
    constexpr int kLongest = 4;
    const int next = used == static_cast<size_t>(-2) && length < kLongest ? peek(kSequenceMs) : kNothing;
    if (next < 0x80) {
      out = L'\xfffd';
      return 1;
    }
    ++used_;
    c = static_cast<char>(next);
  }
}

// For the editor: 1 and a character, 0 at the end of input, -1 after a signal.
int LineEditor::character(wchar_t& out) {
  for (;;) {
    if (std::exchange(accept_, false)) {
      out = L'\n';
      return 1;
    }
    const int c = byte(kForever);
    if (c < 0) return c == kEnd ? 0 : -1;
    // Ctrl-D that was pressed while an answer was printed: the kernel keeps a zero in its place.
    if (std::exchange(first_, false) && c == 0) return 0;
    if (c == '\r' || c == '\n') return end_of_line(out);
    if (c == kEscape && marks(kPasteBegins)) {
      if (!collect_marked()) {
        pasted_.clear();
        return -1;
      }
      if (pasted_.empty()) continue;
      out = kPasteKey;
      return 1;
    }
    if (c >= 0x80) return multibyte(static_cast<unsigned char>(c), out);
    out = static_cast<wchar_t>(c);
    return 1;
  }
}

}  // namespace ridge::cli
