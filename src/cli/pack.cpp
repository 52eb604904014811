// ridge pack: the panel layout of a model as a file, for those who stream it often.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "format/ridge_pack.h"
#include "machine/cpu.h"
#include "model/model.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge pack model.gguf                          (writes model.ridge beside it)\n"
    "  ridge pack model.gguf -o /fast/disk/model.ridge\n"
    "  ridge run model.ridge --memory 300M -p Hi\n"
    "  ridge pack --check model.ridge\n\n"
    "A pack is never needed; it saves the rearranging of every pass under a budget.";

struct Flags {
  std::string model;
  std::optional<std::string> out;
  bool check = false;
  std::optional<int> threads;
  std::optional<int64_t> neurons;
};

// Read in one piece, so large that the device's rate and not its latency counts, and no larger: a token touches more of
// large ones.
constexpr uint64_t kLeastBundle = 32 * kKiB;

// Neurons of a bundle, 0 for none; by default where neurons of the architecture can rest.
Result<uint32_t> bundle_neurons(const Gguf& source, const Flags& flags) {
  const std::string name = RIDGE_TRY(source.metadata().string("general.architecture")).value_or("");
  const auto all = architectures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Architecture& a) { return a.name == name; });
  const bool can_rest = found != all.end() && found->neurons_rest;
  const BundledMatrices layer = matrices_of_layer(source, 0);
  if (!can_rest || layer.down == nullptr) {
    if (flags.neurons.value_or(0) == 0) return 0u;
    return usage_error(fmt::format("--neurons is for models whose neurons rest (reglu-llama, arcee), and {} is of '{}'",
                                   flags.model, name));
  }
  if (!flags.neurons) return choose_bundle(layer, kLeastBundle);
  const int64_t wish = *flags.neurons;
  if (wish == 0) return 0u;
  if (wish > 0 && wish <= UINT32_MAX && bundle_shape(layer, static_cast<uint32_t>(wish)))
    return static_cast<uint32_t>(wish);
  return usage_error(fmt::format("--neurons {}: {} neurons of {} weights are cut by divisors that are multiples of {}",
                                 wish, layer.down->cols(), type_info(layer.down->type).name,
                                 bundle_granule(layer.down->type)));
}

Result<void> run(const Flags& flags) {
  std::string path = RIDGE_TRY(resolve_model(flags.model));
  if (flags.check) {
    RIDGE_TRY(open_ridge_pack(path));
    RIDGE_TRY(verify_ridge_pack(path));
    return print(fmt::format("{}: whole, all checksums are right\n", path));
  }
  const int threads = flags.threads ? RIDGE_TRY(thread_count(*flags.threads))
                                    : std::min(static_cast<int>(usable_cpus().size()), kMostThreads);
  if (RIDGE_TRY(is_ridge_pack(path))) return bad_input(fmt::format("{}: is a pack already", path));
  std::string out = flags.out.value_or(std::filesystem::path(path).replace_extension(".ridge").string());
  KernelChoice kernels = RIDGE_TRY(choose_kernels({}));
  ThreadPool pool({.threads = threads, .cpus = {}});
  Gguf source = RIDGE_TRY(Gguf::open(path));
  RIDGE_TRY(refuse_overwriting(out, source.files()));
  RIDGE_TRY(check_output(out, "-o"));
  const uint32_t neurons = RIDGE_TRY(bundle_neurons(source, flags));
  RIDGE_TRY(write_ridge_pack(
      source, out, {.pool = &pool, .pack = kernels.kernels.pack, .as_panels = {}, .bundle_neurons = neurons}));
  if (neurons > 0) note(fmt::format("neurons lie in bundles of {}; those that rest are not read", neurons));
  struct stat info {};
  uint64_t bytes = ::stat(out.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  note(fmt::format("{} is written, {}", out, format_bytes(bytes)));
  return {};
}

}  // namespace

void add_pack(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("pack", "write a model's panel layout to a file");
  command->add_option("MODEL", flags->model, "a GGUF file; with --check a .ridge pack")->type_name("")->required();
  command->add_option("-o,--output", flags->out, "the pack (default: MODEL with .ridge)")->type_name("FILE");
  command->add_option("-t,--threads", flags->threads, "threads that rearrange (default: all)")->type_name("N");
  command->add_option("--neurons", flags->neurons, "ReLU models: neurons of a bundle; 0: no bundles")->type_name("N");
  command->add_flag("--check", flags->check, "read a pack and compare its checksums");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
