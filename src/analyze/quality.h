// How good a model's predictions of a text are, and how close one arithmetic comes to another.
//
// Windows of a fixed length are read independently; the first half of each is context, the second is scored, as
// llama.cpp's perplexity does. Where the model wants a BOS, it replaces the first token of each window.
//
//   WindowOptions w{.window = 512};
//   Likelihood l = RIDGE_TRY(likelihood(engine, ids, w));
//   l.nll ± l.standard_error; exp(l.nll) is the perplexity
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "engine/engine.h"

namespace ridge {

struct WindowOptions {
  uint32_t window = 512;
  uint64_t most_windows = UINT64_MAX;
  const std::atomic<bool>* interrupted = nullptr;  // becomes true: the next pass is not begun
};
// I/O error if it became true.
Result<void> check_interrupt(const WindowOptions& options);

struct Likelihood {
  double nll = 0;             // mean negative log-likelihood, nats per token
  double standard_error = 0;  // of that mean, tokens taken as independent
  uint64_t scored = 0, windows = 0;
};

// Bad input if the text is shorter than one window; I/O error: interrupted.
Result<Likelihood> likelihood(Engine& engine, std::span<const TokenId> ids, const WindowOptions& options,
                              const std::function<void(uint64_t tokens, double nll)>& progress = {});

struct Divergence {
  double kl = 0;  // mean over all positions of KL(reference ‖ other), nats
  double standard_error = 0;
  double same_top = 0;  // share of positions whose likeliest token is the same
  uint64_t positions = 0;
  // Of the second halves of the windows, as likelihood() scores them.
  double reference_nll = 0, other_nll = 0;
  uint64_t scored = 0;
};

// Pooled over all positions of the windows. Both engines read the same tokens, one pass after the other. Errors: those
// of likelihood().
Result<Divergence> divergence(Engine& reference, Engine& other, std::span<const TokenId> ids,
                              const WindowOptions& options,
                              const std::function<void(uint64_t tokens, double kl)>& progress = {});

// Of one position: −log softmax(logits)[target], and KL(softmax(a) ‖ softmax(b)); nats, in double.
double negative_log_likelihood(std::span<const float> logits, TokenId target);
double kl_divergence(std::span<const float> a, std::span<const float> b);

}  // namespace ridge
