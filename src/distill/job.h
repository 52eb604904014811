// What `ridge distill` is asked to do, as plain data: the student's shape, the losses, the schedule, the data.
//
// Not for: the training itself (train.h), and nothing here needs libtorch.
//
//   DistillJob job{.data = "stories.txt", .folder = "student", .shape = {.ffn_kind = FfnKind::reglu}};
//   RIDGE_TRY(check_job(job));
//   TrainReport report = RIDGE_TRY(train(job, {}));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"

namespace ridge::distill {

// The feed-forward part: down(silu(gate x) · up x), down(relu(gate x) · up x), down(relu(up x)²).
enum class FfnKind : uint8_t { swiglu, reglu, relu2 };
std::string_view name_of(FfnKind kind);
// The architecture whose GGUF it becomes: llama, reglu-llama, arcee.
std::string_view architecture_of(FfnKind kind);
Result<FfnKind> parse_ffn_kind(std::string_view name);

struct StudentShape {
  uint32_t vocabulary = 0;  // of the tokenizer
  uint32_t layers = 4, dim = 64, heads = 4, kv_heads = 4, ffn = 256, context = 128;
  FfnKind ffn_kind = FfnKind::swiglu;
  bool tied = true;
  bool shared = false;      // every block runs twice in a row: `layers` are stored, twice as many run
  uint32_t exit_layer = 0;  // after so many blocks a loss of its own on the same head; 0: none

  uint32_t head_dim() const { return dim / heads; }
  uint32_t runs() const { return shared ? 2 * layers : layers; }  // blocks that a pass runs
  uint64_t parameters() const;
  bool operator==(const StudentShape&) const = default;
};

// Of the distribution of the teacher p and of the student q, both at the temperature T; each times T².
//   forward KL(p‖q) · reverse KL(q‖p) · skewed forward KL(p‖λp+(1−λ)q) · skewed reverse KL(q‖(1−λ)p+λq)
// (Hinton et al. 2015; Gu et al., MiniLLM, 2024; Ko et al., DistiLLM, 2024.)
enum class Divergence : uint8_t { forward, reverse, skew_forward, skew_reverse };
std::string_view name_of(Divergence divergence);
Result<Divergence> parse_divergence(std::string_view name);

// loss = (1 − kd)·cross-entropy + kd·divergence + hidden·match + l1·mean|gate| + exit·cross-entropy of the early exit
struct Losses {
  double kd = 0;
  Divergence divergence = Divergence::forward;
  double skew = 0.1, temperature = 1;
  double hidden = 0;
  double l1 = 0, l1_ramp = 0.3;  // rises linearly from 0 over this share of the steps
  double exit = 0.3;             // where there is an early exit
};

struct Optimizer {
  uint64_t steps = 1000;
  uint32_t batch = 16;   // windows of `context` tokens
  double rate = 3e-3;    // of AdamW: linear warm-up, then a cosine down to a tenth
  double warmup = 0.03;  // share of the steps
  double decay = 0.1;    // of matrices
  double clip = 1.0;     // largest norm of all gradients together
  uint64_t seed = 1;
};

// Of step 1 … steps.
double rate_of(const Optimizer& optimizer, uint64_t step);

// What a flag may be, both ends included.
struct Range {
  const char* flag;
  double value, least, most;
};
// A usage error for the first that is outside.
Result<void> check_ranges(std::span<const Range> ranges);

struct DistillJob {
  std::string data;               // a text file, or a folder of them
  std::string folder;             // where everything is written
  std::string teacher;            // a GGUF model, a checkpoint of this trainer, or empty
  EngineOptions engine;           // how a GGUF teacher runs: memory, threads; its path is `teacher`
  std::string tokenizer;          // "byte", a GGUF file, or empty: the teacher's, else bytes
  std::string map;                // importance of blocks (importance_map.h), or empty
  std::string rationales;         // questions with steps and answers (rationales.h), or empty
  double rationale_share = 0.25;  // of the windows of a batch
  double on_policy = 0;           // share of the steps whose text the student writes itself
  uint32_t on_policy_tokens = 32;
  double held_out = 0.1;  // the end of the text, never trained on
  StudentShape shape;
  Losses losses;
  Optimizer optimizer;
  uint64_t checkpoint_every = 200, evaluate_every = 100;
  uint64_t validation_tokens = 8192;
  bool resume = false;
  int threads = 0;        // 0: all usable CPUs
  std::string record;     // visits of blocks of neurons: RECORD.train.json and RECORD.judge.json; empty: none
  uint32_t neurons = 16;  // of a block
  std::string fisher;     // the diagonal of the Fisher information of the student, safetensors; empty: none
  uint32_t fisher_windows = 64;
  bool natural = false;  // blocks of neighbours instead of neurons sorted by how often they are on
};

// Usage errors for numbers that cannot be; does_not_fit for a student that needs more memory than there is.
Result<void> check_job(const DistillJob& job);
Result<void> check_shape(const StudentShape& shape);

}  // namespace ridge::distill
