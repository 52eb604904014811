// Guesses of a small model with the same vocabulary, resident in the engine's own budget (EngineOptions::draft_path).
//
// It samples as the large one will: with the same options and the same random number. Where both models agree about
// the likely tokens they then mostly choose the same one, more often than the small model's best guess would be right
// (docs/speculation.md has the figures).
//
//   ModelDrafter drafter(*engine.draft(), engine.model().config().vocabulary, sampler_options);
#pragma once

#include "engine/speculation.h"

namespace ridge {

class ModelDrafter final : public Drafter {
 public:
  // vocabulary: rows of the large model's logits.
  ModelDrafter(Engine& small, uint32_t vocabulary, const SamplerOptions& sampling);

  std::string description() const override;
  const std::array<float, kGuessKinds>& priors() const override;
  Result<void> begin(std::span<const TokenId> line, const std::atomic<bool>* interrupted) override;
  Result<void> draft(const DraftRequest& request, DraftPolicy& policy, std::vector<Guess>& out) override;

 private:
  bool knows(TokenId id) const;
  Result<std::span<float>> follow(std::span<const TokenId> line, const std::atomic<bool>* interrupted);
  Guess choose(std::span<float> logits);

  Engine& small_;
  uint32_t vocabulary_;
  Sampler mirror_;
  std::vector<float> padded_;  // logits with as many rows as the large model has, if the small one has fewer
};

}  // namespace ridge
