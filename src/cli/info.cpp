// ridge info: what a model file is, and what it needs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "cli/common.h"
#include "model/model_file.h"
#include "tensor/panel.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge info smollm2-135m\n"
    "  ridge info model.gguf --tensors\n"
    "  ridge info model.gguf --json";

struct Flags {
  std::string model;
  std::optional<std::string> kv_type;
  bool tensors = false, json = false;
};

std::string shape_text(const GgufTensor& t) {
  std::string text;
  for (uint32_t d = 0; d < t.dims; ++d) text += fmt::format("{}{}", d ? " × " : "", t.shape[d]);
  return text;
}

Json types_json(const Gguf& file) {
  struct Sum {
    uint64_t tensors = 0, bytes = 0, elements = 0;
  };
  std::map<std::string_view, Sum> sums;
  for (const GgufTensor& t : file.tensors()) {
    Sum& s = sums[type_info(t.type).name];
    ++s.tensors;
    s.bytes += t.bytes;
    s.elements += t.elements();
  }
  Json out = Json::array();
  for (const auto& [name, s] : sums) {
    out.push_back({{"type", name},
                   {"tensors", s.tensors},
                   {"bytes", s.bytes},
                   {"bits_per_weight", 8.0 * static_cast<double>(s.bytes) / static_cast<double>(s.elements)}});
  }
  return out;
}

// What runs need at a few contexts: the smallest budget, everything in memory, and the cache alone.
Result<Json> needs_json(const std::string& path, uint32_t trained, std::optional<KvType> kv_type, KvType& used) {
  std::vector<uint64_t> contexts;
  for (uint64_t context : {512u, 2048u, 8192u, 32768u}) {
    if (context <= trained || contexts.empty()) contexts.push_back(std::min<uint64_t>(context, trained));
  }
  Json out = Json::array();
  for (const Engine::Needs& n :
       RIDGE_TRY(Engine::needs({.path = path, .kv_type = kv_type, .need_tokenizer = false}, contexts))) {
    used = n.kv_type;
    out.push_back({{"context", n.context},
                   {"smallest_budget", named_budget(n.smallest)},
                   {"resident", named_budget(n.resident)},
                   {"kv_cache", n.kv}});
  }
  return out;
}

Result<Json> describe(const std::string& path, const Flags& flags) {
  auto model = RIDGE_TRY(Model::open(path));
  const ModelConfig& c = model->config();
  const Gguf& file = model->file();
  uint64_t bytes = 0, elements = 0;
  for (const GgufTensor& t : file.tensors()) {
    bytes += t.bytes;
    elements += t.elements();
  }
  auto chat = RIDGE_TRY(file.metadata().string("tokenizer.chat_template"));
  Json j;
  j["file"] = path;
  j["name"] = c.name;
  j["architecture"] = c.architecture;
  j["parameters"] = elements;
  j["weight_bytes"] = bytes;
  j["bits_per_weight"] = 8.0 * static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, elements));
  j["layers"] = c.layers;
  j["width"] = c.width;
  j["feed_forward"] = c.ffn;
  j["heads"] = c.heads;
  j["kv_heads"] = c.kv_heads;
  j["head_size"] = c.key_dim;
  j["vocabulary"] = c.vocabulary;
  j["tied_head"] = model->tied();
  j["trained_context"] = c.context;
  uint32_t window = 0;
  for (const KvLayer& l : model->kv_layers()) window = std::max(window, l.window);
  if (window != 0) j["sliding_window"] = window;
  j["kv_bytes_per_token"] = 0;  // filled in below, when the type is known
  if (Program program = model->program({}, {}); !program.expert_groups.empty()) {
    const ExpertGroup& group = program.expert_groups.front();
    j[group.held ? "neuron_bundles" : "experts"] = {{"layers", program.expert_groups.size()},
                                                    {"count", group.experts},
                                                    {"used", group.used},
                                                    {"weight_bytes_per_token", program.memory_bytes_of_a_pass()}};
  }
  j["chat_template"] = chat.has_value();
  j["types"] = types_json(file);
  if (flags.tensors) {
    j["tensors"] = Json::array();
    for (const GgufTensor& t : file.tensors()) {
      std::vector<uint64_t> shape(t.shape.begin(), t.shape.begin() + t.dims);
      j["tensors"].push_back(
          {{"name", t.name}, {"type", type_info(t.type).name}, {"shape", shape}, {"bytes", t.bytes}});
    }
  }
  if (flags.tensors) {
    const ModelFile opened = RIDGE_TRY(open_model_file(path, Verify::headers));
    for (const NeuronOrder& o : opened.bundles.orders)
      j["neuron_orders"].push_back(
          {{"layer", o.layer}, {"unit", o.unit}, {"units", o.units}, {"touched_per_million", o.touched}});
  }
  auto tokenizer = Tokenizer::from_metadata(model->file().metadata());
  j["tokenizer"] = tokenizer.ok() ? tokenizer.value()->description() : "none";
  uint32_t trained = c.context;
  std::vector<KvLayer> kv_layers = model->kv_layers();
  tokenizer = Error{};
  model.reset();  // so that the account below is that of a run
  std::optional<KvType> wish;
  if (flags.kv_type) wish = RIDGE_TRY(parse_kv_type(*flags.kv_type));
  KvType used = KvType::f16;
  j["needs"] = RIDGE_TRY(needs_json(path, trained, wish, used));
  j["kv_type"] = name_of(used);
  j["kv_bytes_per_token"] = KvCache::bytes_per_token(kv_layers, used);
  return j;
}

