// ridge ladder: how many contexts of a model's blocks this machine holds, found by loading them one after another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/ladder.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/number_list.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/ladder_pools.h"
#include "machine/cpu.h"
#include "model/cpu_executor.h"
#include "report/ladder_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge ladder smollm2-135m\n"
    "  ridge ladder model.gguf --step 4 --stop-available 4G --hold 5s\n"
    "  ridge ladder model.gguf --contexts 16 --pools none --json\n"
    "  ridge ladder model.gguf --memory 2G --tokens 128\n\n"
    "A context is a block with buffers of its own. Nothing is left when it ends.";

struct Flags {
  std::string model, stop_available = "1.5G", stop_swap = "16M", hold = "30s", pools = "4,8,12,16", io = "auto";
  std::optional<std::string> memory, isa;
  int64_t step = 1, tokens = 1;
  std::optional<int64_t> contexts, threads;
  bool json = false;
};

// 1 to `most`, as a usage error of the flag.
Result<uint32_t> count(std::string_view flag, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return static_cast<uint32_t>(value);
  return usage_error(
      fmt::format("{} {} is no usable number: give 1 to {}", flag, value, format_count(static_cast<uint64_t>(most))));
}

struct Settings {
  std::string path;
  LadderOptions ladder;
  std::vector<uint32_t> pools;
  std::optional<Isa> isa;
  uint32_t tokens = 1;
  int threads = 1;
  IoKind io = IoKind::automatic;
};

Result<Settings> settings_of(const Flags& flags) {
  constexpr int64_t kMostBlocks = 1 << 24, kMostTokens = 4096;
  Settings s;
  s.ladder.step = RIDGE_TRY(count("--step", flags.step, kMostBlocks));
  if (flags.contexts) s.ladder.most = RIDGE_TRY(count("--contexts", *flags.contexts, kMostBlocks));
  s.ladder.gates.available = RIDGE_TRY(parse_bytes(flags.stop_available));
  s.ladder.gates.swap = RIDGE_TRY(parse_bytes(flags.stop_swap));
  if (flags.memory) s.ladder.gates.budget = RIDGE_TRY(parse_bytes(*flags.memory));
  s.ladder.hold = RIDGE_TRY(parse_duration(flags.hold, "--hold"));
  if (flags.pools != "none") {
    for (uint64_t pool : RIDGE_TRY(parse_numbers(flags.pools, "--pools"))) {
      s.pools.push_back(RIDGE_TRY(count("--pools", static_cast<int64_t>(pool), kMostBlocks)));
    }
  }
  s.tokens = RIDGE_TRY(count("--tokens", flags.tokens, kMostTokens));
  s.threads = static_cast<int>(usable_cpus().size());
  if (flags.threads) s.threads = static_cast<int>(RIDGE_TRY(count("--threads", *flags.threads, kMostThreads)));
  if (flags.isa) s.isa = RIDGE_TRY(parse_isa(*flags.isa));
  s.io = RIDGE_TRY(parse_io_kind(flags.io));
  s.path = RIDGE_TRY(resolve_model(flags.model));
  return s;
}

// Pools that have more contexts than the model has blocks measure nothing new.
std::vector<uint32_t> pools_within(std::vector<uint32_t> pools, uint32_t blocks) {
  const size_t asked = pools.size();
  std::erase_if(pools, [&](uint32_t p) { return p > blocks; });
  if (pools.size() < asked)
    note(fmt::format("pools of more than the model's {} are left out", counted(blocks, "block")));
  return pools;
}

Result<void> run(const Flags& flags) {
  Settings s = RIDGE_TRY(settings_of(flags));
  s.ladder.interrupted = &interrupt_flag();
  KernelChoice kernels = RIDGE_TRY(choose_kernels({.isa = s.isa}));
  LadderReport report{.model = s.path, .tokens = s.tokens, .ladder = nullptr, .pools = {}};
  Ladder ladder;
  {
    auto model = RIDGE_TRY(Model::open(s.path));
    const Program program = model->program({}, {});
    model.reset();
    ThreadPool pool({.threads = s.threads, .cpus = {}});
    auto executor = RIDGE_TRY(CpuExecutor::create(
        {.program = &program, .pool = &pool, .kernels = &kernels.kernels, .tokens = s.tokens, .io = s.io}));
    ladder = RIDGE_TRY(climb(*executor, s.ladder));
  }
  report.ladder = &ladder;
  if (!s.ladder.interrupted->load()) {
    PoolFlags more{.model = s.path,
                   .arguments = {"--stop-available", flags.stop_available, "--stop-swap", flags.stop_swap, "--tokens",
                                 std::to_string(s.tokens), "--threads", std::to_string(s.threads), "--io", flags.io}};
    if (flags.memory) more.arguments.insert(more.arguments.end(), {"--memory", *flags.memory});
    if (flags.isa) more.arguments.insert(more.arguments.end(), {"--isa", *flags.isa});
    report.pools = measure_pools(pools_within(s.pools, ladder.blocks), more, interrupt_flag());
  }
  if (s.ladder.interrupted->load()) note("interrupted with Ctrl-C: what was measured so far follows");
  return print(flags.json
                   ? ladder_json(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                   : ladder_table(report));
}

}  // namespace

void add_ladder(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("ladder", "load blocks one by one and see how many fit");
  command->add_option("MODEL", flags->model, "GGUF file, .ridge pack, or a name from `ridge models`")
      ->type_name("")
      ->required();
  command->add_option("--step", flags->step, "contexts between two measurements (1)")->type_name("N");
  command->add_option("--contexts", flags->contexts, "load at most so many")->type_name("N");
  command->add_option("--stop-available", flags->stop_available, "stop below this MemAvailable (1.5G)")
      ->type_name("SIZE");
  command->add_option("--stop-swap", flags->stop_swap, "stop above this growth of swap (16M)")->type_name("SIZE");
  command->add_option("-m,--memory", flags->memory, "stop before the process holds more")->type_name("SIZE");
  command->add_option("--hold", flags->hold, "keep them for so long and watch (30s)")->type_name("TIME");
  command->add_option("--pools", flags->pools, "pools for fresh processes (4,8,12,16), or none")->type_name("LIST");
  command->add_option("--tokens", flags->tokens, "tokens that a context has room for (1)")->type_name("N");
  command->add_option("-t,--threads", flags->threads, "threads that rearrange (default: all)")->type_name("N");
  command->add_option("--isa", flags->isa, "at most this ISA: scalar, avx2, avx512, neon")->type_name("NAME");
  command->add_option("--io", flags->io, "reading: auto, uring, threads, buffered")->type_name("NAME");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(with_pointers(kExamples));
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
