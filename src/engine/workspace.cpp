#include "engine/workspace.h"

#include <algorithm>

#include "base/units.h"
#include "model/compute.h"

namespace ridge {

WorkspaceLayout workspace_layout(const Model& model, const Program& program, const WorkspaceNeeds& needs) {
  constexpr uint64_t kPage = 4096;
  WorkspaceLayout w;
  const bool exact = needs.exact;
  uint64_t workers = static_cast<uint64_t>(needs.threads);
  // A generated token may need more than a prompt token of the same batch.
  PassShape prompt{.tokens = needs.batch, .outputs = std::min(needs.batch, needs.logits_rows)};
  PassShape generated{.tokens = needs.verify_tokens, .outputs = needs.verify_tokens, .role = TokenRole::generated};
  uint64_t floats = std::max(model.workspace_floats(prompt, exact), model.workspace_floats(generated, exact));
  uint64_t latent = std::max(model.latent_floats(prompt, exact), model.latent_floats(generated, exact));
  w.panels = round_up(floats * sizeof(float), kPage);
  w.attention = w.panels + workers * panel_scratch_bytes(program, std::max(needs.batch, needs.verify_tokens));
  w.latent = w.attention + round_up(attention_floats(model, needs.context, needs.threads) * sizeof(float), kPage);
  w.logits = w.latent + workers * round_up(latent * sizeof(float), kPage);
  w.total = w.logits + round_up(uint64_t{needs.rows()} * model.config().vocabulary * sizeof(float), kPage);
  return w;
}

}  // namespace ridge
