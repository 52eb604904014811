// ridge pack: the panel layout of a model as a file, for those who stream it often.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "analyze/neuron_order.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/sim.h"
#include "format/ridge_pack.h"
#include "machine/cpu.h"
#include "model/anima.h"
#include "model/image_files.h"
#include "report/memory_map_report.h"
#include "sim/memory_map.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge pack model.gguf                      (writes model.ridge beside it)\n"
    "  ridge pack model.gguf -o /fast/disk/model.ridge\n"
    "  ridge run model.ridge --memory 300M -p Hi\n"
    "  ridge pack anima.safetensors               (an image model; --bundle finds it)\n"
    "  ridge pack relu.gguf --map map.json        (of ridge importance -o)\n"
    "  ridge pack relu.gguf --map map.json --machine ethos-u85 --memory-map -\n"
    "  ridge pack --check model.ridge\n\n"
    "A pack is never needed; it saves the rearranging of every pass under a budget.";

struct Flags {
  std::string model;
  std::optional<std::string> out, map, machine, memory_map;
  bool check = false;
  std::optional<int> threads;
  std::optional<int64_t> neurons;
};

// Read in one piece, so large that the device's rate and not its latency counts, and no larger: a token touches more of
// large ones. For a machine of tiers a row of its DRAM takes the place of this.
constexpr uint64_t kLeastBundle = 32 * kKiB;

// Neurons of a bundle, 0 for none; by default where neurons of the architecture can rest.
Result<uint32_t> bundle_neurons(const Gguf& source, const Flags& flags, uint64_t least_bytes) {
  const std::string name = RIDGE_TRY(source.metadata().string("general.architecture")).value_or("");
  const auto all = architectures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Architecture& a) { return a.name == name; });
  const bool can_rest = found != all.end() && found->neurons_rest;
  const BundledMatrices layer = matrices_of_layer(source, 0);
  if (!can_rest || layer.down == nullptr) {
    if (flags.neurons.value_or(0) == 0 && !flags.map) return 0u;
    return usage_error(fmt::format("{} is for models whose neurons rest (reglu-llama, arcee), and {} is of '{}'",
                                   flags.map ? "--map" : "--neurons", flags.model, name));
  }
  if (flags.map && flags.neurons == 0) return usage_error("--map orders bundles of neurons, and --neurons 0 has none");
  if (!flags.neurons) return choose_bundle(layer, least_bytes);
  const int64_t wish = *flags.neurons;
  if (wish == 0) return 0u;
  if (wish > 0 && wish <= UINT32_MAX && bundle_shape(layer, static_cast<uint32_t>(wish)))
    return static_cast<uint32_t>(wish);
  return usage_error(fmt::format("--neurons {}: {} neurons of {} weights are cut by divisors that are multiples of {}",
                                 wish, layer.down->cols(), type_info(layer.down->type).name,
                                 bundle_granule(layer.down->type)));
}

Result<std::vector<NeuronOrder>> neuron_orders(const Gguf& source, const std::string& path, const Flags& flags,
                                               uint32_t neurons) {
  if (!flags.map) return std::vector<NeuronOrder>{};
  if (neurons == 0) {
    return usage_error(
        fmt::format("--map: no number of neurons cuts the layers of {} into bundles: pack without it", flags.model));
  }
  const ImportanceMap map = RIDGE_TRY(read_map(*flags.map));
  const auto model = RIDGE_TRY(Model::open(path));
  RIDGE_TRY(require_same_model(map, *flags.map, *model, path));
  return orders_by_touch(source, map, *flags.map, neurons);
}

void tell_order(const std::vector<NeuronOrder>& orders) {
  if (orders.empty()) return;
  double touched = 0;
  for (const NeuronOrder& order : orders) touched += mean_touch(order) / static_cast<double>(orders.size());
  const uint32_t unit = orders.front().unit;
  note(fmt::format("{} lie in the order of touch{}; a token is expected to touch {:.1f} % of the bundles",
                   unit == 1 ? "neurons" : fmt::format("units of {} neurons", unit),
                   unit == 1 ? "" : " (they share blocks of the down matrix)", touched * 100));
}

