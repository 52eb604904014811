// The memory that a forward pass works in: one slab, laid out for the largest passes there will be.
//
//   const WorkspaceLayout layout = workspace_layout(model, program, {.batch = 128, .context = 4096, .threads = 2});
//   Slab slab = RIDGE_TRY(Slab::allocate(layout.total)); float* logits = slab.data() + layout.logits;
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/model.h"
#include "program/program.h"

namespace ridge {

// Offsets of the parts, each on a page of its own.
struct WorkspaceLayout {
  uint64_t activations = 0, panels = 0, attention = 0, latent = 0, logits = 0;
  uint64_t total = 0;  // bytes
};

// The largest passes there will be.
struct WorkspaceNeeds {
  uint32_t batch = 1, logits_rows = 1;  // prompt tokens, and how many of them get logits
  uint32_t verify_tokens = 1;           // generated ones, all with logits
  uint64_t context = 0;
  int threads = 1;
  bool exact = false;

  uint32_t rows() const { return std::max(std::min(batch, logits_rows), verify_tokens); }
};

WorkspaceLayout workspace_layout(const Model& model, const Program& program, const WorkspaceNeeds& needs);

}  // namespace ridge
