#include "analyze/phase_cost.h"

#include <algorithm>

#include "tensor/panel.h"

namespace ridge {
namespace {

void add_pass(PhaseCost& sum, const Model& model, const PassShape& shape, const CostRules& rules, double times) {
  const Program program = model.program(shape, {.exact = rules.exact, .kv_type = rules.kv_type});
  auto scaled = [&](uint64_t n) { return static_cast<uint64_t>(static_cast<double>(n) * times + 0.5); };
  for (const Visit& visit : program.visits) {
    if (program.blocks[visit.block].on_demand) sum.expert_bytes += scaled(visit.cost.memory_bytes);
  }
  for (size_t i = 0; i < kOperators; ++i) {
    // The program always lists the head; a pass without outputs does not visit it.
    if (shape.outputs == 0 && static_cast<Operator>(i) == Operator::head) continue;
    const Cost& c = program.operators[i];
    sum.operators[i] += {.storage_bytes = scaled(c.storage_bytes),
                         .memory_bytes = scaled(c.memory_bytes),
                         .kv_bytes = scaled(c.kv_bytes),
                         .activation_bytes = scaled(c.activation_bytes),
                         .flops = scaled(c.flops),
                         .int_ops = scaled(c.int_ops)};
  }
}

}  // namespace

Cost PhaseCost::total() const {
  Cost sum;
  for (const Cost& c : operators) sum += c;
  return sum;
}

PhaseCost prefill_phase(const Model& model, const TestShape& shape, const CostRules& rules) {
  PhaseCost sum;
  for (uint64_t done = 0; done < shape.tokens;) {
    const uint64_t n = std::min<uint64_t>(rules.batch, shape.tokens - done);
    const uint32_t outputs = done + n == shape.tokens ? 1 : 0;
    add_pass(sum, model, {.tokens = static_cast<uint32_t>(n), .outputs = outputs, .position = shape.depth + done},
             rules, 1);
    ++sum.passes;
    done += n;
  }
  return sum;
}

PhaseCost decode_phase(const Model& model, const TestShape& shape, const CostRules& rules) {
  constexpr uint64_t kMostPositions = 16;
  const uint64_t samples = std::min(shape.tokens, kMostPositions);
  PhaseCost sum{.operators = {}, .passes = shape.tokens};
  for (uint64_t i = 0; i < samples; ++i) {
    // The middle of each of `samples` equal stretches.
    const uint64_t position = shape.depth + (2 * i + 1) * shape.tokens / (2 * samples);
    add_pass(sum, model, {.tokens = 1, .outputs = 1, .position = position, .role = TokenRole::generated}, rules,
             static_cast<double>(shape.tokens) / static_cast<double>(samples));
  }
  return sum;
}

uint64_t weight_bytes_as(const Program& program, Type type) {
  const TypeInfo& wish = type_info(type);
  double sum = 0;
  for (const Visit& visit : program.visits) {
    for (const Piece& piece : program.blocks[visit.block].pieces) {
      const StoredTensor& tensor = program.tensors[piece.tensor];
      const uint64_t rows = piece.row_end - piece.row_begin;
      uint64_t bytes = panels_bytes(tensor.type, rows, tensor.cols);
      if (tensor.cols % wish.block == 0) bytes = std::min(bytes, panels_bytes(type, rows, tensor.cols));
      sum += visit.chance * static_cast<double>(bytes);
    }
  }
  return static_cast<uint64_t>(sum);
}

}  // namespace ridge
