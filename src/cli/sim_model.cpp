// ridge sim for models (their programs) and for traces.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/units.h"
#include "cli/sim.h"
#include "cli/trace_file.h"
#include "report/sim_report.h"
#include "report/sim_trace_info.h"
#include "sim/host_model.h"
#include "sim/recorded_trace.h"
#include "sim/sim_trace.h"

namespace ridge::cli {
namespace {

// Rows of policies(): one, or all of them.
Result<std::vector<const sim::PolicyInfo*>> chosen_policies(const std::string& name) {
  std::vector<const sim::PolicyInfo*> out;
  if (name == "all") {
    for (const sim::PolicyInfo& p : sim::policies()) out.push_back(&p);
    return out;
  }
  const sim::PolicyInfo* info = sim::find_policy(name);
  if (info == nullptr) {
    return usage_error(fmt::format("--policy {} is not known: give all, or one of {}", name, sim::policy_names()));
  }
  out.push_back(info);
  return out;
}

sim::AccessTrace visits_of(const Program& program, uint32_t passes) {
  sim::AccessTrace trace;
  for (uint32_t pass = 0; pass < passes; ++pass) {
    trace.begin_pass();
    for (const Visit& v : program.visits) trace.add(v.block, program.blocks[v.block].memory_bytes);
  }
  trace.link();
  return trace;
}

TraceInfo trace_info(const SimFlags& flags, const Engine& engine, const HostReport& report) {
  return host_trace_info({.title = std::filesystem::path(flags.engine.model).filename().string(),
                          .plan = &engine.plan(),
                          .machine = report.machine,
                          .policy = flags.policy.value_or(""),
                          .rates = engine.rates(),
                          .threads = engine.threads(),
                          .budget_bytes = engine.budget_is_promise() ? engine.budget() : 0,
                          .storage_roof_bytes_per_s = report.host.storage.bytes_per_s});
}

Result<TraceFile> trace_file(const SimFlags& flags) {
  if (flags.policy == "all") return usage_error("--trace follows one run: name one --policy, or none for the plan");
  return TraceFile::create(*flags.trace, "ridge sim");
}

struct InputTrace {
  sim::AccessTrace trace;
  std::string model;
  std::vector<sim::RecordedBlock> blocks;  // of a recorded one
};
Result<InputTrace> read_trace(const std::string& path) {
  if (!path.ends_with(".json")) return InputTrace{.trace = RIDGE_TRY(sim::read_oracle_general(path))};
  sim::RecordedTrace recorded = RIDGE_TRY(sim::read_recorded(path));
  return InputTrace{std::move(recorded.trace), std::move(recorded.model), std::move(recorded.blocks)};
}

// Another trace of the same blocks.
Result<InputTrace> training_trace(const std::string& path, const InputTrace& judged, const std::string& judged_path) {
  InputTrace train = RIDGE_TRY(read_trace(path));
  auto same = [](const sim::RecordedBlock& a, const sim::RecordedBlock& b) {
    return a.name == b.name && a.memory_bytes == b.memory_bytes;
  };
  if (!std::equal(train.blocks.begin(), train.blocks.end(), judged.blocks.begin(), judged.blocks.end(), same)) {
    return bad_input(fmt::format("{}: its blocks are not those of {}: record both with one model and one --memory",
                                 path, judged_path));
  }
  return train;
}

}  // namespace

Result<uint32_t> passes_of(const SimFlags& flags) {
  constexpr int64_t kDefault = 8, kMost = 10'000;
  const int64_t n = flags.passes.value_or(kDefault);
  if (n < 2 || n > kMost) return usage_error(fmt::format("--passes {} is no usable number: give 2 to {}", n, kMost));
  return static_cast<uint32_t>(n);
}

bool is_trace(const std::string& input) { return input.ends_with(".json") || input.ends_with(".oracleGeneral"); }

Result<void> sim_trace(const SimFlags& flags) {
  const std::string& path = flags.engine.model;
  if (flags.trace) return usage_error("--trace needs time, which recorded visits have none of: simulate the model");
  const InputTrace input = RIDGE_TRY(read_trace(path));
  const sim::AccessTrace& trace = input.trace;
  std::optional<InputTrace> train;
  if (flags.train) train = RIDGE_TRY(training_trace(*flags.train, input, path));
  if (flags.export_path) {
    RIDGE_TRY(sim::write_oracle_general(trace, *flags.export_path));
    note(fmt::format("{} written to {}", counted(trace.accesses.size(), "visit"), *flags.export_path));
    if (!flags.engine.memory) return {};
  }
  if (!flags.engine.memory) {
    return usage_error("--memory is missing: how much of the blocks the cache holds, such as 200M");
  }
  const uint64_t capacity = RIDGE_TRY(parse_bytes(*flags.engine.memory));
  ReplayReport report{.input = path, .model = input.model, .capacity = capacity, .distinct = trace.distinct()};
  report.train = flags.train.value_or("");
  report.accesses = trace.accesses.size();
  report.passes = trace.pass_begins.size();
  for (const sim::PolicyInfo* info : RIDGE_TRY(chosen_policies(flags.policy.value_or("all")))) {
    if (info->reads_ahead) continue;  // hits what it hits without reading ahead: time is another matter
    auto policy = info->make({.capacity = capacity, .trace = &trace, .train = train ? &train->trace : nullptr});
    report.rows.push_back({std::string(info->name), std::string(info->about), sim::replay(*policy, trace), info->kind});
  }
  if (report.rows.empty()) {
    return usage_error(
        fmt::format("--policy {} reads ahead, which changes time and not hits, and a trace has no time: "
                    "leave '+stream' out",
                    *flags.policy));
  }
  return print(flags.json ? replay_json(report).dump(2) + "\n" : replay_table(report));
}

Result<void> sim_model(const SimFlags& flags) {
  const uint32_t passes = RIDGE_TRY(passes_of(flags));
  std::optional<TraceFile> trace;
  if (flags.trace) trace.emplace(RIDGE_TRY(trace_file(flags)));
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  if (flags.machine) options.machine = RIDGE_TRY(resolve_profile(*flags.machine));
  options.need_tokenizer = false;
  const MachineProfile machine = RIDGE_TRY(load_profile(flags.machine ? options.machine : default_profile_path()));
  const auto engine = RIDGE_TRY(Engine::plan_only(options));
  const Program& program = engine->plan().program;
  const Placement& placement = engine->plan().placement;
  if (flags.export_path) {
    RIDGE_TRY(sim::write_oracle_general(visits_of(program, passes), *flags.export_path));
    note(fmt::format("{} written to {}", counted(passes, "pass", "passes"), *flags.export_path));
  }
  const sim::HostMachine host = RIDGE_TRY(
      sim::host_machine(machine, {.threads = engine->threads(), .footprint_bytes = program.memory_bytes_of_a_pass()}));
  // All that weights have: a policy may use the slots as well, but for the one that is being computed on.
  const uint64_t capacity = placement.pinned_bytes(program) +
                            (placement.slots > 1 ? (placement.slots - 1) * placement.slot_bytes : uint64_t{0});
  HostReport report{.input = flags.engine.model, .machine = machine.name, .capacity = capacity};
  report.budget = engine->budget();
  report.threads = engine->threads();
  report.weights = program.memory_bytes();
  report.pinned = placement.pinned_bytes(program);
  report.slot_bytes = placement.slot_bytes;
  report.slots = placement.slots;
  report.bound_s = engine->plan().bound.seconds();
  report.host = host;
  auto add = [&](std::string name, std::string about, sim::HostRunOptions run_options) {
    run_options.passes = passes;
    report.rows.push_back({std::move(name), std::move(about), sim::run_host(program, placement, host, run_options)});
  };
  if (!flags.policy || *flags.policy == "all") add("plan", "what the engine does", {});
  if (flags.policy) {
    for (const sim::PolicyInfo* info : RIDGE_TRY(chosen_policies(*flags.policy))) {
      const uint64_t room = info->foresight == sim::Foresight::order_known ? report.pinned : capacity;
      add(std::string(info->name), std::string(info->about), {.policy = info->name, .capacity = room});
    }
  }
  if (trace) {
    RIDGE_TRY(refuse_overwriting(*flags.trace, engine->model().file().files(), "--trace"));
    const sim::HostRun& traced = report.rows.front().run;
    sim::write_trace(traced.sim, traced.result, {.ends = traced.pass_ends, .name = "decode", .tokens = 1},
                     *trace->trace());
    RIDGE_TRY(trace->finish(trace_info(flags, *engine, report)));
  }
  return print(flags.json ? host_json(report).dump(2) + "\n" : host_table(report));
}

}  // namespace ridge::cli
