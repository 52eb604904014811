// Neurons of a feed-forward part in bundles: a few rows of the up matrix and the same columns of the down matrix, as
// panels, one behind the other, so that what a token needs of a few neurons is one read.
//
// Not for: which neurons a token needs (model/), or writing them (ridge_pack_writer.cpp).
//
//   auto shape = bundle_shape({.up = up, .down = down}, 64);      // nothing: these matrices cannot be cut so
//   uint64_t at = region + group * shape->stride;                 // up; then, at + shape->up_bytes, down
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/gguf.h"

namespace ridge {

// `up` is nullptr where its rows are read for every token (a feed-forward part without a gate).
struct BundledMatrices {
  const GgufTensor* up = nullptr;    // [neurons, width]
  const GgufTensor* down = nullptr;  // [width, neurons]
};

inline constexpr uint64_t kBundleAlign = 4096;  // of every bundle; a pack for a device may have a multiple of it

// Panels are multiples of 64 bytes.
struct BundleShape {
  uint32_t neurons = 0;     // of a bundle
  uint32_t groups = 0;      // bundles of a layer
  uint64_t up_bytes = 0;    // neurons × width, 0 without `up`
  uint64_t down_bytes = 0;  // width × neurons: panels of 16 rows and as many columns as a bundle has neurons
  uint64_t stride = 0;      // from one bundle to the next
};

// The fewest columns of a matrix of this type whose panels, side by side, are the panel of all of them. A multiple
// of 16.
uint32_t bundle_granule(Type type);
// Nothing where the number of neurons is no multiple of `neurons`, or `neurons` none of what the types allow.
// `align`: every bundle begins at a multiple of it.
std::optional<BundleShape> bundle_shape(const BundledMatrices& m, uint32_t neurons, uint64_t align = kBundleAlign);
// The fewest neurons whose bundle has at least `least_bytes`; 0 where no number works.
uint32_t choose_bundle(const BundledMatrices& m, uint64_t least_bytes);

// In which order a pack holds the neurons of a layer: rows of gate and up, columns of down. Neurons whose down columns
// share quantisation blocks stay together as a unit, so that no weight changes.
struct NeuronOrder {
  uint32_t layer = 0;
  uint32_t unit = 1;              // neurons of a unit: order_unit()
  std::vector<uint32_t> units;    // by place: the unit of the source that lies there
  std::vector<uint32_t> touched;  // by bundle: share of tokens expected to touch it, in millionths

  uint32_t neuron(uint64_t place) const { return units[place / unit] * unit + static_cast<uint32_t>(place % unit); }
  double touch(uint32_t bundle) const { return touched[bundle] / 1e6; }
};
// The fewest columns of a matrix of this type that may change places without a change of their weights.
uint32_t order_unit(Type down);
// Whether the units are those of `neurons` neurons of the source, each once.
bool is_order(const NeuronOrder& order, uint64_t neurons);

// The layers of a pack that lie in bundles.
struct NeuronBundles {
  uint32_t neurons = 0;  // of a bundle; 0: there are none
  // Expected share of bundles that a token touches, in thousandths; 0: not known.
  uint32_t touched_per_mille = 0;
  std::vector<std::string> tensors;  // names of the matrices that lie so, sorted
  uint64_t align = kBundleAlign;
  std::vector<NeuronOrder> orders;  // of layers whose neurons do not lie in the order of the source, ascending
  const NeuronOrder* order(uint32_t layer) const;
  bool holds(const std::string& tensor) const;
};

// The matrices of layer "blk.N." of a model whose neurons can rest; down is nullptr where the file has no such layer.
BundledMatrices matrices_of_layer(const Gguf& gguf, uint32_t layer);

}  // namespace ridge
