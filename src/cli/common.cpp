#include "cli/common.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/number_list.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/model_store.h"
#include "format/output_file.h"
#include "format/quote.h"
#include "machine/cpu.h"
#include "text/utf8.h"

namespace ridge::cli {
namespace {

int g_exit_code = 0;
std::atomic<bool> g_interrupted{false};

// Enough of a text to recognise it by.
std::string shortened(std::string_view text) {
  constexpr size_t kEnough = 60;
  return text.size() <= kEnough ? std::string(text) : std::string(text.substr(0, kEnough)) + "…";
}

void on_interrupt(int) {
  // A second Ctrl-C means it: end now (the default action is async-signal-safe).
  if (g_interrupted.exchange(true)) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
}

}  // namespace

void on_run(CLI::App& command, Run run) {
  command.footer(command.get_footer() +
                 "\n\nAlso: -v says more on stderr, -q only what went wrong; -V prints the version.\n" + kExitCodes);
  command.callback([run = std::move(run)] {
    Result<void> done = run();
    if (done.ok()) return;
    g_exit_code = report(done.error());
    // What a command could not finish because of Ctrl-C ends as the shell tells such an end: 128 + SIGINT.
    if (g_interrupted) g_exit_code = 128 + SIGINT;
  });
}

int exit_code() { return g_exit_code; }

int report(const Error& error) {
  // One line, whatever names and texts it quotes; only the table of what does not fit has more.
  std::string line = error.message;
  if (error.code != ErrorCode::does_not_fit) std::replace(line.begin(), line.end(), '\n', ' ');
  warn(line);
  return static_cast<int>(error.code);
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option("MODEL", flags.model, "GGUF file, .ridge pack, or a name from `ridge models`")
      ->type_name("")
      ->required();
  command.add_option("-m,--memory", flags.memory, "hard limit for the whole process: 300M, 1.5G")->type_name("SIZE");
  command.add_option("--floor", flags.floor, "give pins back below this MemAvailable; 0: never")->type_name("SIZE");
  command.add_option("--pins", flags.pins, "to compare: planned (default), leading, none, lru")->type_name("NAME");
  command.add_option("-c,--context", flags.context, "positions (default: the model's, at most 4096)")->type_name("N");
  command.add_option("-t,--threads", flags.threads, "compute threads (default: all usable CPUs)")->type_name("N");
  command.add_option("--cpus", flags.cpus, "bind the threads to these: 0,2 or 0-3")->type_name("LIST");
  command.add_option("--isa", flags.isa, "at most this ISA: scalar, avx2, avx512, neon")->type_name("NAME");
  command.add_option("--numerics", flags.numerics, "default, exact (float activations), fast (bf16 too)")
      ->type_name("NAME");
  command.add_option("--kv-type", flags.kv_type, "keys and values as f16 (default), bf16, q8_0, f32")
      ->type_name("NAME");
  command.add_option("--io", flags.io, "reading: auto, uring, threads, buffered")->type_name("NAME");
}

void add_lora_flag(CLI::App& command, EngineFlags& flags) {
  command.add_option("--lora", flags.loras, "GGUF adapter of it; FILE=0.5: half of it; repeatable")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
}

namespace {

// A file that is there under the whole name is meant by it, whatever follows a '='.
Result<LoraFile> parse_adapter(const std::string& text) {
  constexpr double kStrongest = 100;
  struct stat info {};
  const size_t equals = text.rfind('=');
  LoraFile lora{.path = text};
  if (equals != std::string::npos && ::stat(text.c_str(), &info) != 0) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, lora.strength);
    if (error != std::errc() || rest != end || !(std::fabs(lora.strength) <= kStrongest)) {
      return usage_error(fmt::format("--lora {}: expected FILE or FILE=SCALE, a number from -{} to {}",
                                     ridge::in_quotes(text), kStrongest, kStrongest));
    }
    lora.path.resize(equals);
  }
  if (lora.path.empty()) return usage_error(fmt::format("--lora {}: names no file", ridge::in_quotes(text)));
  return lora;
}

