#include "distill/importance_map.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/units.h"
#include "format/whole_file.h"

namespace ridge::distill {
namespace {

using Json = nlohmann::json;
constexpr double kMostWeight = 1000;

bool is_weight(const Json& j) { return j.is_number() && j.get<double>() >= 0 && j.get<double>() <= kMostWeight; }

Error no_map(const std::string& path, const std::string& what) {
  return bad_input(
      fmt::format("{}: {}: expected a map as docs/distill.md tells; write it for this student", path, what));
}

Result<void> read_neurons(const Json& list, const std::string& path, const StudentShape& shape, double scale,
                          ImportanceMap& map) {
  if (!list.is_array()) return no_map(path, "'neurons' is no list");
  for (const Json& j : list) {
    bool good = j.is_object() && j.contains("weight") && is_weight(j["weight"]);
    for (const char* key : {"layer", "first", "count"}) {
      good = good && j.contains(key) && j[key].is_number_unsigned() && j[key].get<uint64_t>() <= UINT32_MAX;
    }
    if (!good) return no_map(path, "a block of neurons has no layer, first, count or weight");
    const uint64_t layer = j["layer"].get<uint64_t>(), first = j["first"].get<uint64_t>();
    const uint64_t count = j["count"].get<uint64_t>();
    if (layer >= shape.layers || first + count > shape.ffn) {
      return no_map(path, fmt::format("neurons {} to {} of layer {} are not of a student of {} layers with {}", first,
                                      first + count, layer, shape.layers, shape.ffn));
    }
    std::vector<float>& of = map.neurons[layer];
    if (of.empty()) of.assign(shape.ffn, static_cast<float>(map.layers[layer]));
    for (uint64_t n = first; n < first + count; ++n) of[n] = static_cast<float>(j["weight"].get<double>() * scale);
  }
  return {};
}

}  // namespace

ImportanceMap flat_map(const StudentShape& shape) {
  return {std::vector<double>(shape.layers, 1.0), std::vector<std::vector<float>>(shape.layers)};
}

Result<ImportanceMap> read_importance_map(const std::string& path, const StudentShape& shape) {
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_whole_file(path, 64 * kMiB));
  const Json j = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (j.is_discarded() || !j.is_object()) return no_map(path, "no JSON object");
  if (j.value("format", Json()) != "ridge-layer-weights" || j.value("version", Json()) != 1) {
    return no_map(path, "its 'format' is not ridge-layer-weights of version 1");
  }
  const Json layers = j.value("layers", Json());
  if (!layers.is_array() || layers.size() != shape.layers) {
    return no_map(path, fmt::format("'layers' is no list of {}, one for each layer of the student",
                                    counted(shape.layers, "weight")));
  }
  ImportanceMap map = flat_map(shape);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!is_weight(layers[i]))
      return no_map(path, fmt::format("the weight of layer {} is no number from 0 to 1000", i));
    map.layers[i] = layers[i].get<double>();
  }
  const double sum = std::accumulate(map.layers.begin(), map.layers.end(), 0.0);
  if (sum <= 0) return no_map(path, "all weights are 0");
  const double scale = static_cast<double>(map.layers.size()) / sum;
  for (double& w : map.layers) w *= scale;
  if (j.contains("neurons")) RIDGE_TRY(read_neurons(j["neurons"], path, shape, scale, map));
  return map;
}

}  // namespace ridge::distill