std::string table(const Json& j) {
  std::string text;
  auto row = [&](std::string_view name, const std::string& value) { text += fmt::format("{:<16} {}\n", name, value); };
  auto number = [&](const char* key) { return j[key].get<uint64_t>(); };
  if (!j["name"].get<std::string>().empty()) row("name", printable(j["name"].get<std::string>()));
  row("architecture", j["architecture"].get<std::string>());
  row("parameters", format_count(number("parameters")));
  row("weights",
      fmt::format("{}, {:.2f} bits each", format_bytes(number("weight_bytes")), j["bits_per_weight"].get<double>()));
  for (const Json& t : j["types"]) {
    row("", fmt::format("{:<7} {:>12}  {:>9}  {:.2f} bits", t["type"].get<std::string>(),
                        counted(t["tensors"].get<uint64_t>(), "tensor"), format_bytes(t["bytes"].get<uint64_t>()),
                        t["bits_per_weight"].get<double>()));
  }
  row("layers",
      fmt::format("{}, width {}, feed-forward {}", number("layers"), number("width"), number("feed_forward")));
  if (j.contains("experts")) {
    const Json& e = j["experts"];
    row("experts", fmt::format("{} in each of {}, {} used: {} of weights per token", e["count"].get<uint64_t>(),
                               counted(e["layers"].get<uint64_t>(), "layer"), e["used"].get<uint64_t>(),
                               format_bytes(e["weight_bytes_per_token"].get<uint64_t>())));
  }
  if (j.contains("neuron_bundles")) {
    const Json& e = j["neuron_bundles"];
    row("neuron bundles", fmt::format("{} in each of {}, {} touched by a token if it is as measured or assumed",
                                      e["count"].get<uint64_t>(), counted(e["layers"].get<uint64_t>(), "layer"),
                                      e["used"].get<uint64_t>()));
  }
  row("attention",
      fmt::format("{} of {}, {} for keys and values{}", counted(number("heads"), "head"), number("head_size"),
                  number("kv_heads"),
                  j.contains("sliding_window") ? fmt::format(", window {}", number("sliding_window")) : ""));
  row("vocabulary", fmt::format("{} tokens, head {}", format_count(number("vocabulary")),
                                j["tied_head"].get<bool>() ? "tied to the embedding" : "of its own"));
  row("tokenizer", j["tokenizer"].get<std::string>());
  row("chat template", j["chat_template"].get<bool>() ? "yes" : "no: the model continues text");
  row("trained context", format_count(number("trained_context")));
  row("KV cache",
      fmt::format("{} per token in {}{}", format_bytes(number("kv_bytes_per_token")), j["kv_type"].get<std::string>(),
                  j.contains("sliding_window") ? ", and the windows" : ""));
  text += "\ncontext   smallest --memory   all in memory   KV cache\n";
  for (const Json& n : j["needs"]) {
    text += fmt::format("{:>7}   {:>17}   {:>13}   {:>8}\n", n["context"].get<uint64_t>(),
                        budget_text(n["smallest_budget"].get<uint64_t>()), budget_text(n["resident"].get<uint64_t>()),
                        format_bytes(n["kv_cache"].get<uint64_t>()));
  }
  return text;
}

Result<void> run(const Flags& flags) {
  std::string path = RIDGE_TRY(resolve_model(flags.model));
  Json j = RIDGE_TRY(describe(path, flags));
  if (flags.json) return print(j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  std::string text = table(j);
  if (flags.tensors) {
    ModelFile file = RIDGE_TRY(open_model_file(path, Verify::headers));
    text += "\n";
    for (const GgufTensor& t : file.header.tensors()) {
      text += fmt::format("{:<36} {:<7} {:>18} {:>9}\n", printable(t.name), type_info(t.type).name, shape_text(t),
                          format_bytes(t.bytes));
    }
  }
  return print(text);
}

}  // namespace

void add_info(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("info", "what a model is and what it needs");
  command->add_option("MODEL", flags->model, "GGUF file, .ridge pack, or a name from `ridge models`")
      ->type_name("")
      ->required();
  command->add_option("--kv-type", flags->kv_type, "keys and values as f16, bf16, q8_0, f32")->type_name("NAME");
  command->add_flag("--tensors", flags->tensors, "list every tensor");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
