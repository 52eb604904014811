#include "engine/generate.h"

#include <algorithm>

namespace ridge {
namespace {

// Holds back text that may be the beginning of a stop text.
class StopFilter {
 public:
  explicit StopFilter(const std::vector<std::string>& stops) : stops_(stops) {}

  // Adds text; returns what may be shown now.
  std::string push(std::string_view text) {
    held_ += text;
    size_t first = std::string::npos;
    for (const std::string& stop : stops_) {
      if (!stop.empty()) first = std::min(first, held_.find(stop));
    }
    if (first != std::string::npos) {
      stopped_ = true;
      held_.resize(first);
      return flush();
    }
    size_t keep = 0;
    for (const std::string& stop : stops_) keep = std::max(keep, overlap(stop));
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  std::string flush() { return std::exchange(held_, {}); }
  bool stopped() const { return stopped_; }

 private:
  // Length of the longest end of the held text that begins `stop`.
  size_t overlap(const std::string& stop) const {
    for (size_t n = std::min(stop.size(), held_.size()); n > 0; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) return n;
    }
    return 0;
  }

  const std::vector<std::string>& stops_;
  std::string held_;
  bool stopped_ = false;
};

// The tokens of the prompt that the engine need not evaluate again. The last one always is: its logits are wanted.
size_t reuse_prefix(Engine& engine, const std::vector<TokenId>& prompt) {
  auto have = engine.history();
  size_t most = std::min<size_t>(engine.reusable(), prompt.size() - 1), same = 0;
  while (same < most && have[same] == prompt[same]) ++same;
  return engine.rewind(same) ? same : 0;
}

// Without the drafts that may be ahead of the text.
uint64_t position(const Engine& engine, const GenerateOptions& options) {
  return options.speculator != nullptr ? options.speculator->position() : engine.position();
}

// The logits after `next`, of which `left` more tokens are wanted at most.
Result<std::span<float>> evaluate_generated(Engine& engine, const GenerateOptions& options, TokenId next,
                                            uint64_t left) {
  return options.speculator != nullptr ? options.speculator->advance(next, left) : engine.decode(next);
}

}  // namespace

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_generation:
      return "end";
    case StopReason::stop_text:
      return "stop";
    case StopReason::token_limit:
      return "length";
    case StopReason::context_full:
      return "context";
    case StopReason::interrupted:
      return "interrupted";
  }
  return "?";
}

Result<Generation> generate(Engine& engine, const std::vector<TokenId>& prompt, const GenerateOptions& options,
                            Sampler& sampler, const std::function<bool(std::string_view)>& on_text) {
  if (prompt.empty()) return bad_input("the prompt has no tokens: give some text");
  Generation g;
  g.prompt_tokens = prompt.size();
  g.reused_tokens = reuse_prefix(engine, prompt);
  std::span<float> logits = RIDGE_TRY(engine.evaluate(std::span(prompt).subspan(g.reused_tokens), options.interrupted));
  if (options.interrupted != nullptr && options.interrupted->load()) {
    g.reason = StopReason::interrupted;
    return g;
  }
  if (options.on_prompt) RIDGE_TRY(options.on_prompt());
  if (options.speculator != nullptr) RIDGE_TRY(options.speculator->begin(options.interrupted));
  for (TokenId id : prompt) sampler.accept(id);

  DetokenizeStream stream(*engine.tokenizer(), {.show_special = options.show_special, .keep_leading_space = true});
  StopFilter filter(options.stops);
  bool wanted = true;
  auto show = [&](const std::string& text) {
    if (text.empty() || !wanted) return;
    g.text += text;
    wanted = on_text(text) && wanted;
  };
  for (;;) {
    if (options.max_tokens >= 0 && g.ids.size() >= static_cast<uint64_t>(options.max_tokens)) {
      g.reason = StopReason::token_limit;
      break;
    }
    TokenId next = sampler.sample(logits);
    if (engine.tokenizer()->is_end_of_generation(next) && !options.ignore_end) {
      g.reason = StopReason::end_of_generation;
      break;
    }
    sampler.accept(next);
    g.ids.push_back(next);
    show(filter.push(stream.push(next)));
    if (filter.stopped()) {
      g.reason = StopReason::stop_text;
      break;
    }
    if (!wanted || (options.interrupted != nullptr && options.interrupted->load())) {
      g.reason = StopReason::interrupted;
      break;
    }
    if (position(engine, options) >= engine.context()) {
      g.reason = StopReason::context_full;
      break;
    }
    const uint64_t left =
        options.max_tokens >= 0 ? static_cast<uint64_t>(options.max_tokens) - g.ids.size() : UINT64_MAX;
    if (left == 0) continue;
    logits = RIDGE_TRY(evaluate_generated(engine, options, next, left));
  }
  if (options.speculator != nullptr) options.speculator->finish();
  if (!filter.stopped()) {
    show(filter.push(stream.finish()));
    if (filter.stopped()) g.reason = StopReason::stop_text;
    show(filter.flush());
  }
  return g;
}

}  // namespace ridge
