// What base writes to stderr: notes by verbosity, and progress bars on a terminal only.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/progress.h"

namespace ridge {
namespace {

class Output : public testing::Test {
 protected:
  void TearDown() override { set_verbosity(Verbosity::normal); }
};

template <class F>
std::string stderr_of(F&& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST_F(Output, NotesFollowTheVerbosity) {
  auto all = [] {
    note("a note");
    detail("a detail");
    warn("a warning");
  };
  EXPECT_EQ(stderr_of(all), "ridge: a note\nridge: a warning\n");
  set_verbosity(Verbosity::quiet);
  EXPECT_EQ(stderr_of(all), "ridge: a warning\n");
  set_verbosity(Verbosity::verbose);
  EXPECT_EQ(stderr_of(all), "ridge: a note\nridge: a detail\nridge: a warning\n");
}

TEST_F(Output, NoteOnceIsSaidOncePerKeyFromAnyThread) {
  std::string said = stderr_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([] {
        note_once("output test a", "first");
        note_once("output test a", "second");
      });
    }
    for (auto& thread : threads) thread.join();
    note_once("output test b", "other");
  });
  EXPECT_EQ(said, "ridge: first\nridge: other\n");
}

void work_for_more_than_a_second(Progress& bar) {
  bar.annotate("loss 2.9");
  bar.advance(40);
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  bar.advance(20);
}

TEST_F(Output, ProgressIsSilentWithoutATerminal) {
  EXPECT_EQ(stderr_of([] {
              Progress bar("packing", 100, ProgressUnit::items);
              work_for_more_than_a_second(bar);
            }),
            "");
}

// Runs `work` with a terminal as stderr and returns what appeared there.
template <class F>
std::string terminal_of(F&& work) {
  int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "no terminal";
  int side = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  int saved = ::dup(STDERR_FILENO);
  ::dup2(side, STDERR_FILENO);
  work();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  // The kernel hands a terminal's output over in its own time: read until nothing has come for a while.
  constexpr int kPatienceMs = 500;
  std::string text;
  char buffer[4096];
  for (struct pollfd ready{terminal, POLLIN, 0}; ::poll(&ready, 1, kPatienceMs) > 0;) {
    ssize_t n = ::read(terminal, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(side);
  ::close(terminal);
  return text;
}

TEST_F(Output, ProgressIsDrawnOnATerminalAndCleared) {
  std::string text = terminal_of([] {
    Progress bar("packing", 100, ProgressUnit::items);
    work_for_more_than_a_second(bar);
  });
  if (text == "no terminal") GTEST_SKIP() << "no pseudo-terminal can be made here";
  EXPECT_NE(text.find("packing [==============          ] 60 %"), std::string::npos) << text;
  EXPECT_NE(text.find("60 of 100"), std::string::npos) << text;
  EXPECT_NE(text.find("loss 2.9"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;
}

TEST_F(Output, ProgressIsSilentForShortWorkAndWhenQuiet) {
  EXPECT_EQ(terminal_of([] {
              Progress bar("packing", 100, ProgressUnit::bytes);
              bar.advance(100);
            }),
            "");
  set_verbosity(Verbosity::quiet);
  EXPECT_EQ(terminal_of([] {
              Progress bar("packing", 100, ProgressUnit::bytes);
              work_for_more_than_a_second(bar);
            }),
            "");
}

}  // namespace
}  // namespace ridge
