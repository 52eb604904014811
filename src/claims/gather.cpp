#include "claims/gather.h"

#include <algorithm>

#include "analyze/shape_model.h"
#include "base/check.h"
#include "claims/scaled_work.h"
#include "sim/npu_run.h"
#include "sim/policy.h"

namespace ridge {
namespace {

constexpr uint64_t kPositions = 512;
constexpr uint32_t kPasses = 8, kRestingPasses = 16;

struct JudgedModel {
  const char* shape;
  bool paper;
};
constexpr JudgedModel kModels[] = {{"llama-3-8b", true}, {"phi-3-mini", true}, {"smollm2-135m", false}};

MethodCost cost_of(const sim::NpuRun& run) {
  return {.dram_bytes = run.dram_bytes, .seconds = run.pass_s, .joules = run.energy.total()};
}

Result<Program> token_program(const ModelShape& shape, Type type) {
  const auto model = RIDGE_TRY(make_shape_model(with_type(shape, type, type)));
  return model->program({.tokens = 1, .outputs = 1, .position = kPositions - 1, .role = TokenRole::generated},
                        {.exact = false, .kv_type = KvType::f16});
}

uint64_t all_bytes(const sim::NpuWork& work) {
  uint64_t sum = 0;
  for (const sim::NpuObject& o : work.objects) sum += o.bytes;
  return sum;
}

// The mean over the students; pins are chosen from the visits that are judged, which changes little where SRAM holds a
// small share, since what every token reads is pinned first.
Result<MethodCost> resting_cost(const Program& program, const sim::NpuMachine& machine,
                                std::span<const sim::RecordedTrace> visits) {
  MethodCost mean;
  const auto n = static_cast<double>(visits.size());
  for (const sim::RecordedTrace& v : visits) {
    const sim::NpuWork work = RIDGE_TRY(scaled_work(program, v, {.passes = kRestingPasses}));
    const MethodCost c = cost_of(sim::run_npu(work, machine, {.policy = "pin-worth"}));
    mean.dram_bytes += c.dram_bytes / n;
    mean.seconds += c.seconds / n;
    mean.joules += c.joules / n;
  }
  return mean;
}

// Nothing is read before it is needed, into one buffer.
sim::NpuMachine serial_machine(sim::NpuMachine machine) {
  machine.prefetch = 0;
  machine.buffers = 1;
  machine.engines = 1;
  return machine;
}

Result<std::optional<MachineCase>> machine_case(const JudgedModel& judged, const sim::NpuMachine& machine,
                                                std::span<const sim::RecordedTrace> visits) {
  const ModelShape* shape = find_shape(judged.shape);
  RIDGE_CHECK(shape != nullptr, "a judged model has no shape");
  MachineCase out{.machine = machine.name, .model = judged.shape, .paper_model = judged.paper};
  out.resting = !visits.empty();
  for (const Type type : {Type::Q8_0, Type::Q4_0}) {
    const Program program = RIDGE_TRY(token_program(*shape, type));
    const sim::NpuWork work = sim::npu_work(program, {.passes = kPasses});
    const uint64_t bytes = all_bytes(work);
    if (bytes > machine.dram.bytes) return std::optional<MachineCase>();
    const sim::NpuRun none = sim::run_npu(work, machine, {.policy = "none"});
    MethodCost* methods = &out.methods[type == Type::Q8_0 ? 0 : static_cast<size_t>(Method::four)];
    methods[0] = cost_of(none);
    methods[1] = cost_of(sim::run_npu(work, machine, {.policy = "pin-worth"}));
    if (out.resting) methods[2] = RIDGE_TRY(resting_cost(program, machine, visits));
    if (type != Type::Q8_0) continue;
    out.pinned_at_most = std::min(1.0, static_cast<double>(machine.room()) / static_cast<double>(bytes));
    out.serial = cost_of(sim::run_npu(work, serial_machine(machine), {.policy = "none"}));
    out.busiest_s = none.bound_s();
  }
  return std::optional(std::move(out));
}

}  // namespace

Result<std::vector<MachineCase>> machine_cases(const sim::NpuMachine& machine,
                                               std::span<const sim::RecordedTrace> visits) {
  std::vector<MachineCase> out;
  for (const JudgedModel& model : kModels) {
    std::optional<MachineCase> one = RIDGE_TRY(machine_case(model, machine, visits));
    if (one) out.push_back(std::move(*one));
  }
  return out;
}

std::vector<TierRatio> tier_ratios(const sim::NpuMachine& machine) {
  std::vector<TierRatio> out;
  for (const auto& tier : {machine.local, machine.shared}) {
    if (!tier || tier->read_j_per_byte <= 0) continue;
    out.push_back({.machine = machine.name,
                   .tier = tier->name,
                   .bytes = tier->bytes,
                   .ratio = machine.dram.read_j_per_byte / tier->read_j_per_byte});
  }
  return out;
}

std::vector<std::string> replayed_policies() {
  std::vector<std::string> out;
  for (const sim::PolicyInfo& p : sim::policies()) {
    if (!p.reads_ahead) out.emplace_back(p.name);
  }
  return out;
}

PolicyHits replay_policies(const sim::RecordedTrace& train, const sim::RecordedTrace& judge, double cache) {
  PolicyHits out{.cache = cache};
  uint64_t bytes = 0;
  for (const sim::RecordedBlock& b : judge.blocks) bytes += b.memory_bytes;
  const auto capacity = static_cast<uint64_t>(static_cast<double>(bytes) * cache);
  for (const sim::PolicyInfo& p : sim::policies()) {
    if (p.reads_ahead) continue;
    auto policy = p.make({.capacity = capacity, .trace = &judge.trace, .train = &train.trace});
    out.ratios.push_back(sim::replay(*policy, judge.trace).hit_size_ratio());
  }
  return out;
}

}  // namespace ridge
