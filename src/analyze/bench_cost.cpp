#include "analyze/bench_cost.h"

#include <algorithm>

#include "plan/pass_model.h"

namespace ridge {
namespace {

CostRules rules_of(const Engine& engine) {
  return {.batch = engine.plan().batch, .exact = engine.machinery().exact, .kv_type = engine.kv_type()};
}

// What a pass of this many tokens reads from storage, as expected.
double streamed_bytes(const Engine& engine, uint32_t tokens) {
  const Plan& plan = engine.plan();
  double sum = 0;
  for (const Visit& v : plan.program.visits) {
    if (plan.placement.pinned[v.block]) continue;
    sum += chance_of(v, tokens) * static_cast<double>(plan.program.blocks[v.block].storage_bytes);
  }
  return sum;
}

}  // namespace

TestCost prefill_cost(const Engine& engine, const TestShape& shape) {
  const CostRules rules = rules_of(engine);
  const PhaseCost phase = prefill_phase(engine.model(), shape, rules);
  TestCost total{.cost = phase.total(), .passes = phase.passes};
  for (uint64_t done = 0; done < shape.tokens; done += rules.batch) {
    total.streamed_bytes +=
        streamed_bytes(engine, static_cast<uint32_t>(std::min<uint64_t>(rules.batch, shape.tokens - done)));
  }
  return total;
}

TestCost decode_cost(const Engine& engine, const TestShape& shape) {
  const PhaseCost phase = decode_phase(engine.model(), shape, rules_of(engine));
  return {.cost = phase.total(),
          .passes = phase.passes,
          .streamed_bytes = streamed_bytes(engine, 1) * static_cast<double>(shape.tokens)};
}

}  // namespace ridge
