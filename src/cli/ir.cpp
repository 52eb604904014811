// ridge ir: a model's program and placement as text, and back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/check.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/sim.h"
#include "engine/state_file.h"
#include "model/model.h"
#include "model/operators.h"
#include "program/ir.h"
#include "sim/ir_build.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge ir model.ridge --machine ethos-u85 -o model.ir\n"
    "  ridge ir model.gguf --memory 300M\n"
    "  ridge ir --check model.ir\n"
    "  ridge ir --check model.ir model.ridge         (is it of this model?)\n\n"
    "One line for each block; docs/ir.md explains the fields.";

constexpr uint64_t kPositions = 512, kLargestIr = 256 * kMiB;
// Of a model with blocks on demand: enough that their touches differ by what is known of them.
constexpr uint32_t kPasses = 32;

struct Flags {
  std::optional<std::string> model, check, out, machine, memory;
};

Program program_of(const Model& model, uint64_t positions, uint64_t slot_bytes) {
  return model.program({.tokens = 1, .outputs = 1, .position = positions - 1, .role = TokenRole::generated},
                       {.slot_bytes = slot_bytes, .kv_type = KvType::f16});
}

Result<Ir> ir_of(const Model& model, const Program& program, uint64_t positions) {
  sim::IrSource source{.model = model.config().name, .files = {}, .operators = {}};
  source.fingerprint = RIDGE_TRY(model_fingerprint(model));
  source.positions = positions;
  for (const GgufFile& f : model.file().files())
    source.files.push_back({std::filesystem::path(f.path).filename().string(), f.bytes});
  for (const Block& b : program.blocks) {
    source.operators.push_back(b.pieces.empty() ? Operator::other
                                                : operator_of(program, b.pieces.front().tensor, model.head().id));
  }
  return sim::ir_of(program, source);
}

uint64_t positions_of(const Model& model) { return std::min<uint64_t>(kPositions, model.config().context); }

Result<Ir> under_budget(const std::string& path, const std::string& memory) {
  EngineFlags flags;
  flags.model = path;
  flags.memory = memory;
  EngineOptions options = RIDGE_TRY(engine_options(flags));
  options.need_tokenizer = false;
  const auto engine = RIDGE_TRY(Engine::plan_only(options));
  const Placement& placement = engine->plan().placement;
  const uint64_t positions = positions_of(engine->model());
  const Program program = program_of(engine->model(), positions, placement.slot_bytes);
  RIDGE_CHECK(program.blocks.size() == placement.pinned.size(), "a program is cut by the size of slots alone");
  Ir ir = RIDGE_TRY(ir_of(engine->model(), program, positions));
  sim::place(ir, program, placement, engine->budget());
  return ir;
}

Result<Ir> on_machine(const std::string& path, const std::string& machine_name) {
  const std::string profile = RIDGE_TRY(resolve_profile(machine_name));
  if (!RIDGE_TRY(sim::has_tiers(profile)))
    return usage_error(
        fmt::format("--machine {}: has no tiers; give one that has, such as ethos-u85, or --memory", machine_name));
  const sim::NpuMachine machine = RIDGE_TRY(sim::load_npu_machine(profile));
  const auto model = RIDGE_TRY(Model::open(path));
  const uint64_t positions = positions_of(*model);
  const Program program = program_of(*model, positions, 0);
  const sim::NpuWork work = sim::npu_work(program, {.passes = program.expert_groups.empty() ? 2 : kPasses});
  RIDGE_TRY(check_size(path, work, machine));
  const sim::NpuRun run = sim::run_npu(work, machine, {});
  uint64_t file_bytes = 0;
  for (const GgufFile& f : model->file().files()) file_bytes += f.bytes;
  Ir ir = RIDGE_TRY(ir_of(*model, program, positions));
  sim::place(ir, work, machine, sim::memory_map(work, machine, run, sim::dram_image(program, file_bytes)));
  return ir;
}

Result<Ir> make_ir(const Flags& flags, const std::string& path) {
  if (flags.machine) return on_machine(path, *flags.machine);
  if (flags.memory) return under_budget(path, *flags.memory);
  const auto model = RIDGE_TRY(Model::open(path));
  const uint64_t positions = positions_of(*model);
  return ir_of(*model, program_of(*model, positions, 0), positions);
}

Result<void> check(const Flags& flags) {
  const std::string& name = *flags.check;
  const std::string text = RIDGE_TRY(
      read_text(name, {.most_bytes = kLargestIr, .too_long = "an IR has at most 256 MiB: give another file"}));
  const Ir ir = RIDGE_TRY(read_ir(text, name));
  RIDGE_CHECK(ir_text(ir) == text, "what is read is what is written");
  if (flags.model) {
    const std::string path = RIDGE_TRY(resolve_model(*flags.model));
    const auto model = RIDGE_TRY(Model::open(path));
    const uint64_t positions = positions_of(*model);
    const Ir made = RIDGE_TRY(ir_of(*model, program_of(*model, positions, ir.slot_bytes), positions));
    RIDGE_TRY(sim::require_same_program(ir, name, made, path));
  }
  return print(fmt::format("{}: {}, {} of keys and values, for {}{}\n", name, counted(ir.blocks.size(), "block"),
                           counted(ir.kv.size(), "share"),
                           ir.machine      ? "a machine"
                           : ir.budget > 0 ? "a budget"
                                           : "memory that holds everything",
                           flags.model ? "; the program is that of " + *flags.model : ""));
}

Result<void> run(const Flags& flags) {
  if (flags.check) {
    if (flags.machine || flags.memory || flags.out)
      return usage_error("--check reads an IR: leave --machine, --memory and -o out");
    return check(flags);
  }
  if (!flags.model) return usage_error("MODEL is missing: a GGUF file, a .ridge pack, or a name from `ridge models`");
  if (flags.machine && flags.memory) return usage_error("--machine and --memory are two targets: give one of them");
  const std::string path = RIDGE_TRY(resolve_model(*flags.model));
  if (flags.out) {
    RIDGE_TRY(check_output(*flags.out, "-o"));
    RIDGE_TRY(refuse_overwriting(*flags.out, path));
  }
  const Ir ir = RIDGE_TRY(make_ir(flags, path));
  if (!flags.out) return print(ir_text(ir));
  RIDGE_TRY(write_text(*flags.out, ir_text(ir)));
  note(fmt::format("{} is written, {}", *flags.out, counted(ir.blocks.size(), "block")));
  return {};
}

}  // namespace

void add_ir(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("ir", "program and placement as text, and back");
  command->add_option("MODEL", flags->model, "GGUF file, .ridge pack, or a name from `ridge models`")->type_name("");
  command->add_option("--machine", flags->machine, "place in the tiers of this machine")->type_name("FILE");
  command->add_option("-m,--memory", flags->memory, "place under this budget: 300M, 1.5G")->type_name("SIZE");
  command->add_option("-o,--output", flags->out, "write to this file (default: stdout)")->type_name("FILE");
  command->add_option("--check", flags->check, "read an IR back; with MODEL: is it of this model?")->type_name("FILE");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
