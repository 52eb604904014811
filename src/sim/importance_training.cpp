#include "sim/importance_training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "plan/knapsack.h"
#include "sim/importance_links.h"
#include "sim/random.h"

namespace ridge::sim {
namespace {

constexpr std::array kDiscounts = {0.3, 0.6, 0.8, 0.9, 0.97};
constexpr std::array kPinShares = {0.25, 0.5, 0.75};
// Pins alone are the simplest choice: others must hit so many times as many bytes, or the next text may prove them
// wrong.
constexpr double kAdvantage = 1.003;
constexpr size_t kSamples = 60'000;
constexpr uint64_t kFarthest = 128;  // passes ahead that count for what a block was worth

// A trace by numbers, with sizes and passes.
struct Numbered {
  std::vector<uint32_t> blocks;                // of each access
  std::vector<uint64_t> pass;                  // of each access, from 1
  std::vector<CachedBlock> sizes;              // by block
  std::vector<std::vector<uint32_t>> used_in;  // by block: passes, ascending, each once
  uint64_t passes = 0;
};

Numbered numbered(const AccessTrace& trace, const TrainingOptions& options) {
  Numbered n;
  BlockNumbers numbers(&trace);
  n.sizes.resize(numbers.size());
  n.used_in.resize(numbers.size());
  for (size_t i = 0; i < trace.accesses.size(); ++i) {
    while (n.passes < trace.pass_begins.size() && trace.pass_begins[n.passes] <= i) ++n.passes;
    const Access& a = trace.accesses[i];
    const uint32_t b = numbers.of(a.object);
    n.blocks.push_back(b);
    n.pass.push_back(n.passes);
    const double reload = a.object < options.worth.size() ? options.worth[a.object] : static_cast<double>(a.size);
    n.sizes[b] = {.block = b, .bytes = a.size, .reload = reload};
    if (n.used_in[b].empty() || n.used_in[b].back() != n.passes)
      n.used_in[b].push_back(static_cast<uint32_t>(n.passes));
  }
  return n;
}

// Frequencies and turns, of passes up to `last`.
void learn_frequencies(const Numbered& n, uint64_t last, ImportanceModel& model) {
  const size_t blocks = n.sizes.size();
  model.frequency.assign(blocks, 0);
  model.position.assign(blocks, 0);
  std::vector<double> place(blocks, 0), uses(blocks, 0);
  for (size_t begin = 0; begin < n.blocks.size();) {
    size_t end = begin;
    while (end < n.blocks.size() && n.pass[end] == n.pass[begin]) ++end;
    for (size_t i = begin; i < end; ++i) {
      place[n.blocks[i]] += (static_cast<double>(i - begin) + 0.5) / static_cast<double>(end - begin);
      uses[n.blocks[i]] += 1;
    }
    begin = end;
  }
  for (size_t b = 0; b < blocks; ++b) {
    model.position[b] = static_cast<float>(place[b] / std::max(1.0, uses[b]));
    const auto in = std::upper_bound(n.used_in[b].begin(), n.used_in[b].end(), last) - n.used_in[b].begin();
    model.frequency[b] = static_cast<float>(in) / static_cast<float>(last);
  }
}

// Sums of least squares for every discount at once.
struct Regression {
  static constexpr size_t kN = kImportanceFeatures;
  std::array<std::array<double, kN>, kN> products = {};
  std::array<std::array<double, kN>, kDiscounts.size()> targets = {};