Result<std::vector<int>> parse_cpus(const std::string& text) {
  std::vector<int> usable = usable_cpus(), cpus;
  for (uint64_t number : RIDGE_TRY(parse_numbers(text, "--cpus"))) {
    const int cpu = static_cast<int>(std::min<uint64_t>(number, INT_MAX));
    if (std::find(usable.begin(), usable.end(), cpu) == usable.end()) {
      return usage_error(fmt::format("--cpus {}: this process may use {}", text, fmt::join(usable, ",")));
    }
    if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) {
      return usage_error(fmt::format("--cpus {}: names {} twice", text, cpu));
    }
    cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Result<int> thread_count(int64_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    return usage_error(fmt::format("--threads {} is no usable number: give 1 to {}", threads, kMostThreads));
  }
  const size_t cpus = usable_cpus().size();
  if (static_cast<size_t>(threads) > cpus) {
    note(fmt::format("{} threads take turns on {}: that is slower than --threads {}", threads, counted(cpus, "CPU"),
                     cpus));
  }
  return static_cast<int>(threads);
}

Result<EngineOptions> machine_options(const EngineFlags& flags) {
  EngineOptions o;
  if (flags.memory) o.memory = RIDGE_TRY(parse_bytes(*flags.memory));
  if (flags.floor) o.floor = *flags.floor == "0" ? 0 : RIDGE_TRY(parse_bytes(*flags.floor));
  if (flags.pins) {
    const std::optional<PinRule> rule = pin_rule(*flags.pins);
    if (!rule) return usage_error(fmt::format("--pins {} is not known: planned, leading, none or lru", *flags.pins));
    o.pins = *rule;
  }
  if (flags.threads) o.threads = RIDGE_TRY(thread_count(*flags.threads));
  if (flags.cpus) {
    o.cpus = RIDGE_TRY(parse_cpus(*flags.cpus));
    if (!flags.threads) o.threads = static_cast<int>(o.cpus.size());
  }
  if (flags.isa) o.isa = RIDGE_TRY(parse_isa(*flags.isa));
  o.io = RIDGE_TRY(parse_io_kind(flags.io));
  return o;
}

Result<EngineOptions> engine_options(const EngineFlags& flags) {
  const std::string path = RIDGE_TRY(resolve_model(flags.model));
  EngineOptions o = RIDGE_TRY(machine_options(flags));
  o.path = path;
  if (flags.context) {
    if (*flags.context < 1) {
      return usage_error(fmt::format("--context {} is no usable number: give 1 or more", *flags.context));
    }
    o.context = static_cast<uint64_t>(*flags.context);
  }
  for (const std::string& lora : flags.loras) o.adapters.push_back(RIDGE_TRY(parse_adapter(lora)));
  o.numerics = RIDGE_TRY(parse_numerics(flags.numerics));
  if (flags.kv_type) o.kv_type = RIDGE_TRY(parse_kv_type(*flags.kv_type));
  return o;
}

Result<std::string> resolve_model(const std::string& name) {
  if (name.empty()) return usage_error("the name of the model is empty: name a file");
  if (name == "-") return usage_error("the model cannot come from standard input: name a file");
  struct stat info {};
  if (::stat(name.c_str(), &info) == 0) return name;
  if (const DemoModel* demo = find_demo_model(name)) {
    std::string path = demo_model_path(*demo);
    if (::stat(path.c_str(), &info) == 0) return path;
    return bad_input(fmt::format("the model '{}' is not in the cache yet: run `ridge models get {}`", name, name));
  }
  if (name.find('/') == std::string::npos && name.find('.') == std::string::npos) {
    return bad_input(fmt::format("{}: no such file, and no model that `ridge models` lists; check the name", name));
  }
  return name;  // the reader says what is wrong with it
}

