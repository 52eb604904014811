#include "cli/drafting.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "engine/draft_model.h"
#include "engine/draft_ngram.h"

namespace ridge::cli {
namespace {

// A row of logits each: 0.2 to 1 MiB, which under a budget is taken from the weights in memory.
constexpr int64_t kMostDrafts = 64, kDefaultDrafts = 8;

}  // namespace

void add_draft_flags(CLI::App& command, DraftFlags& flags) {
  command.add_option("--draft-ngram", flags.ngram, "guess ahead: where did the last N tokens come before?")
      ->type_name("N")
      ->group("Several tokens per pass");
  command.add_option("--draft-model", flags.model, "guess ahead with a small model of the same vocabulary")
      ->type_name("MODEL")
      ->group("Several tokens per pass");
  command
      .add_option("--draft-tokens", flags.tokens, fmt::format("most guesses per pass (default: {})", kDefaultDrafts))
      ->type_name("K")
      ->group("Several tokens per pass");
}

Result<void> apply(const DraftFlags& flags, EngineOptions& options) {
  if (flags.ngram && flags.model) {
    return usage_error("--draft-ngram and --draft-model are two ways to guess: give one of them");
  }
  if (flags.tokens && !flags.given()) {
    return usage_error("--draft-tokens limits guesses, but nothing makes any: give --draft-ngram or --draft-model too");
  }
  if (!flags.given()) return {};
  if (flags.ngram && (*flags.ngram < 1 || *flags.ngram > kLongestNgram)) {
    return usage_error(
        fmt::format("--draft-ngram {} is no usable number: give 1 to {}, such as 4", *flags.ngram, kLongestNgram));
  }
  const int64_t tokens = flags.tokens.value_or(kDefaultDrafts);
  if (tokens < 1 || tokens > kMostDrafts) {
    return usage_error(fmt::format("--draft-tokens {} is no usable number: give 1 to {}", tokens, kMostDrafts));
  }
  options.verify_tokens = static_cast<uint32_t>(tokens) + 1;
  if (flags.model) options.draft_path = RIDGE_TRY(resolve_model(*flags.model));
  if (options.numerics == Numerics::fast) {
    note(
        "with --numerics fast the text may differ from the one without drafts: its kernels differ by how many tokens "
        "share a pass");
  }
  return {};
}

std::unique_ptr<Speculator> make_speculator(const DraftFlags& flags, Engine& engine, const SamplerOptions& sampling,
                                            const Sampler& sampler) {
  if (!flags.given()) return nullptr;
  std::unique_ptr<Drafter> drafter;
  if (flags.ngram) {
    drafter = std::make_unique<NgramDrafter>(static_cast<size_t>(*flags.ngram));
  } else {
    drafter = std::make_unique<ModelDrafter>(*engine.draft(), engine.model().config().vocabulary, sampling);
  }
  return std::make_unique<Speculator>(engine, std::move(drafter), sampler);
}

}  // namespace ridge::cli
