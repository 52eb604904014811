// Reading a device of contexts from TOML.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "sim/context_device.h"
#include "sim/toml_table.h"

namespace ridge::sim {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMostContexts = 100'000;

struct Kind {
  std::string name;
  double weight_mib = 0, lifecycle_s = 0, run_s = 0;
  uint32_t count = 0;  // contexts of it
};

Result<std::vector<Kind>> read_kinds(Table& top, const std::vector<std::string>& order, uint32_t layers) {
  Table all = RIDGE_TRY(top.table("kinds"));
  std::vector<Kind> kinds;
  for (const std::string& name : order) {
    auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == name; });
    if (known != kinds.end()) {
      known->count += layers;
      continue;
    }
    Table in = RIDGE_TRY(all.table(name));
    Kind kind{.name = name, .count = layers};
    kind.weight_mib = RIDGE_TRY(in.number("weight_mib", Sign::positive));
    kind.lifecycle_s = RIDGE_TRY(in.number("lifecycle_s", Sign::positive));
    kind.run_s = RIDGE_TRY(in.number("run_s", Sign::not_negative));
    RIDGE_TRY(in.finish());
    kinds.push_back(std::move(kind));
  }
  RIDGE_TRY(all.finish());
  return kinds;
}

Result<std::vector<LadderPoint>> read_ladder(Table& memory, uint32_t contexts) {
  std::vector<LadderPoint> points;
  for (Table& in : RIDGE_TRY(memory.tables("ladder"))) {
    LadderPoint p;
    p.contexts = RIDGE_TRY(in.whole("contexts", contexts));
    p.pss_mib = RIDGE_TRY(in.number("pss_mib", Sign::positive));
    p.added_mib = RIDGE_TRY(in.number("added_mib", Sign::positive));
    p.available_mib = RIDGE_TRY(in.number("available_mib", Sign::any));
    p.swap_mib = RIDGE_TRY(in.number("swap_mib", Sign::not_negative));
    RIDGE_TRY(in.finish());
    if (!points.empty() && p.contexts <= points.back().contexts)
      return in.error("contexts", "more than on the rung before");
    points.push_back(p);
  }
  if (points.size() < 2) return memory.error("ladder", "two rungs or more: a trend needs them");
  return points;
}

Result<void> read_memory(Table& top, ContextDevice& device) {
  const uint32_t contexts = static_cast<uint32_t>(device.contexts.size());
  Table memory = RIDGE_TRY(top.table("memory"));
  device.total_mib = RIDGE_TRY(memory.number("total_mib", Sign::positive));
  device.ladder = RIDGE_TRY(read_ladder(memory, contexts));
  if (memory.has("pools")) {
    for (Table& in : RIDGE_TRY(memory.tables("pools"))) {
      LadderPoint p;
      p.contexts = RIDGE_TRY(in.whole("contexts", contexts));
      p.added_mib = RIDGE_TRY(in.number("added_mib", Sign::positive));
      RIDGE_TRY(in.finish());
      device.pools.push_back(p);
    }
  }
  if (memory.has("mapping")) {
    Table in = RIDGE_TRY(memory.table("mapping"));
    device.mapping_contexts = RIDGE_TRY(in.whole("contexts", contexts));
    device.mapping_mib = RIDGE_TRY(in.number("mib", Sign::positive));
    RIDGE_TRY(in.finish());
  }
  if (memory.has("hold")) {
    Table in = RIDGE_TRY(memory.table("hold"));
    device.hold_contexts = RIDGE_TRY(in.whole("contexts", contexts));
    device.hold_swap_mib = RIDGE_TRY(in.number("swap_mib", Sign::not_negative));
    (void)RIDGE_TRY(in.number("seconds", Sign::positive));
    RIDGE_TRY(in.finish());
  }
  RIDGE_TRY(memory.finish());
  Table gate = RIDGE_TRY(top.table("gate"));
  device.gate_available_mib = RIDGE_TRY(gate.number("available_mib", Sign::not_negative));
  device.gate_swap_mib = RIDGE_TRY(gate.number("swap_mib", Sign::not_negative));
  return gate.finish();
}

