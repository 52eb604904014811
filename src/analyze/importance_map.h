// The weight importance map: for every block of a model (neurons, heads, experts, whole parts of layers) two numbers
// that are never mixed: the chance that a token touches it, by task, and how much the loss depends on it, per byte.
//
// Touching is counted: a group of neurons where one of its ReLU gates is above 0, an expert where a router chose it;
// all else is touched by every token. Sensitivity is estimated from the mean squares of what the block's last matrix is
// multiplied by, as llama.cpp's quantisers weight errors of a weight w in column j of a row (ggml-quants):
// E[x_j²] · √(σ² + w²), σ² the mean square of the row; the error of a block that is left out is w itself. Where a
// trainer wrote the Fisher information, that takes its place. leave_out() measures what an estimate is worth. Not for:
// deciding (memory/).
//
//   ActivationStats stats;                                               // as EngineOptions::probe
//   RIDGE_TRY(read_task(*engine, stats, {"all", ids}, window));
//   ImportanceMap map = RIDGE_TRY(importance_map(engine->model(), stats, 64));
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analyze/quality.h"
#include "engine/engine.h"
#include "format/imatrix.h"
#include "format/safetensors.h"
#include "model/product_probe.h"

namespace ridge {

enum class MapKind : uint8_t { neurons, head, expert, part };
std::string_view name_of(MapKind kind);  // "neurons", "head", "expert", "part"

struct MapBlock {
  MapKind kind = MapKind::part;
  std::string name;  // "blk.3.ffn.17", "blk.3.head.2", "blk.3.expert.5", "blk.3.attn"
  uint32_t layer = 0, index = 0;
  uint64_t bytes = 0;         // of its weights in the file
  std::vector<double> touch;  // chance by task
  double sensitivity = 0;     // per byte, in a unit of its own: for ranks
};

struct MapTask {
  std::string name;
  uint64_t tokens = 0;
};

struct ImportanceMap {
  std::string model;         // general.name
  uint64_t fingerprint = 0;  // of the model (state_file.h)
  uint64_t source = 0;       // the same of what its packs share (state_file.h); 0: of a map that does not say
  uint32_t neurons = 0;      // of a group; 0: the model has no ReLU
  std::vector<MapTask> tasks;
  std::vector<MapBlock> blocks;
  // By layer, and neuron: tokens of all tasks at which it fired.
  std::vector<std::vector<uint64_t>> fired;
};

// What passes told: squares of inputs by matrix, and firing by neuron and group.
class ActivationStats : public ProductProbe {
 public:
  explicit ActivationStats(uint32_t neurons) : neurons_(neurons) {}

  // A pass belongs to a task: one without ends the program (check.h).
  void begin_task(const std::string& name);
  void begin_pass() { layer_ = 0; }
  void end_pass(uint64_t tokens);
  void input(TensorId weight, Rows x) override;
  void gates(Rows g) override;

  struct Squares {
    std::vector<double> sum2;  // by column
    double tokens = 0;
    std::vector<double> by_task;  // tokens
  };
  struct Firing {
    std::vector<uint64_t> neurons;              // by neuron
    std::vector<std::vector<uint64_t>> groups;  // by task, then group
  };
  const std::map<TensorId, Squares>& squares() const { return squares_; }
  const std::vector<Firing>& firing() const { return firing_; }
  const std::vector<MapTask>& tasks() const { return tasks_; }
  uint32_t neurons() const { return neurons_; }

 private:
  MapTask& task();

  uint32_t neurons_;  // of a group
  size_t layer_ = 0;  // of the next gates()
  std::map<TensorId, Squares> squares_;
  std::vector<Firing> firing_;  // by layer that has gates
  std::vector<MapTask> tasks_;
};

// Reads the text in windows, through an engine whose probe `stats` is. Bad input: fewer tokens than a window.
// I/O error: interrupted.
Result<void> read_task(Engine& engine, ActivationStats& stats, const std::string& name, std::span<const TokenId> ids,
                       const WindowOptions& windows);

// Bad input: a pack (its weights are no rows). Reads the weights once, a matrix at a time.
Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats);
// The same with sums of squares from elsewhere. Bad input: of another model.
Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats, const Imatrix& imatrix,
                                     const std::string& imatrix_path);
// The same with the diagonal of the Fisher information F, tensors of F32 with the names and shapes of the model's
// (`ridge distill --fisher`): a block's sensitivity is ½ Σ F w² over its columns of the last matrix, what leaving them
// out raises the divergence by to second order (LeCun et al. 1989, "Optimal Brain Damage"), by byte. Bad input: a
// tensor that is missing, or of another shape.
Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats, const Safetensors& fisher);
// Of every matrix that a token came by, by name; and those of `blk.*`, which is what llama.cpp's files hold.
std::vector<ImatrixEntry> squares_by_tensor(const Model& model, const ActivationStats& stats);
Imatrix imatrix_of(const Model& model, const ActivationStats& stats);

struct LeftOut {
  size_t block = 0;      // of the map
  double loss_rise = 0;  // nats per token
};
struct LeaveOneOut {
  double loss = 0;  // with everything
  std::vector<LeftOut> sample;
  double rank_correlation = 0;  // of sensitivity × bytes with the rise of the loss (Spearman)
};
// Leaves `count` blocks out, one at a time, evenly over the map's neurons and heads. `probe` is the engine's.
class Ablation;
Result<LeaveOneOut> leave_one_out(Engine& engine, Ablation& probe, const ImportanceMap& map,
                                  std::span<const TokenId> ids, const WindowOptions& windows, uint32_t count);

// Zeroes a range of the inputs of one matrix.
class Ablation : public ProductProbe {
 public:
  void input(TensorId weight, Rows x) override;
  void gates(Rows) override {}
  void set(TensorId weight, uint32_t first, uint32_t count) { weight_ = weight, first_ = first, count_ = count; }
  void clear() { count_ = 0; }

 private:
  TensorId weight_ = 0;
  uint32_t first_ = 0, count_ = 0;
};

double spearman(std::span<const double> a, std::span<const double> b);

// A JSON file (docs/importance.md), and back. Bad input: another format or version, numbers that cannot be.
Result<void> write_map(const ImportanceMap& map, const std::string& path);
Result<ImportanceMap> read_map(const std::string& path);

}  // namespace ridge
