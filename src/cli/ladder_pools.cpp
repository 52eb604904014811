#include "cli/ladder_pools.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace ridge::cli {
namespace {

// A running copy of this program, and what it writes to its standard output.
class Child {
 public:
  // What the system refused, or nothing.
  std::optional<std::string> start(const std::vector<std::string>& words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return std::strerror(errno);
    std::vector<char*> arguments;
    for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    const int error = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
      ::close(ends[0]);
      return std::strerror(error);
    }
    out_ = ends[0];
    return std::nullopt;
  }

  // Reads to the end and waits; the exit code, or 128 + signal.
  int finish(const std::atomic<bool>& interrupted) {
    bool told = false;
    char part[4096];
    constexpr int kTickMs = 100;
    for (;;) {
      if (interrupted && !std::exchange(told, true)) ::kill(pid_, SIGINT);
      struct pollfd ready {
        out_, POLLIN, 0
      };
      if (::poll(&ready, 1, kTickMs) <= 0) continue;
      const ssize_t n = ::read(out_, part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text_.append(part, static_cast<size_t>(n));
    }
    ::close(out_);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& text() const { return text_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string text_;
};

LadderPool measure(uint32_t contexts, const PoolFlags& flags, const std::atomic<bool>& interrupted) {
  const std::string number = std::to_string(contexts);
  std::vector<std::string> words = {"ridge",  "ladder", flags.model, "--quiet", "--json",  "--contexts", number,
                                    "--step", number,   "--hold",    "0",       "--pools", "none"};
  words.insert(words.end(), flags.arguments.begin(), flags.arguments.end());
  LadderPool failed{.contexts = contexts};
  Child child;
  if (auto error = child.start(words)) {
    failed.failure = fmt::format("no process of its own ({})", *error);
    return failed;
  }
  const int code = child.finish(interrupted);
  if (interrupted) {
    failed.failure = "interrupted";
    return failed;
  }
  if (code != 0) {
    failed.failure = code == 4 ? "a gate allows not even one" : fmt::format("its process ended with {}", code);
    return failed;
  }
  return pool_of(nlohmann::ordered_json::parse(child.text(), nullptr, false), contexts);
}

}  // namespace

std::vector<LadderPool> measure_pools(const std::vector<uint32_t>& contexts, const PoolFlags& flags,
                                      const std::atomic<bool>& interrupted) {
  std::vector<LadderPool> pools;
  for (uint32_t n : contexts) {
    if (interrupted) break;
    pools.push_back(measure(n, flags, interrupted));
  }
  return pools;
}

}  // namespace ridge::cli