Result<std::optional<sim::NpuMachine>> machine_of(const Flags& flags) {
  if (!flags.machine) {
    if (flags.memory_map) return usage_error("--memory-map is for a --machine of tiers, such as ethos-u85: name one");
    return std::optional<sim::NpuMachine>{};
  }
  const std::string profile = RIDGE_TRY(resolve_profile(*flags.machine));
  if (!RIDGE_TRY(sim::has_tiers(profile)))
    return usage_error(
        fmt::format("--machine {}: has no tiers to lay a model out for; give one that has, such as "
                    "ethos-u85, or leave it out",
                    *flags.machine));
  return std::optional(RIDGE_TRY(sim::load_npu_machine(profile)));
}

// Which tensors of an image model become panels: names do not tell, passes do.
using AsPanels = std::function<bool(const Gguf&, const GgufTensor&)>;
Result<AsPanels> multiplied_by_images(const std::string& path) {
  const auto anima = RIDGE_TRY(Anima::open(path));
  const Program program = anima->program_base();
  std::set<std::pair<uint32_t, uint64_t>> places;
  for (const TensorId id : anima->multiplied()) {
    const StoredTensor& t = program.tensors[id];
    places.emplace(t.file, t.offset);
  }
  return AsPanels([places](const Gguf&, const GgufTensor& t) {
    return packs_as_panels_alone(t) && places.contains({t.file, t.offset});
  });
}

Result<void> refuse_for_images(const Flags& flags) {
  const std::pair<const char*, bool> given[] = {{"--map", flags.map.has_value()},
                                                {"--neurons", flags.neurons.has_value()},
                                                {"--machine", flags.machine.has_value()}};
  for (const auto& [name, is] : given) {
    if (is)
      return usage_error(
          fmt::format("{} is for language models, and {} is an image model: leave it out", name, flags.model));
  }
  return {};
}

// model.gguf → model.ridge; of a model in parts the name before them: anima.safetensors.index.json → anima.ridge.
std::string pack_name(const std::string& path) {
  constexpr std::string_view kIndex = ".safetensors.index.json";
  if (path.ends_with(kIndex)) return path.substr(0, path.size() - kIndex.size()) + ".ridge";
  return std::filesystem::path(path).replace_extension(".ridge").string();
}

// What the machine's memories hold of the pack, by address.
Result<void> tell_memory_map(const Flags& flags, const std::string& pack, const sim::NpuMachine& machine,
                             uint64_t align) {
  constexpr uint64_t kPositions = 512;
  // Enough that touches of bundles differ by what the map knows of them, and little to replay.
  constexpr uint32_t kPasses = 32;
  const auto model = RIDGE_TRY(Model::open(pack));
  const uint64_t positions = std::min<uint64_t>(kPositions, model->config().context);
  const Program program = model->program(
      {.tokens = 1, .outputs = 1, .position = positions - 1, .role = TokenRole::generated}, {.kv_type = KvType::f16});
  const bool dense = program.expert_groups.empty();
  const sim::NpuWork work = sim::npu_work(program, {.passes = dense ? 2 : kPasses});
  RIDGE_TRY(check_size(pack, work, machine));
  const sim::NpuRun run = sim::run_npu(work, machine, {});
  const uint64_t file_bytes = model->file().files().front().bytes;
  const sim::MemoryMap map = sim::memory_map(work, machine, run, sim::dram_image(program, file_bytes));
  MemoryMapReport report{.input = pack, .machine = &machine, .work = &work, .map = &map};
  report.positions = positions;
  report.align = align;
  if (const GgufTensor* rows = model->file().find("token_embd.weight"); rows != nullptr) {
    report.embedding = rows->name;
    report.embedding_at = {rows->offset, rows->bytes};
  }
  if (!flags.memory_map) return print(memory_map_summary(report));
  if (*flags.memory_map == "-") return print(memory_map_text(report));
  return write_text(*flags.memory_map, memory_map_text(report));
}

