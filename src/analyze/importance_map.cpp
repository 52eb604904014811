#include "analyze/importance_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "analyze/tensor_rows.h"
#include "base/units.h"
#include "engine/state_file.h"
#include "model/layers.h"

namespace ridge {
namespace {

// What a block's inputs are multiplied by: columns [first, first + count) of matrix `of_stack` of a tensor.
struct Columns {
  std::string tensor;
  uint32_t of_stack = 0, first = 0, count = 0;
};

Columns columns_of(const MapBlock& b, const Model& model, uint32_t neurons) {
  const ModelConfig& c = model.config();
  switch (b.kind) {
    case MapKind::neurons:
      return {layer_name(b.layer, "ffn_down.weight"), 0, b.index * neurons, neurons};
    case MapKind::head:
      return {layer_name(b.layer, "attn_output.weight"), 0, b.index * c.value_dim, c.value_dim};
    case MapKind::expert:
      return {layer_name(b.layer, "ffn_down_exps.weight"), b.index, 0, UINT32_MAX};
    case MapKind::part:
      break;
  }
  const bool attention = b.name.ends_with(".attn");
  return {layer_name(b.layer, attention ? "attn_output.weight" : "ffn_down.weight"), 0, 0, UINT32_MAX};
}

uint64_t tensor_bytes(const Model& model, uint32_t layer, std::initializer_list<std::string_view> names) {
  uint64_t sum = 0;
  for (std::string_view name : names) {
    const GgufTensor* t = model.file().find(layer_name(layer, name));
    sum += t != nullptr ? t->bytes : 0;
  }
  return sum;
}

// Blocks with names and sizes.
std::vector<MapBlock> list_blocks(const Model& model, uint32_t neurons) {
  const ModelConfig& c = model.config();
  std::vector<MapBlock> blocks;
  for (uint32_t il = 0; il < c.layers; ++il) {
    auto add = [&](MapKind kind, std::string_view name, uint32_t count, uint64_t bytes) {
      for (uint32_t i = 0; i < count; ++i) {
        const std::string suffix = kind == MapKind::part ? std::string(name) : fmt::format("{}.{}", name, i);
        blocks.push_back(
            {.kind = kind, .name = layer_name(il, suffix), .layer = il, .index = i, .bytes = bytes / count});
      }
    };
    const uint64_t qo = tensor_bytes(model, il, {"attn_q.weight", "attn_output.weight"});
    const uint64_t ffn = tensor_bytes(model, il, {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"});
    const uint64_t kv = tensor_bytes(model, il, {"attn_k.weight", "attn_v.weight", "attn_qkv.weight"});
    if (qo + kv > 0) add(MapKind::part, "attn", 1, qo + kv);
    if (ffn > 0) add(MapKind::part, "ffn", 1, ffn);
    if (qo > 0) add(MapKind::head, "head", c.heads, qo);
    if (ffn > 0 && neurons > 0) add(MapKind::neurons, "ffn", c.ffn / neurons, ffn);
    const GgufTensor* experts = model.file().find(layer_name(il, "ffn_down_exps.weight"));
    if (experts == nullptr) continue;
    const uint64_t bytes = tensor_bytes(
        model, il, {"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_gate_up_exps.weight", "ffn_down_exps.weight"});
    add(MapKind::expert, "expert", static_cast<uint32_t>(experts->shape[2]), bytes);
  }
  return blocks;
}

// What leaving one column of a matrix out costs, by column, matrices of a stack one after the other; empty where
// nothing is known of the matrix.
using ColumnErrors = std::function<Result<std::vector<double>>(const GgufTensor&)>;

// row(r, w): the weights of row r.
template <class Row>
Result<void> for_each_row(const Model& model, const GgufTensor& t, const Row& row) {
  TensorRows rows = RIDGE_TRY(TensorRows::open(model.file(), t));
  std::vector<float> w(t.cols());
  for (uint64_t r = 0; r < t.rows(); ++r) {
    RIDGE_TRY(rows.read(r, w.data()));
    row(r, std::span<const float>(w));
  }
  return {};
}

// E[x²] · Σ over the rows of √(σ² + w²) · w².
ColumnErrors errors_by(const Model& model, const Imatrix& imatrix, const std::string& where) {
  return [&](const GgufTensor& t) -> Result<std::vector<double>> {
    const ImatrixEntry* e = imatrix.find(t.name);
    if (e == nullptr) return std::vector<double>{};  // a matrix that no token came by
    const size_t cols = t.cols();
    if (e->columns != cols || e->counts.size() != t.shape[2] * t.shape[3]) {
      return bad_input(fmt::format("{}: '{}' has {} columns, and the model's has {}: it is of another model", where,
                                   t.name, e->columns, cols));
    }
    std::vector<double> sums(e->in_sum2.size());
    RIDGE_TRY(for_each_row(model, t, [&](uint64_t r, std::span<const float> w) {
      double sigma2 = 0;
      for (float v : w) sigma2 += static_cast<double>(v) * static_cast<double>(v) / static_cast<double>(cols);
      double* out = sums.data() + r / t.shape[1] * cols;
      for (size_t c = 0; c < cols; ++c) {
        const double w2 = static_cast<double>(w[c]) * static_cast<double>(w[c]);
        out[c] += std::sqrt(sigma2 + w2) * w2;
      }
    }));
    for (size_t i = 0; i < sums.size(); ++i) {
      const double count = e->counts[i / cols];
      sums[i] *= count > 0 ? e->in_sum2[i] / count : 0;
    }
    return sums;
  };
}

// ½ Σ over the rows of F w².
ColumnErrors errors_by(const Model& model, const Safetensors& fisher) {
  return [&](const GgufTensor& t) -> Result<std::vector<double>> {
    const SafeTensor* found = fisher.find(t.name);
    if (found == nullptr || found->elements() != t.rows() * t.cols()) {
      return bad_input(fmt::format("{}: '{}' {}: it is of another model", fisher.where(), t.name,
                                   found == nullptr ? "is missing" : "has another number of weights"));
    }
    const std::vector<float> f = RIDGE_TRY(read_floats(fisher, *found, found->elements()));
    const size_t cols = t.cols();
    std::vector<double> sums(cols * t.shape[2] * t.shape[3]);
    RIDGE_TRY(for_each_row(model, t, [&](uint64_t r, std::span<const float> w) {
      double* out = sums.data() + r / t.shape[1] * cols;
      for (size_t c = 0; c < cols; ++c) {
        out[c] += 0.5 * static_cast<double>(f[r * cols + c]) * static_cast<double>(w[c]) * static_cast<double>(w[c]);
      }
    }));
    return sums;
  };
}

// Blocks of a layer that share a tensor follow each other nearly: the last layer's sums are kept.
Result<void> add_sensitivities(const Model& model, const ColumnErrors& errors, ImportanceMap& map) {
  std::map<std::string, std::vector<double>> kept;
  uint32_t layer = 0;
  for (MapBlock& b : map.blocks) {
    if (b.layer != layer) kept.clear();
    layer = b.layer;
    const Columns at = columns_of(b, model, map.neurons);
    const GgufTensor* t = model.file().find(at.tensor);
    if (t == nullptr) continue;
    if (!kept.contains(at.tensor)) kept[at.tensor] = RIDGE_TRY(errors(*t));
    const std::vector<double>& sums = kept[at.tensor];
    if (sums.empty()) continue;
    const size_t cols = t->cols(), base = at.of_stack * cols;
    const size_t last = std::min<size_t>(cols, size_t{at.first} + at.count);
    const double sum = std::accumulate(sums.begin() + static_cast<ptrdiff_t>(base + at.first),
                                       sums.begin() + static_cast<ptrdiff_t>(base + last), 0.0);
    b.sensitivity = sum / static_cast<double>(std::max<uint64_t>(1, b.bytes));
  }
  return {};
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Of the matrix that the last one of an expert is; -1 where the model has none of this name.
int64_t tensor_id(const Program& base, const std::string& name, uint32_t of_stack) {
  for (size_t i = 0; i < base.tensors.size(); ++i) {
    if (base.tensors[i].name == name) return static_cast<int64_t>(i + of_stack);
  }
  return -1;
}

void add_touches(const Model& model, const ActivationStats& stats, ImportanceMap& map) {
  const Program base = model.program_base();
  for (MapBlock& b : map.blocks) {
    b.touch.assign(map.tasks.size(), 1.0);
    if (b.kind == MapKind::neurons && b.layer < stats.firing().size()) {
      for (size_t t = 0; t < map.tasks.size(); ++t) {
        b.touch[t] = share(stats.firing()[b.layer].groups[t][b.index], map.tasks[t].tokens);
      }
    } else if (b.kind == MapKind::expert) {
      const auto found = stats.squares().find(
          static_cast<TensorId>(tensor_id(base, layer_name(b.layer, "ffn_down_exps.weight"), b.index)));
      for (size_t t = 0; t < map.tasks.size(); ++t) {
        const bool met = found != stats.squares().end() && t < found->second.by_task.size();
        b.touch[t] = met ? found->second.by_task[t] / static_cast<double>(map.tasks[t].tokens) : 0;
      }
    }
  }
}

Result<ImportanceMap> map_with(const Model& model, const ActivationStats& stats, const ColumnErrors& errors) {
  ImportanceMap map;
  map.model = model.config().name;
  map.fingerprint = RIDGE_TRY(model_fingerprint(model));
  map.source = RIDGE_TRY(source_fingerprint(model));
  map.neurons = stats.firing().empty() ? 0 : stats.neurons();
  map.tasks = stats.tasks();
  map.blocks = list_blocks(model, map.neurons);
  for (const auto& f : stats.firing()) map.fired.push_back(f.neurons);
  add_touches(model, stats, map);
  RIDGE_TRY(add_sensitivities(model, errors, map));
  return map;
}

}  // namespace

std::string_view name_of(MapKind kind) {
  constexpr std::string_view kNames[] = {"neurons", "head", "expert", "part"};
  return kNames[static_cast<size_t>(kind)];
}

void ActivationStats::begin_task(const std::string& name) {
  tasks_.push_back({.name = name});
  for (Firing& f : firing_) f.groups.emplace_back(f.groups.front().size(), 0);
}

MapTask& ActivationStats::task() {
  RIDGE_CHECK(!tasks_.empty(), "begin_task() comes before the passes that are counted");
  return tasks_.back();
}

void ActivationStats::end_pass(uint64_t tokens) { task().tokens += tokens; }

void ActivationStats::input(TensorId weight, Rows x) {
  (void)task();
  Squares& s = squares_[weight];
  s.sum2.resize(x.cols);
  s.by_task.resize(tasks_.size());
  s.tokens += static_cast<double>(x.rows);
  s.by_task.back() += static_cast<double>(x.rows);
  for (size_t t = 0; t < x.rows; ++t) {
    const float* row = x.row(t);
    for (size_t c = 0; c < x.cols; ++c) s.sum2[c] += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  }
}

void ActivationStats::gates(Rows g) {
  (void)task();
  if (neurons_ == 0) return;
  if (layer_ == firing_.size()) {
    const size_t groups = (g.cols + neurons_ - 1) / neurons_;
    firing_.push_back({.neurons = std::vector<uint64_t>(g.cols, 0), .groups = {}});
    firing_.back().groups.assign(tasks_.size(), std::vector<uint64_t>(groups, 0));
  }
  Firing& f = firing_[layer_++];
  for (size_t t = 0; t < g.rows; ++t) {
    const float* row = g.row(t);
    for (size_t first = 0; first < g.cols; first += neurons_) {
      bool any = false;
      for (size_t n = first; n < std::min<size_t>(first + neurons_, g.cols); ++n) {
        const bool fires = !(row[n] <= 0);  // NaN fires
        f.neurons[n] += fires ? 1 : 0;
        any = any || fires;
      }
      f.groups.back()[first / neurons_] += any ? 1 : 0;
    }
  }
}

Result<void> read_task(Engine& engine, ActivationStats& stats, const std::string& name, std::span<const TokenId> ids,
                       const WindowOptions& windows) {
  const uint64_t count = std::min<uint64_t>(ids.size() / windows.window, windows.most_windows);
  if (count == 0)
    return bad_input(
        fmt::format("{}: the text has {}, fewer than one window of {}: give more text or a smaller --window", name,
                    counted(ids.size(), "token"), windows.window));
  stats.begin_task(name);
  for (uint64_t w = 0; w < count; ++w) {
    engine.rewind(0);
    for (uint32_t at = 0; at < windows.window;) {
      // A pass at a time, so that layers are counted from 0.
      const uint32_t n = std::min(engine.plan().batch, windows.window - at);
      RIDGE_TRY(check_interrupt(windows));
      stats.begin_pass();
      RIDGE_TRY(engine.evaluate(ids.subspan(w * windows.window + at, n)));
      stats.end_pass(n);
      at += n;
    }
  }
  return {};
}

std::vector<ImatrixEntry> squares_by_tensor(const Model& model, const ActivationStats& stats) {
  const Program base = model.program_base();
  std::map<std::string, ImatrixEntry> entries;
  for (size_t i = 0; i < base.tensors.size(); ++i) {
    const std::string& name = base.tensors[i].name;
    if (name.empty()) continue;
    size_t stack = 1;
    while (i + stack < base.tensors.size() && base.tensors[i + stack].name.empty()) ++stack;
    ImatrixEntry e{.name = name, .columns = base.tensors[i].cols, .in_sum2 = {}, .counts = {}};
    bool met = false;
    for (size_t n = 0; n < stack; ++n) {
      const auto found = stats.squares().find(static_cast<TensorId>(i + n));
      const bool here = found != stats.squares().end() && found->second.sum2.size() == e.columns;
      met = met || here;
      e.counts.push_back(here ? found->second.tokens : 0);
      if (here) {
        e.in_sum2.insert(e.in_sum2.end(), found->second.sum2.begin(), found->second.sum2.end());
      } else {
        e.in_sum2.resize(e.in_sum2.size() + e.columns, 0);
      }
    }
    if (met) entries.emplace(name, std::move(e));
  }
  std::vector<ImatrixEntry> out;
  for (auto& [name, entry] : entries) out.push_back(std::move(entry));
  return out;
}

Imatrix imatrix_of(const Model& model, const ActivationStats& stats) {
  Imatrix out;
  for (const MapTask& t : stats.tasks()) {
    out.datasets.push_back(t.name);
    out.chunks += static_cast<uint32_t>(t.tokens);
  }
  out.chunk_tokens = 1;
  for (ImatrixEntry& e : squares_by_tensor(model, stats)) {
    if (e.name.starts_with("blk.")) out.entries.push_back(std::move(e));
  }
  return out;
}

Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats) {
  return importance_map(model, stats, imatrix_of(model, stats), "");
}

Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats, const Imatrix& imatrix,
                                     const std::string& imatrix_path) {
  return map_with(model, stats, errors_by(model, imatrix, imatrix_path));
}

Result<ImportanceMap> importance_map(const Model& model, const ActivationStats& stats, const Safetensors& fisher) {
  return map_with(model, stats, errors_by(model, fisher));
}

void Ablation::input(TensorId weight, Rows x) {
  if (count_ == 0 || weight != weight_) return;
  for (size_t t = 0; t < x.rows; ++t) std::fill_n(x.row(t) + first_, std::min<size_t>(count_, x.cols - first_), 0.0f);
}

double spearman(std::span<const double> a, std::span<const double> b) {
  auto ranks = [](std::span<const double> x) {
    std::vector<size_t> order(x.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return x[i] < x[j]; });
    std::vector<double> rank(x.size());
    for (size_t i = 0; i < order.size();) {
      size_t end = i;
      while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
      for (size_t k = i; k < end; ++k) rank[order[k]] = static_cast<double>(i + end - 1) / 2;  // ties share
      i = end;
    }
    return rank;
  };
  if (a.size() != b.size() || a.size() < 2) return 0;
  const std::vector<double> ra = ranks(a), rb = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - mean) * (rb[i] - mean);
    aa += (ra[i] - mean) * (ra[i] - mean);
    bb += (rb[i] - mean) * (rb[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

Result<LeaveOneOut> leave_one_out(Engine& engine, Ablation& probe, const ImportanceMap& map,
                                  std::span<const TokenId> ids, const WindowOptions& windows, uint32_t count) {
  std::vector<size_t> candidates;
  for (size_t i = 0; i < map.blocks.size(); ++i) {
    if (map.blocks[i].kind == MapKind::neurons || map.blocks[i].kind == MapKind::head) candidates.push_back(i);
  }
  const Program base = engine.model().program_base();
  LeaveOneOut out;
  probe.clear();
  out.loss = RIDGE_TRY(likelihood(engine, ids, windows)).nll;
  std::vector<double> expected, measured;
  const size_t n = std::min<size_t>(count, candidates.size());
  for (size_t i = 0; i < n; ++i) {
    const size_t block = candidates[(2 * i + 1) * candidates.size() / (2 * n)];
    const Columns at = columns_of(map.blocks[block], engine.model(), map.neurons);
    const int64_t id = tensor_id(base, at.tensor, at.of_stack);
    if (id < 0) continue;
    probe.set(static_cast<TensorId>(id), at.first, at.count);
    out.sample.push_back({.block = block, .loss_rise = RIDGE_TRY(likelihood(engine, ids, windows)).nll - out.loss});
    expected.push_back(map.blocks[block].sensitivity * static_cast<double>(map.blocks[block].bytes));
    measured.push_back(out.sample.back().loss_rise);
  }
  probe.clear();
  out.rank_correlation = spearman(expected, measured);
  return out;
}

}  // namespace ridge
