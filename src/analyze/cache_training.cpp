#include "analyze/cache_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/neuron_order.h"
#include "format/ridge_pack.h"

namespace ridge {
namespace {

// Blocks of this kind by layer, in the order of their numbers.
std::map<uint32_t, std::vector<const MapBlock*>> by_layer(const ImportanceMap& map, MapKind kind) {
  std::map<uint32_t, std::vector<const MapBlock*>> out;
  for (const MapBlock& b : map.blocks) {
    if (b.kind == kind) out[b.layer].push_back(&b);
  }
  return out;
}

std::vector<float> touches(const std::vector<const MapBlock*>& blocks) {
  std::vector<float> out;
  for (const MapBlock* b : blocks) {
    for (const double t : b->touch) out.push_back(static_cast<float>(t));
  }
  return out;
}

// How much more often each task touches groups of the layer than all of them do together.
std::vector<double> task_factors(const ImportanceMap& map, const std::vector<const MapBlock*>& groups) {
  std::vector<double> sums(map.tasks.size(), 0);
  double all = 0, tokens = 0;
  for (size_t t = 0; t < sums.size(); ++t) {
    for (const MapBlock* g : groups) sums[t] += g->touch[t];
    all += sums[t] * static_cast<double>(map.tasks[t].tokens);
    tokens += static_cast<double>(map.tasks[t].tokens);
  }
  const double mean = tokens > 0 ? all / tokens : 0;
  for (double& s : sums) s = mean > 0 ? s / mean : 1;
  return sums;
}

Result<CacheTraining> of_bundles(const ImportanceMap& map, const std::string& map_path, const NeuronBundles& bundles,
                                 const Model& model, CacheTraining training) {
  const auto groups = by_layer(map, MapKind::neurons);
  for (uint32_t layer = 0; layer < model.config().layers; ++layer) {
    const BundledMatrices m = matrices_of_layer(model.file(), layer);
    if (m.down == nullptr || !bundles.holds(m.down->name)) continue;
    const auto found = groups.find(layer);
    if (found == groups.end() || layer >= map.fired.size() || map.fired[layer].size() != m.down->cols())
      return bad_input(fmt::format("{}: has {} neurons of layer {}, and the pack {}; make a map of this model",
                                   map_path, layer < map.fired.size() ? map.fired[layer].size() : 0, layer,
                                   m.down->cols()));
    const NeuronOrder* order = bundles.order(layer);
    if (order == nullptr && map.neurons == bundles.neurons) {
      training.touch.push_back(touches(found->second));
      continue;
    }
    const std::vector<double> shares = RIDGE_TRY(bundle_touches(map, map_path, layer, bundles.neurons, order));
    const std::vector<double> factors = task_factors(map, found->second);
    std::vector<float>& out = training.touch.emplace_back();
    for (const double share : shares) {
      for (const double f : factors) out.push_back(static_cast<float>(std::min(1.0, share * f)));
    }
  }
  return training;
}

}  // namespace

Result<CacheTraining> cache_training(const ImportanceMap& map, const std::string& map_path, const Model& model,
                                     const std::string& model_path) {
  RIDGE_TRY(require_same_model(map, map_path, model, model_path));
  CacheTraining training{.tasks = {}, .touch = {}, .where = map_path};
  for (const MapTask& task : map.tasks) training.tasks.push_back({task.name, task.tokens});
  const auto experts = by_layer(map, MapKind::expert);
  for (const auto& [layer, blocks] : experts) training.touch.push_back(touches(blocks));
  if (!experts.empty()) return training;
  if (RIDGE_TRY(is_ridge_pack(model_path))) {
    const RidgePack pack = RIDGE_TRY(open_ridge_pack(model_path));
    if (pack.bundles.neurons > 0) return of_bundles(map, map_path, pack.bundles, model, std::move(training));
  }
  return usage_error(
      fmt::format("--map trains a cache of experts or of bundles of neurons, and {} has neither: leave it out{}",
                  model_path, map.neurons > 0 ? ", or run a pack of it (`ridge pack`)" : ""));
}

}  // namespace ridge