Result<void> check_outputs(const Flags& flags, const std::string& path, const std::string& out, const Gguf& source) {
  RIDGE_TRY(refuse_overwriting(out, source.files()));
  RIDGE_TRY(refuse_overwriting(out, path));  // an index is none of the files with weights
  if (flags.map) RIDGE_TRY(refuse_overwriting(out, *flags.map));
  RIDGE_TRY(check_output(out, "-o"));
  if (!flags.memory_map || *flags.memory_map == "-") return {};
  RIDGE_TRY(refuse_overwriting(*flags.memory_map, source.files(), "--memory-map"));
  if (flags.map) RIDGE_TRY(refuse_overwriting(*flags.memory_map, *flags.map, "--memory-map"));
  RIDGE_TRY(check_output(*flags.memory_map, "--memory-map"));
  const OutputName outputs[] = {{"-o", out}, {"--memory-map", *flags.memory_map}};
  return refuse_twice(outputs);
}

Result<void> run(const Flags& flags) {
  std::string path = RIDGE_TRY(resolve_model(flags.model));
  if (flags.check) {
    if (flags.out) return usage_error("--check reads a pack and writes none: leave -o out");
    RIDGE_TRY(open_ridge_pack(path));
    RIDGE_TRY(verify_ridge_pack(path));
    return print(fmt::format("{}: whole, all checksums are right\n", path));
  }
  const int threads = flags.threads ? RIDGE_TRY(thread_count(*flags.threads))
                                    : std::min(static_cast<int>(usable_cpus().size()), kMostThreads);
  if (RIDGE_TRY(is_ridge_pack(path))) return bad_input(fmt::format("{}: is a pack already", path));
  const std::string out = flags.out.value_or(pack_name(path));
  const std::optional<sim::NpuMachine> machine = RIDGE_TRY(machine_of(flags));
  KernelChoice kernels = RIDGE_TRY(choose_kernels({}));
  ThreadPool pool({.threads = threads, .cpus = {}});
  const Gguf source = RIDGE_TRY(open_weights(path)).header;
  const bool image = holds_diffusion(source);
  if (is_safetensors(path) && !image) {
    return bad_input(
        fmt::format("{}: holds no diffusion transformer of Anima, of which alone safetensors are packed; "
                    "give that, or a .gguf file",
                    path));
  }
  if (image) RIDGE_TRY(refuse_for_images(flags));
  RIDGE_TRY(check_outputs(flags, path, out, source));
  const uint64_t row = machine ? std::max(machine->dram.row_bytes, machine->dram.burst_bytes) : kLeastBundle;
  const uint32_t neurons = image ? 0 : RIDGE_TRY(bundle_neurons(source, flags, row));
  RidgePackOptions options{.pool = &pool, .pack = kernels.kernels.pack, .as_panels = {}, .bundle_neurons = neurons};
  if (machine) options.align = sim::pack_alignment(*machine);
  if (image) options.as_panels = RIDGE_TRY(multiplied_by_images(path));
  options.orders = RIDGE_TRY(neuron_orders(source, path, flags, neurons));
  RIDGE_TRY(write_ridge_pack(source, out, options));
  if (neurons > 0) note(fmt::format("neurons lie in bundles of {}; those that rest are not read", neurons));
  tell_order(options.orders);
  struct stat info {};
  uint64_t bytes = ::stat(out.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  note(fmt::format("{} is written, {}", out, format_bytes(bytes)));
  return machine ? tell_memory_map(flags, out, *machine, options.align) : Result<void>{};
}

}  // namespace

void add_pack(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("pack", "write a model's panel layout to a file");
  command->add_option("MODEL", flags->model, "GGUF, or an image model's safetensors; --check: a pack")
      ->type_name("")
      ->required();
  command->add_option("-o,--output", flags->out, "the pack (default: MODEL with .ridge)")->type_name("FILE");
  command->add_option("-t,--threads", flags->threads, "threads that rearrange (default: all)")->type_name("N");
  command->add_option("--neurons", flags->neurons, "ReLU models: neurons of a bundle; 0: no bundles")->type_name("N");
  command->add_option("--map", flags->map, "ReLU models: most touched neurons first")->type_name("FILE");
  command->add_option("--machine", flags->machine, "align for a machine of tiers, and say what lies where")
      ->type_name("FILE");
  command->add_option("--memory-map", flags->memory_map, "its memory by address, to a file or - (stdout)")
      ->type_name("FILE");
  command->add_flag("--check", flags->check, "read a pack and compare its checksums");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
