// A copy of this program with other words, whose standard output is read: what wants a process of its own.
//
//   Child child;
//   if (auto refused = child.start({"ridge", "ladder", …})) return *refused;
//   const int code = child.finish(interrupt_flag());
//   child.text();                             // what it printed
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace ridge::cli {

class Child {
 public:
  // `words` with the program's name in front. What the system refused, or nothing.
  std::optional<std::string> start(const std::vector<std::string>& words);
  // Reads to the end and waits; the exit code, or 128 + signal. Interrupted, it is told so (SIGINT) and waited for.
  int finish(const std::atomic<bool>& interrupted);
  const std::string& text() const { return text_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string text_;
};

}  // namespace ridge::cli