Result<void> read_published(Table& top, Published& p) {
  if (!top.has("published")) return {};
  Table in = RIDGE_TRY(top.table("published"));
  const std::pair<const char*, std::optional<double>*> keys[] = {
      {"lifecycles", &p.lifecycles},
      {"lru_hits", &p.lru_hits},
      {"lifecycle_s", &p.lifecycle_s},
      {"pass_lifecycle_s", &p.pass_lifecycle_s},
      {"resident_saving_s", &p.resident_saving_s},
      {"image_s", &p.image_s},
      {"resident_image_s", &p.resident_image_s},
      {"pinned_contexts", &p.pinned_contexts},
      {"pinned_saving_s", &p.pinned_saving_s},
      {"pinned_mib", &p.pinned_mib},
      {"mapping_gib", &p.mapping_gib},
      {"added_pss_gib", &p.added_pss_gib},
  };
  for (const auto& [key, value] : keys) {
    if (in.has(key)) *value = RIDGE_TRY(in.number(key, Sign::not_negative));
  }
  return in.finish();
}

// Contexts of all layers. Lifecycles by kind are scaled so that a walk takes what was measured for it as a whole.
Result<void> read_contexts(Table& top, ContextDevice& device) {
  const uint32_t layers = RIDGE_TRY(top.whole("layers", kMostContexts));
  const std::vector<std::string> order = RIDGE_TRY(top.texts("order"));
  if (layers * order.size() > static_cast<size_t>(kMostContexts)) {
    return top.error("layers", fmt::format("at most {} contexts in all", kMostContexts));
  }
  const std::vector<Kind> kinds = RIDGE_TRY(read_kinds(top, order, layers));
  Table life = RIDGE_TRY(top.table("lifecycle"));
  const double load = RIDGE_TRY(life.number("load_s", Sign::not_negative));
  const double init = RIDGE_TRY(life.number("init_s", Sign::not_negative));
  const double release = RIDGE_TRY(life.number("release_s", Sign::not_negative));
  if (life.has("fixed_s")) device.fixed_lifecycle_s = RIDGE_TRY(life.number("fixed_s", Sign::not_negative));
  RIDGE_TRY(life.finish());
  Table image = RIDGE_TRY(top.table("image"));
  device.steps = RIDGE_TRY(image.whole("steps", 100'000));
  const double host = RIDGE_TRY(image.number("host_s", Sign::not_negative));
  device.other_s = RIDGE_TRY(image.number("other_s", Sign::not_negative));
  RIDGE_TRY(image.finish());

  double by_kind = 0;
  for (const Kind& k : kinds) by_kind += k.lifecycle_s * k.count;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (const std::string& name : order) {
      const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == name; });
      const double share = kind->lifecycle_s / by_kind;
      device.contexts.push_back({.name = fmt::format("blk.{}.{}", layer, name),
                                 .kind = static_cast<uint32_t>(kind - kinds.begin()),
                                 .weight_mib = kind->weight_mib,
                                 .load_s = load * share,
                                 .init_s = init * share,
                                 .release_s = release * share,
                                 .run_s = kind->run_s / kind->count,
                                 .host_s = host / static_cast<double>(layers * order.size())});
    }
  }
  for (const Kind& k : kinds) device.kinds.push_back(k.name);
  return {};
}

}  // namespace

Result<ContextDevice> load_context_device(const std::string& path) {
  const TomlFile file = RIDGE_TRY(TomlFile::read(path, "docs/simulator.md"));
  Table top = file.top();
  if (RIDGE_TRY(top.whole("format", 1'000'000)) > kFormat) {
    return bad_input(
        fmt::format("{}: was written for a newer ridge (this one knows format {}); update ridge", path, kFormat));
  }
  if (RIDGE_TRY(top.text("kind")) != "contexts") {
    return top.error("kind", "\"contexts\": this command simulates devices of contexts");
  }
  ContextDevice device;
  device.name = RIDGE_TRY(top.text("name"));
  RIDGE_TRY(read_contexts(top, device));
  RIDGE_TRY(read_memory(top, device));
  RIDGE_TRY(read_published(top, device.published));
  RIDGE_TRY(top.finish());
  return device;
}

}  // namespace ridge::sim
