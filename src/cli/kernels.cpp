// ridge kernels: the list of kernels, what was chosen here and why, and how fast it is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/kernel_bench.h"
#include "base/progress.h"
#include "cli/common.h"
#include "report/kernel_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge kernels\n"
    "  ridge kernels --all --isa avx2\n"
    "  ridge kernels --quick --json\n\n"
    "One thread, in CPU time. Decode: one token, weights from beyond the caches.\n"
    "Prefill: 128 tokens.";

struct Flags {
  bool json = false, all = false, quick = false;
  std::optional<std::string> isa;
};

Result<void> run(const Flags& flags) {
  KernelBenchOptions options{.scope = flags.all ? KernelScope::all : KernelScope::chosen,
                             .quick = flags.quick,
                             .interrupted = &interrupt_flag()};
  if (flags.isa) options.isa = RIDGE_TRY(parse_isa(*flags.isa));
  std::optional<Progress> bar;
  options.progress = [&](uint64_t total) {
    if (!bar) bar.emplace("measuring", total, ProgressUnit::items);
    bar->advance(1);
  };
  KernelReport report = RIDGE_TRY(bench_kernels(options));
  bar.reset();
  return print(flags.json ? kernel_json(report).dump(2) + "\n" : kernel_table(report, options.scope));
}

}  // namespace

void add_kernels(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("kernels", "which kernels run here, why, and how fast");
  command->add_flag("--all", flags->all, "measure and list every kernel that can run here");
  command->add_flag("--quick", flags->quick, "64 MiB of weights and one repetition");
  command->add_option("--isa", flags->isa, "at most this ISA: scalar, avx2, avx512, neon")->type_name("NAME");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(with_pointers(kExamples));
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
