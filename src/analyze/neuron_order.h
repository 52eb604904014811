// From an importance map to the order in which a pack holds neurons: most touched first, so that what tokens need lies
// in few bundles.
//
//   const ImportanceMap map = RIDGE_TRY(read_map("map.json"));
//   RIDGE_TRY(require_same_model(map, "map.json", *model, "model.gguf"));
//   options.orders = RIDGE_TRY(orders_by_touch(gguf, map, "map.json", 64));
//
// Not for: how the order is laid down (format/ridge_pack.h).
#pragma once

#include <string>
#include <vector>

#include "analyze/importance_map.h"
#include "format/neuron_bundles.h"
#include "model/model.h"

namespace ridge {

// Bad input: the map is of another model, by its fingerprint. A pack of the model has another one than its source, so
// it is known by metadata, shapes and vectors (source_fingerprint()).
Result<void> require_same_model(const ImportanceMap& map, const std::string& map_path, const Model& model,
                                const std::string& model_path);

// By bundle of one layer, in the order of the pack (nullptr: of the file): the share of tokens expected to touch it, as
// reckoned below. Bad input: as below. The layer must be one of the map whose neurons are cut by `neurons`.
Result<std::vector<double>> bundle_touches(const ImportanceMap& map, const std::string& map_path, uint32_t layer,
                                           uint32_t neurons, const NeuronOrder* order);

// An order for every layer that bundles of `neurons` neurons can be cut of. Ties keep the order of the file. What a
// bundle is touched by is reckoned from how often its neurons fired by themselves, as 1 − Π(1 − pᵢ)^a, where a is such
// that the map's own groups come out as they were counted: neurons fire together. Bad input: a map without firing, or
// of other layers.
Result<std::vector<NeuronOrder>> orders_by_touch(const Gguf& gguf, const ImportanceMap& map,
                                                 const std::string& map_path, uint32_t neurons);

// Share of a layer's bundles that a token is expected to touch.
double mean_touch(const NeuronOrder& order);

}  // namespace ridge
