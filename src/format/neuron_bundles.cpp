#include "format/neuron_bundles.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "format/ridge_pack.h"
#include "tensor/panel.h"
#include "tensor/panel_format.h"

namespace ridge {

uint32_t bundle_granule(Type type) {
  const auto unit = static_cast<uint32_t>(type_info(type).block) * panel_format(type).unit_blocks;
  const uint32_t step = std::lcm(static_cast<uint32_t>(kPanelRows), unit);
  // Whole units; two of them at most are a multiple of 64 bytes.
  uint32_t columns = step;
  while (2 * panel_bytes(type, columns) != panel_bytes(type, 2 * size_t{columns})) columns += step;
  return columns;
}

std::optional<BundleShape> bundle_shape(const BundledMatrices& m, uint32_t neurons, uint64_t align) {
  const GgufTensor& down = *m.down;
  if (neurons == 0 || down.cols() % neurons != 0 || neurons % bundle_granule(down.type) != 0) return std::nullopt;
  if (!packs_as_panels_alone(down) || (m.up != nullptr && !packs_as_panels_alone(*m.up))) return std::nullopt;
  if (m.up != nullptr && (m.up->rows() != down.cols() || m.up->cols() != down.rows())) return std::nullopt;
  BundleShape s;
  s.neurons = neurons;
  s.groups = static_cast<uint32_t>(down.cols() / neurons);
  if (m.up != nullptr) s.up_bytes = panels_bytes(m.up->type, neurons, m.up->cols());
  s.down_bytes = panels_bytes(down.type, down.rows(), neurons);
  s.stride = round_up(s.up_bytes + s.down_bytes, align);
  return s;
}

uint32_t choose_bundle(const BundledMatrices& m, uint64_t least_bytes) {
  const uint32_t granule = bundle_granule(m.down->type);
  for (uint32_t neurons = granule; neurons < m.down->cols(); neurons += granule) {
    const auto shape = bundle_shape(m, neurons);
    if (shape && shape->stride >= least_bytes) return neurons;
  }
  return 0;
}

uint32_t order_unit(Type down) { return static_cast<uint32_t>(type_info(down).block); }

bool is_order(const NeuronOrder& order, uint64_t neurons) {
  if (order.unit == 0 || neurons % order.unit != 0 || order.units.size() != neurons / order.unit) return false;
  std::vector<uint8_t> seen(order.units.size(), 0);
  for (const uint32_t unit : order.units) {
    if (unit >= seen.size() || seen[unit]++ != 0) return false;
  }
  return true;
}

const NeuronOrder* NeuronBundles::order(uint32_t layer) const {
  const auto found = std::find_if(orders.begin(), orders.end(), [&](const NeuronOrder& o) { return o.layer == layer; });
  return found != orders.end() ? &*found : nullptr;
}

bool NeuronBundles::holds(const std::string& tensor) const {
  return std::binary_search(tensors.begin(), tensors.end(), tensor);
}

BundledMatrices matrices_of_layer(const Gguf& gguf, uint32_t layer) {
  const std::string prefix = fmt::format("blk.{}.ffn_", layer);
  BundledMatrices m{.up = nullptr, .down = gguf.find(prefix + "down.weight")};
  if (gguf.find(prefix + "gate.weight") != nullptr) m.up = gguf.find(prefix + "up.weight");
  return m;
}

}  // namespace ridge
