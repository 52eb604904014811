// The importance map as a file (docs/importance.md).
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyze/importance_map.h"
#include "base/units.h"
#include "format/file_stream.h"
#include "format/output_file.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "ridge-importance";
constexpr uint64_t kLargestMap = 512 * kMiB;
constexpr MapKind kKinds[] = {MapKind::neurons, MapKind::head, MapKind::expert, MapKind::part};

Error no_map(const std::string& path, const std::string& what) {
  return bad_input(fmt::format("{}: {}: expected a file that `ridge importance -o` wrote; make it anew", path, what));
}

bool is_count(const Json& j) { return j.is_number_unsigned(); }
bool is_share(const Json& j) { return j.is_number() && j.get<double>() >= 0 && j.get<double>() <= 1; }

Result<MapBlock> read_block(const Json& j, size_t tasks, const std::string& path) {
  MapBlock b;
  const bool good = j.is_object() && j.value("kind", Json()).is_string() && j.value("name", Json()).is_string() &&
                    is_count(j.value("layer", Json())) && is_count(j.value("index", Json())) &&
                    is_count(j.value("bytes", Json())) && j.value("touch", Json()).is_array() &&
                    j["touch"].size() == tasks && j.value("sensitivity", Json()).is_number() &&
                    j["sensitivity"].get<double>() >= 0;
  if (!good) return no_map(path, "a block lacks a number, or has one that cannot be");
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](MapKind k) { return name_of(k) == j["kind"].get<std::string>(); });
  if (kind == std::end(kKinds)) return no_map(path, "a block is of an unknown kind");
  b.kind = *kind;
  b.name = j["name"].get<std::string>();
  b.layer = j["layer"].get<uint32_t>();
  b.index = j["index"].get<uint32_t>();
  b.bytes = j["bytes"].get<uint64_t>();
  b.sensitivity = j["sensitivity"].get<double>();
  for (const Json& share : j["touch"]) {
    if (!is_share(share)) return no_map(path, fmt::format("the chance of {} is none", Json(b.name).dump()));
    b.touch.push_back(share.get<double>());
  }
  return b;
}

Result<uint64_t> read_fingerprint(const Json& j, const char* key, const std::string& path) {
  uint64_t value = 0;
  const std::string text = j.is_string() ? j.get<std::string>() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return no_map(path, fmt::format("'{}' is no hexadecimal number", key));
  return value;
}

Result<std::vector<std::vector<uint64_t>>> read_fired(const Json& all, const std::string& path) {
  if (!all.is_array()) return no_map(path, "'fired' is no list");
  std::vector<std::vector<uint64_t>> out;
  for (const Json& layer : all) {
    if (!layer.is_array()) return no_map(path, "'fired' holds no lists");
    std::vector<uint64_t>& neurons = out.emplace_back();
    for (const Json& count : layer) {
      if (!is_count(count)) return no_map(path, "a neuron fired no whole number of times");
      neurons.push_back(count.get<uint64_t>());
    }
  }
  return out;
}

}  // namespace

Result<void> write_map(const ImportanceMap& map, const std::string& path) {
  Json tasks = Json::array();
  for (const MapTask& t : map.tasks) tasks.push_back({{"name", t.name}, {"tokens", t.tokens}});
  std::string text = fmt::format(
      "{{\"format\": \"{}\", \"version\": 1, \"model\": {}, \"fingerprint\": \"{:016x}\",\n\"source\": \"{:016x}\", "
      "\"neurons\": {}, \"tasks\": {},\n\"blocks\": [\n",
      kFormat, Json(map.model).dump(-1, ' ', false, Json::error_handler_t::replace), map.fingerprint, map.source,
      map.neurons, tasks.dump(-1, ' ', false, Json::error_handler_t::replace));
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  for (size_t i = 0; i < map.blocks.size(); ++i) {
    const MapBlock& b = map.blocks[i];
    const Json line = {{"kind", name_of(b.kind)},
                       {"name", b.name},
                       {"layer", b.layer},
                       {"index", b.index},
                       {"bytes", b.bytes},
                       {"touch", b.touch},
                       {"sensitivity", b.sensitivity}};
    text += line.dump() + (i + 1 < map.blocks.size() ? ",\n" : "\n");
  }
  text += "],\n\"fired\": [\n";
  for (size_t l = 0; l < map.fired.size(); ++l) {
    text += fmt::format("[{}]{}\n", fmt::join(map.fired[l], ","), l + 1 < map.fired.size() ? "," : "");
  }
  text += "]}\n";
  RIDGE_TRY(out.write(text));
  return out.commit();
}

Result<ImportanceMap> read_map(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > kLargestMap) return no_map(path, "larger than 512 MiB");
  std::string text(in.size(), '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));
  const Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return no_map(path, "no JSON object");
  if (j.value("format", Json()) != kFormat) return no_map(path, "its 'format' is not ridge-importance");
  if (j.value("version", Json()) != 1) return no_map(path, "its version is not 1");
  ImportanceMap map;
  if (j.value("model", Json()).is_string()) map.model = j["model"].get<std::string>();
  map.fingerprint = RIDGE_TRY(read_fingerprint(j.value("fingerprint", Json()), "fingerprint", path));
  if (j.contains("source")) map.source = RIDGE_TRY(read_fingerprint(j["source"], "source", path));
  if (!is_count(j.value("neurons", Json())) || j["neurons"].get<uint64_t>() > UINT32_MAX)
    return no_map(path, "'neurons' is no count");
  map.neurons = j["neurons"].get<uint32_t>();
  const Json tasks = j.value("tasks", Json()), blocks = j.value("blocks", Json());
  if (!tasks.is_array() || tasks.empty() || !blocks.is_array()) return no_map(path, "'tasks' or 'blocks' is no list");
  for (const Json& t : tasks) {
    if (!t.is_object() || !t.value("name", Json()).is_string() || !is_count(t.value("tokens", Json())))
      return no_map(path, "a task has no name or no tokens");
    map.tasks.push_back({t["name"].get<std::string>(), t["tokens"].get<uint64_t>()});
  }
  for (const Json& b : blocks) map.blocks.push_back(RIDGE_TRY(read_block(b, map.tasks.size(), path)));
  map.fired = RIDGE_TRY(read_fired(j.value("fired", Json()), path));
  return map;
}

}  // namespace ridge
