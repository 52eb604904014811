#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "base/printable.h"

namespace ridge {
namespace {

std::atomic<Verbosity> g_verbosity{Verbosity::normal};

void print(std::string_view text) {
  std::string line = "ridge: " + printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_verbosity(Verbosity verbosity) { g_verbosity = verbosity; }
Verbosity verbosity() { return g_verbosity; }

void note(std::string_view text) {
  if (verbosity() != Verbosity::quiet) print(text);
}

void detail(std::string_view text) {
  if (verbosity() == Verbosity::verbose) print(text);
}

void warn(std::string_view text) { print(text); }

void note_block(std::string_view text) {
  if (verbosity() == Verbosity::quiet) return;
  std::string block = printable(text);
  std::fwrite(block.data(), 1, block.size(), stderr);
}

void note_once(std::string_view key, std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  {
    std::lock_guard lock(mutex);
    if (!said.emplace(key).second) return;
  }
  note(text);
}

}  // namespace ridge
