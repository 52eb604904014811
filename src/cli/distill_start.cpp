// ridge's side of `ridge distill` and `ridge tune`: finds ridge-distill and becomes it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/distill.h"
#include "machine/small_file.h"

namespace ridge::cli {
namespace {

namespace fs = std::filesystem;

// The words this process was started with, each ending in a zero byte.
std::vector<std::string> own_words() {
  const std::string all = read_small_file("/proc/self/cmdline").value_or("");
  std::vector<std::string> words;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Returns only if that cannot be.
Error become_trainer() {
  std::vector<std::string> words = own_words();
  const std::optional<std::string> program = find_trainer();
  if (program && !words.empty()) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // Threads of OpenMP that spin while they wait cost ten times the speed where others use the CPUs too.
    ::setenv("OMP_WAIT_POLICY", "passive", 0);
    ::execv(program->c_str(), arguments.data());
    return io_error(fmt::format("{}: cannot be started ({})", *program, std::strerror(errno)));
  }
  return io_error(
      "training needs libtorch, which is not part of this build: run scripts/setup --distill (it installs "
      "libtorch-dev) and scripts/build, and start build/release/bin/ridge");
}

}  // namespace

std::optional<std::string> find_trainer() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& program : {here / "ridge-distill", here / "../libexec/ridge/ridge-distill"}) {
    if (::access(program.c_str(), X_OK) == 0) return program.string();
  }
  return std::nullopt;
}

Result<distill::TrainReport> start_training(const distill::DistillJob&, const distill::TrainHooks&) {
  return become_trainer();
}

Result<distill::TuneReport> start_tuning(const distill::TuneJob&, const distill::TrainHooks&) {
  return become_trainer();
}

}  // namespace ridge::cli
