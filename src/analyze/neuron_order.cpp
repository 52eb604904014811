#include "analyze/neuron_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/printable.h"
#include "engine/state_file.h"

namespace ridge {
namespace {

// Shares of tokens at which each neuron of a layer fires.
using Shares = std::vector<double>;

uint64_t tokens_of(const ImportanceMap& map) {
  uint64_t sum = 0;
  for (const MapTask& t : map.tasks) sum += t.tokens;
  return sum;
}

// −Σ ln(1 − p) of some neurons: what is to be raised to the power of a. A neuron that always fires counts as one that
// rests at one of a million tokens.
double weight_of(std::span<const double> shares) {
  double sum = 0;
  for (const double p : shares) sum -= std::log(1 - std::min(p, 1 - 1e-6));
  return sum;
}

double touched_by(double weight, double a) { return 1 - std::exp(-a * weight); }

// Touches of the map's groups of one layer, over all tasks.
std::vector<double> counted_groups(const ImportanceMap& map, uint32_t layer) {
  std::vector<double> out;
  const double tokens = static_cast<double>(tokens_of(map));
  for (const MapBlock& b : map.blocks) {
    if (b.kind != MapKind::neurons || b.layer != layer) continue;
    double sum = 0;
    for (size_t t = 0; t < map.tasks.size(); ++t) sum += b.touch[t] * static_cast<double>(map.tasks[t].tokens);
    out.push_back(tokens > 0 ? sum / tokens : 0);
  }
  return out;
}

// The a of one layer: by bisection, as the mean touch grows with it. 1 where groups of one neuron say nothing.
double fit_togetherness(const ImportanceMap& map, uint32_t layer, const Shares& shares) {
  const std::vector<double> counted = counted_groups(map, layer);
  if (map.neurons < 2 || counted.empty() || counted.size() * map.neurons > shares.size()) return 1;
  std::vector<double> weights;
  for (size_t g = 0; g < counted.size(); ++g)
    weights.push_back(weight_of(std::span(shares).subspan(g * map.neurons, map.neurons)));
  const double wanted = std::accumulate(counted.begin(), counted.end(), 0.0);
  auto reckoned = [&](double a) {
    double sum = 0;
    for (const double w : weights) sum += touched_by(w, a);
    return sum;
  };
  double low = 0, high = 16;
  if (reckoned(high) < wanted) return 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (reckoned(middle) < wanted ? low : high) = middle;
  }
  return high;
}

NeuronOrder order_of(uint32_t layer, const Shares& shares, uint32_t unit, uint32_t bundle, double a) {
  NeuronOrder order{.layer = layer, .unit = unit};
  std::vector<double> weights;
  for (size_t first = 0; first < shares.size(); first += unit)
    weights.push_back(weight_of(std::span(shares).subspan(first, unit)));
  order.units.resize(weights.size());
  std::iota(order.units.begin(), order.units.end(), 0u);
  std::stable_sort(order.units.begin(), order.units.end(),
                   [&](uint32_t x, uint32_t y) { return weights[x] > weights[y]; });
  for (size_t first = 0; first < order.units.size(); first += bundle / unit) {
    double weight = 0;
    for (size_t i = first; i < first + bundle / unit; ++i) weight += weights[order.units[i]];
    order.touched.push_back(static_cast<uint32_t>(std::lround(1e6 * touched_by(weight, a))));
  }
  return order;
}

Result<Shares> shares_of(const ImportanceMap& map, const std::string& map_path, uint32_t layer) {
  const uint64_t tokens = tokens_of(map);
  Shares shares;
  for (const uint64_t fired : map.fired[layer]) {
    if (fired > tokens)
      return bad_input(fmt::format("{}: a neuron of layer {} fired at {} of {} tokens; make the map anew", map_path,
                                   layer, fired, tokens));
    shares.push_back(static_cast<double>(fired) / static_cast<double>(tokens));
  }
  return shares;
}

}  // namespace

Result<void> require_same_model(const ImportanceMap& map, const std::string& map_path, const Model& model,
                                const std::string& model_path) {
  const uint64_t fingerprint = RIDGE_TRY(model_fingerprint(model));
  if (fingerprint == map.fingerprint) return {};
  const Program base = model.program_base();
  if (std::any_of(base.tensors.begin(), base.tensors.end(),
                  [](const StoredTensor& t) { return t.layout == Layout::panels; })) {
    if (map.source == 0)
      return bad_input(fmt::format(
          "{}: does not say which packs it is for: it is older than this; make it anew with `ridge importance`",
          map_path));
    if (RIDGE_TRY(source_fingerprint(model)) == map.source) return {};
  }
  return bad_input(fmt::format(
      "{}: is of another model: '{}' ({:016x}), and {} is '{}' ({:016x}); make a map of this "
      "one with `ridge importance`",
      map_path, printable(map.model), map.fingerprint, model_path, printable(model.config().name), fingerprint));
}

Result<std::vector<double>> bundle_touches(const ImportanceMap& map, const std::string& map_path, uint32_t layer,
                                           uint32_t neurons, const NeuronOrder* order) {
  const Shares shares = RIDGE_TRY(shares_of(map, map_path, layer));
  const double a = fit_togetherness(map, layer, shares);
  std::vector<double> out;
  for (size_t first = 0; first < shares.size(); first += neurons) {
    Shares bundle;
    for (size_t i = first; i < first + neurons; ++i) bundle.push_back(shares[order != nullptr ? order->neuron(i) : i]);
    out.push_back(touched_by(weight_of(bundle), a));
  }
  return out;
}

Result<std::vector<NeuronOrder>> orders_by_touch(const Gguf& gguf, const ImportanceMap& map,
                                                 const std::string& map_path, uint32_t neurons) {
  const uint64_t tokens = tokens_of(map);
  if (tokens == 0 || map.fired.empty())
    return bad_input(
        fmt::format("{}: says of no neuron how often it fired; make it with `ridge importance`", map_path));
  std::vector<NeuronOrder> orders;
  for (uint32_t layer = 0;; ++layer) {
    const BundledMatrices m = matrices_of_layer(gguf, layer);
    if (m.down == nullptr) break;
    if (!bundle_shape(m, neurons)) continue;
    if (layer >= map.fired.size() || map.fired[layer].size() != m.down->cols())
      return bad_input(fmt::format("{}: has {} neurons of layer {}, and the model {}; make a map of this model",
                                   map_path, layer < map.fired.size() ? map.fired[layer].size() : 0, layer,
                                   m.down->cols()));
    const Shares shares = RIDGE_TRY(shares_of(map, map_path, layer));
    orders.push_back(order_of(layer, shares, order_unit(m.down->type), neurons, fit_togetherness(map, layer, shares)));
  }
  return orders;
}

double mean_touch(const NeuronOrder& order) {
  double sum = 0;
  for (uint32_t b = 0; b < order.touched.size(); ++b) sum += order.touch(b);
  return order.touched.empty() ? 0 : sum / static_cast<double>(order.touched.size());
}

}  // namespace ridge
