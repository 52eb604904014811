// From an importance map to what a cache of experts or bundles of neurons is trained by (memory/task_table.h).
//
//   const ImportanceMap map = RIDGE_TRY(read_map("map.json"));
//   CacheTraining training = RIDGE_TRY(cache_training(map, "map.json", *model, "model.gguf"));
//
// Experts are the map's. Bundles are its groups of neurons where both are cut alike; otherwise a bundle's touch is
// reckoned from how often its neurons fired, as neuron_order.h does, and of a task as much more often as the task
// touches groups of the layer more often than all tasks do.
#pragma once

#include <string>

#include "analyze/importance_map.h"
#include "memory/task_table.h"
#include "model/model.h"

namespace ridge {

// `model_path` is the file that the model was opened from. Bad input: a map of another model, of a dense one, or one
// whose neurons are not those of the pack. Usage error: a model that has neither experts nor a pack with bundles.
Result<CacheTraining> cache_training(const ImportanceMap& map, const std::string& map_path, const Model& model,
                                     const std::string& model_path);

}  // namespace ridge
