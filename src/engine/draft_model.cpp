#include "engine/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"

namespace ridge {
namespace {

// Kinds by how far the choice is ahead of the next best, in logits: e^-4 leaves the others 2 %.
constexpr float kMargins[] = {0.0f, 0.25f, 0.5f, 0.75f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f, 4.0f, 5.0f, 6.0f, 8.0f};

uint8_t kind_of(float margin) {
  size_t kind = 0;
  for (float least : kMargins) kind += margin > least ? 1 : 0;
  return static_cast<uint8_t>(kind);
}

}  // namespace

ModelDrafter::ModelDrafter(Engine& small, uint32_t vocabulary, const SamplerOptions& sampling)
    : small_(small), vocabulary_(vocabulary), mirror_(sampling, vocabulary) {
  if (small.model().config().vocabulary < vocabulary) {
    padded_.assign(vocabulary, -std::numeric_limits<float>::infinity());
  }
}

std::string ModelDrafter::description() const {
  const ModelConfig& c = small_.model().config();
  return fmt::format("{} ({}, {})", c.name.empty() ? "a draft model" : c.name, c.architecture,
                     format_bytes(small_.plan().program.memory_bytes()));
}

const std::array<float, kGuessKinds>& ModelDrafter::priors() const {
  static constexpr std::array<float, kGuessKinds> kPriors = {0.2f, 0.3f,  0.35f, 0.4f,  0.45f, 0.5f,  0.6f,  0.65f,
                                                             0.7f, 0.75f, 0.8f,  0.85f, 0.9f,  0.93f, 0.95f, 0.95f};
  return kPriors;
}

bool ModelDrafter::knows(TokenId id) const { return static_cast<uint32_t>(id) < small_.model().config().vocabulary; }

// Brings the small model's timeline to `line`, of which it mostly holds all but the last tokens; the logits of its end.
Result<std::span<float>> ModelDrafter::follow(std::span<const TokenId> line, const std::atomic<bool>* interrupted) {
  auto have = small_.history();
  const size_t most = std::min(have.size(), line.size() - 1);
  size_t same = static_cast<size_t>(
      std::mismatch(have.begin(), have.begin() + static_cast<ptrdiff_t>(most), line.begin()).first - have.begin());
  if (!small_.rewind(same)) same = 0;
  if (line.size() - same == 1) return small_.decode(line.back());
  return small_.evaluate(line.subspan(same), interrupted);
}

Result<void> ModelDrafter::begin(std::span<const TokenId> line, const std::atomic<bool>* interrupted) {
  if (line.empty() || !std::all_of(line.begin(), line.end(), [&](TokenId id) { return knows(id); })) return {};
  RIDGE_TRY(follow(line, interrupted));
  return {};
}

Guess ModelDrafter::choose(std::span<float> logits) {
  if (!padded_.empty()) {
    std::copy(logits.begin(), logits.end(), padded_.begin());
    logits = padded_;
  }
  logits = logits.first(vocabulary_);
  Guess guess{.id = mirror_.sample(logits)};
  const auto chosen = static_cast<size_t>(guess.id);
  float next_best = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) next_best = i != chosen ? std::max(next_best, logits[i]) : next_best;
  guess.kind = kind_of(logits[chosen] - next_best);
  return guess;
}

Result<void> ModelDrafter::draft(const DraftRequest& request, DraftPolicy& policy, std::vector<Guess>& out) {
  std::vector<TokenId>& line = request.line;
  const size_t before = line.size();
  // A token of the large model's padding: rare enough to wait until the line leaves it behind, which is never.
  if (!std::all_of(line.begin(), line.end(), [&](TokenId id) { return knows(id); })) return {};
  mirror_.follow(request.sampler);
  double chance = 1;
  while (out.size() < request.most && policy.worth_guessing(chance)) {
    const Guess guess = choose(RIDGE_TRY(follow(line, nullptr)));
    out.push_back(guess);
    chance *= policy.rate(guess.kind);
    if (!policy.worth_checking(chance) || !knows(guess.id)) break;
    mirror_.accept(guess.id);
    line.push_back(guess.id);
  }
  line.resize(before);
  return {};
}

}  // namespace ridge
