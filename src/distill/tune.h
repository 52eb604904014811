// What `ridge tune` is asked to do: low-rank adapters for a model's matrices, trained on a text while the weights stay
// as they are (Hu and others 2021, arXiv 2106.09685), within a memory budget that is settled before anything large is
// allocated. Declared without libtorch; tune() is in torch/, and only a build with libtorch has it.
//
//   TuneJob job{.model = "model.gguf", .data = "notes.txt", .adapter = "notes.gguf", .rank = 8};
//   RIDGE_TRY(check_tune_job(job));
//   TuneReport report = RIDGE_TRY(tune(job, {.interrupted = &flag}));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "distill/job.h"
#include "distill/train.h"
#include "plan/account.h"

namespace ridge::distill {

struct TuneJob {
  std::string model;    // GGUF of the architecture llama, arcee or reglu-llama
  std::string data;     // a text file, or a folder of them
  std::string adapter;  // GGUF to write; while it trains, checkpoint_of(adapter) lies beside it
  uint32_t rank = 8;
  double alpha = 16;  // what is added is alpha / rank · B (A x)
  std::vector<std::string> targets = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
  uint32_t context = 256;  // tokens of a window
  Optimizer optimizer{.steps = 200, .batch = 4, .rate = 1e-3, .warmup = 0.05, .decay = 0};
  double held_out = 0.1;  // the end of the text, never trained on
  uint64_t validation_tokens = 4096;
  uint64_t evaluate_every = 25, checkpoint_every = 50;
  std::optional<uint64_t> memory;  // of the whole process; none: what the machine offers
  int threads = 0;                 // 0: all usable CPUs
  bool resume = false;
};

struct TuneReport {
  std::string architecture;
  uint64_t parameters = 0;         // of the adapters
  uint64_t steps = 0, tokens = 0;  // trained on
  double seconds = 0;
  double held_out_before = 0, held_out = 0;  // nats per token
  uint64_t needed = 0, peak = 0;             // bytes: promised, and VmHWM
  std::vector<CurvePoint> curve;             // the first is of step 0: the model as it was
};

// Usage errors for numbers that cannot be and targets that are none.
Result<void> check_tune_job(const TuneJob& job);

// Positions whose logits are there at once.
inline constexpr int64_t kHeadPositions = 64;

// Bytes of a training by what they are for, beside program, libraries and heap; sizes in elements or bytes as named.
struct TuneSizes {
  uint64_t weight_bytes = 0;    // as the file has them
  uint64_t largest_matrix = 0;  // elements: one at a time becomes floats
  uint64_t adapters = 0;        // elements of all A and B
  uint64_t layers = 0, width = 0, query_width = 0, key_width = 0, ffn = 0, heads = 0, vocabulary = 0;
};
Account tune_account(const TuneSizes& sizes, const TuneJob& job);

// Bad input; does_not_fit with a table, and the least that would do, before anything large is allocated; I/O errors.
// `refused` where the loss is no finite number: the last checkpoint stays.
Result<TuneReport> tune(const TuneJob& job, const TrainHooks& hooks);

std::string checkpoint_of(const std::string& adapter);

}  // namespace ridge::distill
