#include "cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ridge::cli {

std::optional<std::string> Child::start(const std::vector<std::string>& words) {
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

int Child::finish(const std::atomic<bool>& interrupted) {
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

}  // namespace ridge::cli
