// What the phases of a model move and compute, by operator: sums of the model's own counts (program.h: Cost), for a
// model that runs as well as for one of which only the shape is known.
//
//   CostRules rules{.batch = 512};
//   PhaseCost prompt = prefill_phase(model, {.tokens = 4096}, rules);
//   PhaseCost token = decode_phase(model, {.tokens = 32, .depth = 4096}, rules);
//   token[Operator::attention].kv_bytes
#pragma once

#include <array>
#include <cstdint>

#include "model/model.h"

namespace ridge {

struct TestShape {
  uint64_t tokens = 0;
  uint64_t depth = 0;  // tokens before them
};

struct CostRules {
  uint32_t batch = 512;  // prompt tokens of a pass
  bool exact = false;    // float activations
  KvType kv_type = KvType::f16;
};

struct PhaseCost {
  std::array<Cost, kOperators> operators;
  uint64_t passes = 0;        // walks through the weights
  uint64_t expert_bytes = 0;  // of memory, those of experts that a router chooses, as expected: a part of the above
  const Cost& operator[](Operator op) const { return operators[static_cast<size_t>(op)]; }
  Cost total() const;
};

// In passes of `batch` tokens; the head is visited for the last token alone.
PhaseCost prefill_phase(const Model& model, const TestShape& shape, const CostRules& rules);
// One pass per token. Summed over at most 16 evenly spaced positions.
PhaseCost decode_phase(const Model& model, const TestShape& shape, const CostRules& rules);

// The bytes of memory that decode's weights would take if every matrix of more bits were of this type; matrices whose
// columns do not fit its blocks stay as they are.
uint64_t weight_bytes_as(const Program& program, Type type);

}  // namespace ridge
