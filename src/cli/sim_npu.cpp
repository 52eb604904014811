// ridge sim on a machine of tiers: models, shapes of models, and traces.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/shape_model.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/sim.h"
#include "report/npu_report.h"
#include "sim/npu_machine.h"
#include "sim/policy.h"
#include "tensor/type_names.h"

namespace ridge::cli {
namespace {

constexpr uint64_t kDefaultPositions = 512;
constexpr std::string_view kShape = "shape:";

// What is about the host, or about time that an NPU's simulation does not tell.
Result<void> refuse_host_flags(const SimFlags& flags) {
  const std::pair<bool, const char*> host[] = {
      {flags.engine.memory.has_value(), "--memory"}, {flags.engine.threads.has_value(), "--threads"},
      {flags.engine.cpus.has_value(), "--cpus"},     {flags.engine.isa.has_value(), "--isa"},
      {flags.engine.floor.has_value(), "--floor"},   {flags.engine.pins.has_value(), "--pins"},
      {flags.engine.io != "auto", "--io"},           {flags.trace.has_value(), "--trace"},
      {flags.export_path.has_value(), "--export"},
  };
  for (const auto& [given, name] : host) {
    if (!given) continue;
    return usage_error(fmt::format("{} is not for machines of tiers, such as {}: leave it out", name, *flags.machine));
  }
  return {};
}

// The rows of the table: nothing kept, and what was asked for; all of them, with pins last, whose placement is shown.
Result<std::vector<const sim::PolicyInfo*>> policies_of(const SimFlags& flags) {
  const std::string name = flags.policy.value_or("pin-worth");
  std::vector<const sim::PolicyInfo*> out = {sim::find_policy("none")};
  if (name == "all") {
    for (const sim::PolicyInfo& p : sim::policies()) {
      if (!p.reads_ahead && p.name != "none") out.push_back(&p);
    }
    return out;
  }
  const sim::PolicyInfo* info = sim::find_policy(name);
  if (info == nullptr) {
    return usage_error(fmt::format("--policy {} is not known: give all, or one of {}", name, sim::policy_names()));
  }
  if (info->reads_ahead) {
    return usage_error(
        fmt::format("--policy {}: reading ahead is the machine's dma_prefetch: leave '+stream' out", name));
  }
  if (info != out.front()) out.push_back(info);
  return out;
}

Result<sim::NpuWorth> worth_of(const SimFlags& flags) {
  const std::string name = flags.worth.value_or("energy");
  if (name == "energy") return sim::NpuWorth::energy;
  if (name == "seconds") return sim::NpuWorth::seconds;
  return usage_error(fmt::format("--worth {} is not known: give energy or seconds", name));
}

// "shape:llama-3.2-1b:Q4_K": a published shape, its matrices of a type (F16 if none is named).
Result<std::unique_ptr<Model>> shape_model(const std::string& input) {
  const std::string words = input.substr(kShape.size());
  const size_t colon = words.find(':');
  const ModelShape* known = find_shape(words.substr(0, colon));
  if (known == nullptr) {
    return usage_error(fmt::format("{}: not a known shape: one of {}", input, shape_names()));
  }
  if (colon == std::string::npos) return make_shape_model(*known);
  const std::string wish = words.substr(colon + 1);
  const std::optional<Type> type = type_named(wish);
  if (!type) return usage_error(fmt::format("{}: {} is not a type of weights, such as Q4_K", input, wish));
  return make_shape_model(with_type(*known, *type, *type));
}

Result<uint64_t> positions_of(const EngineFlags& flags, const Model& model) {
  const uint64_t most = model.config().context;
  const int64_t wish = flags.context.value_or(static_cast<int64_t>(std::min(most, kDefaultPositions)));
  if (wish < 1 || static_cast<uint64_t>(wish) > most) {
    return usage_error(fmt::format("--context {} is no usable number: give 1 to the model's {}", wish, most));
  }
  return static_cast<uint64_t>(wish);
}

struct Input {
  sim::NpuWork work;
  uint64_t positions = 0;
};

// A generated token of a model, its keys and values those of `positions` tokens with itself.
Result<Input> model_input(const SimFlags& flags) {
  const std::string& name = flags.engine.model;
  const auto model =
      name.starts_with(kShape) ? RIDGE_TRY(shape_model(name)) : RIDGE_TRY(Model::open(RIDGE_TRY(resolve_model(name))));
  EngineOptions options;
  options.numerics = RIDGE_TRY(parse_numerics(flags.engine.numerics));
  if (flags.engine.kv_type) options.kv_type = RIDGE_TRY(parse_kv_type(*flags.engine.kv_type));
  Input input{.positions = RIDGE_TRY(positions_of(flags.engine, *model))};
  const Program program =
      model->program({.tokens = 1, .outputs = 1, .position = input.positions - 1, .role = TokenRole::generated},
                     {.exact = options.numerics == Numerics::exact, .kv_type = options.kv_type.value_or(KvType::f16)});
  input.work = sim::npu_work(program, {.passes = RIDGE_TRY(passes_of(flags))});
  return input;
}

Result<Input> trace_input(const SimFlags& flags) {
  const std::string& path = flags.engine.model;
  if (flags.passes || flags.engine.context || flags.engine.kv_type) {
    return usage_error("--passes, --context and --kv-type are for models: a trace has its own passes, leave them out");
  }
  Input input;
  if (path.ends_with(".json")) {
    input.work = sim::npu_work(RIDGE_TRY(sim::read_recorded(path)));
  } else {
    input.work = sim::npu_work(RIDGE_TRY(sim::read_oracle_general(path)));
  }
  if (input.work.pass_begins.size() < 2) {
    return bad_input(fmt::format("{}: {}: two or more are needed, as the first one fills the SRAM; record more tokens",
                                 path, counted(input.work.pass_begins.size(), "pass", "passes")));
  }
  return input;
}

}  // namespace

Result<void> check_size(const std::string& input, const sim::NpuWork& work, const sim::NpuMachine& machine) {
  uint64_t bytes = 0;
  for (const sim::NpuObject& object : work.objects) {
    if (object.bytes <= machine.dram.bytes - bytes) {
      bytes += object.bytes;
      continue;
    }
    return does_not_fit(
        fmt::format("{}: its weights and key/value cache are more than the {} of {} of {}: use smaller types or a "
                    "smaller --context",
                    input, format_bytes(machine.dram.bytes), machine.dram.name, machine.name));
  }
  return {};
}

Result<void> sim_npu(const SimFlags& flags, const std::string& profile) {
  RIDGE_TRY(refuse_host_flags(flags));
  const sim::NpuMachine machine = RIDGE_TRY(sim::load_npu_machine(profile));
  const auto policies = RIDGE_TRY(policies_of(flags));
  const sim::NpuWorth worth = RIDGE_TRY(worth_of(flags));
  const Input input = RIDGE_TRY(is_trace(flags.engine.model) ? trace_input(flags) : model_input(flags));
  RIDGE_TRY(check_size(flags.engine.model, input.work, machine));
  NpuReport report{.input = flags.engine.model, .machine = &machine, .work = &input.work};
  report.positions = input.positions;
  report.worth = worth;
  for (const sim::PolicyInfo* info : policies) {
    report.rows.push_back(
        {info->name, info->about, sim::run_npu(input.work, machine, {.policy = info->name, .worth = worth})});
  }
  const sim::NpuRun& last = report.rows.back().run;
  if (last.room_bytes > 0 && last.grain_bytes > last.room_bytes) {
    note(fmt::format("pieces of {} are more than the {} of SRAM, so little or nothing is kept: simulate fewer passes",
                     format_bytes(last.grain_bytes), format_bytes(last.room_bytes)));
  }
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // names in a trace are anyone's
  return print(flags.json ? npu_json(report).dump(2, ' ', false, kReplace) + "\n" : npu_text(report));
}

}  // namespace ridge::cli