Result<void> print(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // a pipe that somebody made non-blocking
      struct pollfd ready {
        STDOUT_FILENO, POLLOUT, 0
      };
      ::poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) {
      return io_error(
          fmt::format("standard output cannot be written ({}): the result is not complete", std::strerror(errno)));
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> read_text(const std::string& path, const TextLimit& limit) {
  bool standard_input = path == "-";
  std::string name = standard_input ? "standard input" : path;
  int fd = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bad_input(fmt::format("{}: cannot be opened ({})", name, std::strerror(errno)));
  std::string text;
  char buffer[65536];
  for (;;) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int error = errno;
      if (!standard_input) ::close(fd);
      return bad_input(fmt::format("{}: cannot be read ({})", name, std::strerror(error)));
    }
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > limit.most_bytes) {
      if (!standard_input) ::close(fd);
      return bad_input(fmt::format("{}: {}", name, limit.too_long));
    }
  }
  if (!standard_input) ::close(fd);
  return text;
}

Result<void> refuse_overwriting(const std::string& path, std::span<const GgufFile> inputs, std::string_view flag) {
  for (const GgufFile& input : inputs) {
    RIDGE_TRY(refuse_overwriting(path, input.path, flag));
  }
  return {};
}

Result<void> refuse_overwriting(const std::string& path, const Engine& engine, const EngineOptions& options,
                                std::string_view flag) {
  for (const LoraFile& lora : options.adapters) RIDGE_TRY(refuse_overwriting(path, lora.path, flag));
  return refuse_overwriting(path, engine.model().file().files(), flag);
}

Result<void> refuse_overwriting(const std::string& path, const std::string& input, std::string_view flag) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(path, input, ignored)) return {};
  return usage_error(fmt::format("{} {}: is the input itself, which would be lost: name another file", flag, path));
}

Result<void> refuse_twice(std::span<const OutputName> outputs) {
  namespace fs = std::filesystem;
  auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored) || fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (!same(outputs[i].path, outputs[k].path)) continue;
      return usage_error(fmt::format("{} {}: {} writes there as well: name another", outputs[i].flag, outputs[i].path,
                                     outputs[k].flag));
    }
  }
  return {};
}

Result<void> check_output(const std::string& path, std::string_view flag) {
  if (path.empty()) return usage_error(fmt::format("{} is empty: give the name of a file", flag));
  if (path == "-") return usage_error(fmt::format("{} -: a file is written, not standard output: name one", flag));
  (void)RIDGE_TRY(OutputFile::create(path));
  return {};
}

Result<void> write_text(const std::string& path, std::string_view text) {
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(out.write(text));
  return out.commit();
}

Result<void> require_utf8(std::string_view text, std::string_view what) {
  size_t bad = first_invalid_utf8(text);
  if (bad == std::string_view::npos) return {};
  return bad_input(fmt::format("{}: byte {} (0x{:02x}) is no valid UTF-8: convert the text first", what, bad,
                               static_cast<unsigned char>(text[bad])),
                   bad);
}

Result<std::vector<TokenId>> tokens_of_file(const Engine& engine, const std::string& path) {
  const std::string text = RIDGE_TRY(read_text(path));
  RIDGE_TRY(require_utf8(text, path));
  if (engine.tokenizer() == nullptr) {
    return bad_input(
        fmt::format("{}: has no tokenizer: the texts cannot be read", engine.model().file().metadata().where));
  }
  return engine.tokenizer()->encode(text, {.add_special = false, .parse_special = false});
}

const std::atomic<bool>& interrupt_flag() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    ::sigaction(SIGINT, &action, nullptr);  // no SA_RESTART: a waiting read returns
    return true;
  }();
  (void)installed;
  return g_interrupted;
}

void clear_interrupt() { g_interrupted = false; }

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  // Numbers with one comma, or white space, between them.
  constexpr std::string_view kSpace = " \t\r\n";
  Error wrong = usage_error(fmt::format("'{}' is no list of numbers: write them like 1,2,3", shortened(text)));
  std::vector<TokenId> ids;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string_view::npos) {
    TokenId id = 0;
    auto [rest, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    if (error != std::errc() || id < 0) return wrong;
    ids.push_back(id);
    size_t end = static_cast<size_t>(rest - text.data());
    at = text.find_first_not_of(kSpace, end);
    if (at == std::string_view::npos) break;
    if (text[at] == ',') {
      at = text.find_first_not_of(kSpace, at + 1);
      if (at == std::string_view::npos) return wrong;
    } else if (at == end) {
      return wrong;
    }
  }
  return ids;
}

}  // namespace ridge::cli
