// Reading a device of contexts from TOML. Every key is known or refused: a typing error must not become a default.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/units.h"
#include "format/file_stream.h"
#include "sim/context_device.h"

namespace ridge::sim {
namespace {

constexpr uint64_t kLargestFile = 4 * kMiB;
constexpr int64_t kFormat = 1;
constexpr int64_t kMostContexts = 100'000;
constexpr double kMost = 1e12;  // seconds or MiB: anything larger is a typing error

enum class Sign : uint8_t { positive, not_negative, any };

// One table of the file, with the words for its errors. Remembers which keys were asked for.
class Table {
 public:
  Table(const toml::table& table, std::string_view path, std::string where)
      : table_(table), path_(path), where_(std::move(where)) {}

  bool has(std::string_view key) const { return table_.get(key) != nullptr; }

  Result<double> number(std::string_view key, Sign sign) {
    known_.insert(std::string(key));
    const toml::node* node = table_.get(key);
    const auto value = node == nullptr ? std::nullopt : node->value<double>();
    const bool good = value && node->is_number() && std::isfinite(*value) && std::abs(*value) <= kMost &&
                      (sign == Sign::any || *value > 0 || (sign == Sign::not_negative && *value == 0));
    if (good) return *value;
    if (sign == Sign::positive) return error(key, "a number above 0");
    return error(key, sign == Sign::any ? "a number" : "a number from 0 on");
  }
  Result<uint32_t> whole(std::string_view key, int64_t most) {
    known_.insert(std::string(key));
    auto value = table_[key].value_exact<int64_t>();
    if (!value || *value < 1 || *value > most) return error(key, fmt::format("a whole number from 1 to {}", most));
    return static_cast<uint32_t>(*value);
  }
  Result<std::string> text(std::string_view key) {
    known_.insert(std::string(key));
    auto value = table_[key].value_exact<std::string>();
    if (!value || value->empty()) return error(key, "a text in quotes");
    return *std::move(value);
  }
  Result<std::vector<std::string>> texts(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<std::string> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr || array->empty()) return error(key, "a list of texts, such as [\"self\", \"ffn\"]");
    for (const toml::node& node : *array) {
      auto value = node.value_exact<std::string>();
      if (!value) return error(key, "a list of texts, and nothing else in it");
      out.push_back(*std::move(value));
    }
    return out;
  }
  Result<Table> table(std::string_view key) {
    known_.insert(std::string(key));
    const toml::table* inner = table_[key].as_table();
    if (inner == nullptr) return error(key, "a table");
    return Table(*inner, path_, where_.empty() ? std::string(key) : where_ + "." + std::string(key));
  }
  Result<std::vector<Table>> tables(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<Table> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return error(key, "a list of tables");
    for (size_t i = 0; i < array->size(); ++i) {
      const toml::table* inner = array->get(i)->as_table();
      if (inner == nullptr) return error(key, "a list of tables, and nothing else in it");
      out.emplace_back(*inner, path_, fmt::format("{}.{}[{}]", where_, key, i + 1));
    }
    return out;
  }
  // After everything was read: a key that nobody asked for is an error.
  Result<void> finish() const {
    for (const auto& [key, node] : table_) {
      if (known_.contains(std::string(key.str()))) continue;
      return wrong(node.source(), fmt::format("'{}' is not known", name(key.str())),
                   fmt::format("one of {}", known_names()));
    }
    return {};
  }
  Error error(std::string_view key, std::string_view expected) const {
    const toml::node* node = table_.get(key);
    return wrong(node == nullptr ? toml::source_region{} : node->source(),
                 fmt::format("'{}' is {}", name(key), node == nullptr ? "missing" : "wrong"), expected);
  }

 private:
  std::string name(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  std::string known_names() const {
    std::string names;
    for (const std::string& k : known_) names += (names.empty() ? "" : ", ") + k;
    return names;
  }
  Error wrong(const toml::source_region& source, std::string_view what, std::string_view expected) const {
    const std::string line = source.begin.line > 0 ? fmt::format("line {}: ", source.begin.line) : "";
    return bad_input(
        fmt::format("{}: {}{}: expected {}; docs/simulator.md explains the keys", path_, line, what, expected));
  }

  const toml::table& table_;
  std::string_view path_;
  std::string where_;
  std::set<std::string> known_;
};

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

Result<std::string> whole_text(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > kLargestFile) {
    return bad_input(fmt::format("{}: larger than 4 MiB, so this is no device profile; name one of profiles/", path));
  }
  std::string text(in.size(), '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));
  return text;
}

}  // namespace

Result<ContextDevice> load_context_device(const std::string& path) {
  const std::string text = RIDGE_TRY(whole_text(path));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return bad_input(
        fmt::format("{}: line {}: not TOML: {}; correct it", path, error.source().begin.line, error.description()));
  }
  Table top(parsed.table(), path, "");
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