  void add(const ImportanceFeatures& f, const std::array<double, kDiscounts.size()>& uses) {
    for (size_t i = 0; i < kN; ++i) {
      for (size_t j = 0; j < kN; ++j) products[i][j] += f[i] * f[j];
      for (size_t d = 0; d < kDiscounts.size(); ++d) targets[d][i] += f[i] * uses[d];
    }
  }
  // Cholesky of the products with a little on the diagonal.
  ImportanceFeatures solve(size_t discount) const {
    auto l = products;
    ImportanceFeatures x = targets[discount];
    for (size_t i = 0; i < kN; ++i) {
      l[i][i] += 1e-4 * products[0][0] * 1e-2 + 1e-9;
      for (size_t j = 0; j <= i; ++j) {
        for (size_t k = 0; k < j; ++k) l[i][j] -= l[i][k] * l[j][k];
        l[i][j] = i == j ? std::sqrt(std::max(1e-12, l[i][i])) : l[i][j] / l[j][j];
      }
    }
    for (size_t i = 0; i < kN; ++i) {
      for (size_t k = 0; k < i; ++k) x[i] -= l[i][k] * x[k];
      x[i] /= l[i][i];
    }
    for (size_t i = kN; i-- > 0;) {
      for (size_t k = i + 1; k < kN; ++k) x[i] -= l[k][i] * x[k];
      x[i] /= l[i][i];
    }
    return x;
  }
};

// Uses of a block from pass `turn` on, each discounted by the passes until it.
std::array<double, kDiscounts.size()> uses_from(const std::vector<uint32_t>& used_in, uint64_t turn) {
  std::array<double, kDiscounts.size()> out = {};
  for (auto at = std::lower_bound(used_in.begin(), used_in.end(), turn); at != used_in.end(); ++at) {
    if (*at - turn > kFarthest) break;
    for (size_t d = 0; d < out.size(); ++d) out[d] += std::pow(kDiscounts[d], static_cast<double>(*at - turn));
  }
  return out;
}

// Walks through the trace; from pass `first` on it looks now and then at some blocks and at what came of them.
Regression sample(const Numbered& n, uint64_t first, const ImportanceModel& model) {
  Importance importance(model);
  Regression r;
  Random random(1);
  const auto begin = std::lower_bound(n.pass.begin(), n.pass.end(), first) - n.pass.begin();
  const size_t judged = n.pass.size() - static_cast<size_t>(begin);
  constexpr size_t kAtOnce = 8;
  const size_t stride = std::max<size_t>(1, judged * kAtOnce / kSamples);
  uint64_t pass = 0;
  for (size_t i = 0; i < n.blocks.size(); ++i) {
    while (pass < n.pass[i]) {
      importance.begin_pass();
      ++pass;
    }
    importance.note_use(n.blocks[i]);
    if (pass < first || i % stride != 0) continue;
    for (size_t k = 0; k < kAtOnce; ++k) {
      const auto block = static_cast<uint32_t>(random.below(n.sizes.size()));
      const uint64_t turn = pass + (static_cast<double>(model.position[block]) > importance.now() ? 0 : 1);
      r.add(importance.features(block), uses_from(n.used_in[block], turn));
    }
  }
  return r;
}

// Bytes that hit from pass `first` on.
double replay_hits(const Numbered& n, uint64_t first, const TrainedImportance& learned,
                   const TrainingOptions& options) {
  CacheManager cache(learned.model, {.capacity = options.capacity,
                                     .pinned = learned.pinned,
                                     .pinned_bytes = learned.pinned_bytes,
                                     .read_ahead = options.read_ahead});
  double hits = 0;
  uint64_t pass = 0;
  for (size_t i = 0; i < n.blocks.size(); ++i) {
    while (pass < n.pass[i]) {
      (void)cache.begin_pass();
      ++pass;
    }
    const CachedBlock& block = n.sizes[n.blocks[i]];
    if (cache.access(block).hit && pass >= first) hits += block.reload;
  }
  return hits;
}

void pin(const Numbered& n, double share, uint64_t capacity, TrainedImportance& learned) {
  std::vector<KnapsackItem> items;
  for (const CachedBlock& b : n.sizes) {
    items.push_back({.value = b.reload * static_cast<double>(learned.model.frequency[b.block]), .bytes = b.bytes});
  }
  learned.pin_share = share;
  learned.pinned = solve_knapsack(items, static_cast<uint64_t>(share * static_cast<double>(capacity))).taken;
  learned.pinned_bytes = 0;
  for (size_t b = 0; b < items.size(); ++b) learned.pinned_bytes += learned.pinned[b] != 0 ? items[b].bytes : 0;
}

}  // namespace

BlockNumbers::BlockNumbers(const AccessTrace* trace) {
  if (trace == nullptr) return;
  std::vector<ObjectId> objects;
  for (const Access& a : trace->accesses) objects.push_back(a.object);
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  for (ObjectId object : objects) (void)of(object);
}

uint32_t BlockNumbers::of(ObjectId object) {
  return numbers_.try_emplace(object, static_cast<uint32_t>(numbers_.size())).first->second;
}

TrainedImportance train_importance(const AccessTrace& trace, const TrainingOptions& options) {
  const Numbered n = numbered(trace, options);
  TrainedImportance best;
  best.model = ImportanceModel::untrained();
  if (n.passes < 2) return best;
  const uint64_t learned_from = std::max<uint64_t>(1, n.passes * 6 / 10);
  learn_frequencies(n, learned_from, best.model);
  learn_links({.blocks = n.blocks, .pass = n.pass, .used_in = n.used_in, .last = learned_from}, best.model);
  const Regression regression = sample(n, learned_from + 1, best.model);
  double most = 0, needed = -1;
  auto consider = [&](TrainedImportance candidate) {
    const double hits = replay_hits(n, learned_from + 1, candidate, options);
    if (hits <= needed) return;
    most = std::max(most, hits);
    needed = most;
    best = std::move(candidate);
  };
  TrainedImportance candidate = best;
  pin(n, 1, options.capacity, candidate);
  consider(candidate);
  needed = most * kAdvantage;
  pin(n, 0, options.capacity, candidate);
  for (size_t d = 0; d < kDiscounts.size(); ++d) {
    candidate.model.discount = kDiscounts[d];
    candidate.model.weights = regression.solve(d);
    consider(candidate);
  }
  if (best.pin_share < 1) candidate = best;
  for (double share : kPinShares) {
    pin(n, share, options.capacity, candidate);
    consider(candidate);
  }
  learn_frequencies(n, n.passes, best.model);
  learn_links({.blocks = n.blocks, .pass = n.pass, .used_in = n.used_in, .last = n.passes}, best.model);
  if (best.pin_share > 0) pin(n, best.pin_share, options.capacity, best);
  return best;
}

}  // namespace ridge::sim
