// Producing text: evaluates a prompt, samples, and hands out pieces of text that never cut a character, until the model
// ends, a stop text appears, a limit is met or somebody asks to stop.
//
//   Generation g = RIDGE_TRY(generate(engine, ids, {.max_tokens = 64, .stops = {"\n\n"}}, sampler,
//                                     [](std::string_view text) { std::cout << text; return true; }));
//   g.text, g.reason
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/speculation.h"
#include "text/sampler.h"

namespace ridge {

enum class StopReason : uint8_t { end_of_generation, stop_text, token_limit, context_full, interrupted };
std::string_view name_of(StopReason reason);

struct GenerateOptions {
  int64_t max_tokens = -1;         // −1: until the model ends or the context is full
  std::vector<std::string> stops;  // generation ends before the first of these; they are not printed
  bool ignore_end = false;         // go on past end-of-generation tokens
  bool show_special = false;
  const std::atomic<bool>* interrupted = nullptr;
  Speculator* speculator = nullptr;              // several tokens per pass; changes no byte of what is generated
  std::function<Result<void>()> on_prompt = {};  // called once, when the prompt has been evaluated; its error ends all
};

struct Generation {
  std::string text;
  std::vector<TokenId> ids;  // generated, without the end-of-generation token
  StopReason reason = StopReason::token_limit;
  uint64_t prompt_tokens = 0, reused_tokens = 0;
};

// Brings the engine's timeline to `prompt` (reusing what it shares with the present one) and generates after it.
// Returning false from `on_text` stops as interrupted. Errors: those of Engine::evaluate.
Result<Generation> generate(Engine& engine, const std::vector<TokenId>& prompt, const GenerateOptions& options,
                            Sampler& sampler, const std::function<bool(std::string_view)>& on_text);

}  // namespace ridge
