// ridge run: shared by the single answer (run.cpp) and the chat (chat.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cache_flags.h"
#include "cli/common.h"
#include "cli/drafting.h"
#include "engine/generate.h"
#include "engine/prompt.h"
#include "text/sampler.h"

namespace ridge::cli {

struct RunFlags {
  EngineFlags engine;
  DraftFlags drafts;
  CacheFlags cache;
  std::optional<std::string> prompt, system;
  std::optional<std::string> input, file, save_state, load_state, record, trace, expert_policy;
  int64_t max_tokens = -1;
  SamplerOptions sampler;
  std::optional<uint64_t> seed;
  std::vector<std::string> logit_bias, stops;
  bool raw = false, show_prompt = false, json = false, stats = false, explain = false, ignore_end = false;
  bool all_neurons = false;
};

// `speculator` may be nullptr.
Result<void> chat(Engine& engine, const RunFlags& flags, const Prompt& prompt, Sampler& sampler,
                  Speculator* speculator);
GenerateOptions generate_options(const RunFlags& flags);
// --show-prompt: the text that the model gets, special tokens and all.
void show_prompt(const Tokenizer& tokenizer, const std::vector<TokenId>& ids);
// --record: the visits of all passes, as far as they were recorded.
Result<void> write_recording(const Engine& engine, const std::string& path);
// --save-state: writes the file and says what is in it.
Result<void> save_state(Engine& engine, const std::string& path);

}  // namespace ridge::cli
