#include "analyze/bench_cost.h"

#include <algorithm>

#include "plan/pass_model.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

Cost pass_cost(const Engine& engine, const PassShape& shape) {
  const Model& model = engine.model();
  Cost cost = model.program(shape, {.exact = engine.machinery().exact, .kv_type = engine.kv_type()}).cost();
  if (shape.outputs == 0) {  // the program always lists the head; such a pass does not visit it
    const Weight& head = model.head();
    cost.memory_bytes -= panels_bytes(head.type, head.rows, head.cols);
  }
  return cost;
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

Cost scaled(const Cost& c, double factor) {
  auto times = [&](uint64_t n) { return static_cast<uint64_t>(static_cast<double>(n) * factor); };
  return {.storage_bytes = times(c.storage_bytes),
          .memory_bytes = times(c.memory_bytes),
          .kv_bytes = times(c.kv_bytes),
          .activation_bytes = times(c.activation_bytes),
          .flops = times(c.flops),
          .int_ops = times(c.int_ops)};
}

}  // namespace

TestCost prefill_cost(const Engine& engine, const TestShape& shape) {
  TestCost total;
  for (uint64_t done = 0; done < shape.tokens;) {
    uint64_t n = std::min<uint64_t>(engine.plan().batch, shape.tokens - done);
    uint32_t outputs = done + n == shape.tokens ? 1 : 0;
    total.cost +=
        pass_cost(engine, {.tokens = static_cast<uint32_t>(n), .outputs = outputs, .position = shape.depth + done});
    ++total.passes;
    total.streamed_bytes += streamed_bytes(engine, static_cast<uint32_t>(n));
    done += n;
  }
  return total;
}

TestCost decode_cost(const Engine& engine, const TestShape& shape) {
  constexpr uint64_t kMostPositions = 16;
  uint64_t samples = std::min(shape.tokens, kMostPositions);
  TestCost total{.passes = shape.tokens};
  total.streamed_bytes = streamed_bytes(engine, 1) * static_cast<double>(shape.tokens);
  for (uint64_t i = 0; i < samples; ++i) {
    // The middle of each of `samples` equal stretches.
    uint64_t position = shape.depth + (2 * i + 1) * shape.tokens / (2 * samples);
    total.cost += pass_cost(engine, {.tokens = 1, .outputs = 1, .position = position, .role = TokenRole::generated});
  }
  if (samples > 0) total.cost = scaled(total.cost, static_cast<double>(shape.tokens) / static_cast<double>(samples));
  return total;
}

}  // namespace ridge
