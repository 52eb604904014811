// Flags for several tokens per pass (engine/speculation.h), shared by all commands that generate.
//
//   add_draft_flags(command, flags.drafts);
//   RIDGE_TRY(apply(flags.drafts, options));                        // before Engine::open
//   auto speculator = make_speculator(flags.drafts, *engine, sampling, sampler);    // nullptr without drafts
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/common.h"
#include "engine/speculation.h"

namespace ridge::cli {

struct DraftFlags {
  std::optional<int64_t> ngram, tokens;
  std::optional<std::string> model;
  bool given() const { return ngram || model; }
};

void add_draft_flags(CLI::App& command, DraftFlags& flags);
// Usage error for values out of range, for two drafters, and for a limit without a drafter.
Result<void> apply(const DraftFlags& flags, EngineOptions& options);
std::unique_ptr<Speculator> make_speculator(const DraftFlags& flags, Engine& engine, const SamplerOptions& sampling,
                                            const Sampler& sampler);

}  // namespace ridge::cli
