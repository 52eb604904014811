#include "model/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "format/quote.h"
#include "format/safetensors_gguf.h"

namespace ridge {
namespace {

// Tensor under its new names; where `rename` gives none, it is left out.
template <class Rename>
Result<Gguf> renamed(const Gguf& file, Metadata metadata, const Rename& rename) {
  std::vector<GgufTensor> tensors;
  for (const GgufTensor& t : file.tensors()) {
    std::optional<std::string> name = rename(t.name);
    if (!name) continue;
    tensors.push_back(t);
    tensors.back().name = std::move(*name);
  }
  metadata.where = file.metadata().where;
  return Gguf::assemble(std::move(metadata), std::move(tensors), {file.files().begin(), file.files().end()});
}

// ---- Qwen3 ----------------------------------------------------------------------------------------------------------

struct Renaming {
  std::string_view from, to;
};
constexpr Renaming kLayerNames[] = {
    {"input_layernorm.weight", "attn_norm.weight"},    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},      {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},      {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"}, {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},       {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};

// "model.layers.3.mlp.up_proj.weight" → "blk.3.ffn_up.weight", whatever stands before "layers".
std::optional<std::string> qwen_name(std::string_view name) {
  if (name.ends_with("embed_tokens.weight")) return "token_embd.weight";
  const size_t at = name.find("layers.");
  if (at == std::string_view::npos) {
    return name.ends_with("norm.weight") ? std::optional<std::string>("output_norm.weight") : std::nullopt;
  }
  const std::string_view rest = name.substr(at + std::string_view("layers.").size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  for (const Renaming& r : kLayerNames) {
    if (rest.substr(dot + 1) == r.from) return fmt::format("blk.{}.{}", rest.substr(0, dot), r.to);
  }
  return std::nullopt;
}

// What shapes do not tell: rotation base and epsilon of all Qwen3, and a context longer than any prompt.
constexpr double kQwenBase = 1e6, kQwenEps = 1e-6;
constexpr int64_t kQwenContext = 32768;

Result<Metadata> qwen_metadata(const Gguf& file) {
  const std::string& where = file.metadata().where;
  auto need = [&](const std::string& name) -> Result<const GgufTensor*> {
    const GgufTensor* t = file.find(name);
    if (t == nullptr) {
      return bad_input(
          fmt::format("{}: holds no Qwen3: it has no tensor for '{}'; give the text encoder's file", where, name));
    }
    return t;
  };
  const int64_t layers = layers_named(file, "blk.", ".attn_q.weight");
  const GgufTensor* embedding = RIDGE_TRY(need("token_embd.weight"));
  const GgufTensor* q = RIDGE_TRY(need("blk.0.attn_q.weight"));
  const GgufTensor* k = RIDGE_TRY(need("blk.0.attn_k.weight"));
  const GgufTensor* norm = RIDGE_TRY(need("blk.0.attn_q_norm.weight"));
  const GgufTensor* gate = RIDGE_TRY(need("blk.0.ffn_gate.weight"));
  const uint64_t head_dim = norm->elements();
  if (q->rows() % head_dim != 0 || k->rows() % head_dim != 0) {
    return bad_input(fmt::format("{}: its heads have {} dimensions, but queries {} and keys {}", where, head_dim,
                                 q->rows(), k->rows()));
  }
  Metadata m;
  auto& e = m.entries();
  e["general.architecture"] = std::string("qwen3");
  e["qwen3.block_count"] = layers;
  e["qwen3.context_length"] = kQwenContext;
  e["qwen3.embedding_length"] = static_cast<int64_t>(embedding->cols());
  e["qwen3.feed_forward_length"] = static_cast<int64_t>(gate->rows());
  e["qwen3.attention.head_count"] = static_cast<int64_t>(q->rows() / head_dim);
  e["qwen3.attention.head_count_kv"] = static_cast<int64_t>(k->rows() / head_dim);
  e["qwen3.attention.key_length"] = static_cast<int64_t>(head_dim);
  e["qwen3.attention.value_length"] = static_cast<int64_t>(head_dim);
  e["qwen3.attention.layer_norm_rms_epsilon"] = kQwenEps;
  e["qwen3.rope.freq_base"] = kQwenBase;
  return m;
}

}  // namespace

uint32_t layers_named(const Gguf& file, std::string_view before, std::string_view after) {
  constexpr uint32_t kMost = 4096;
  uint32_t layers = 0;
  for (const GgufTensor& t : file.tensors()) {
    std::string_view name = t.name;
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) continue;
    name = name.substr(before.size(), name.size() - before.size() - after.size());
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size())
      layers = std::max(layers, std::min(number, kMost - 1) + 1);
  }
  return layers;
}

Result<ModelFile> open_weights(const std::string& path) {
  if (!is_safetensors(path)) return open_model_file(path, Verify::data);
  ModelFile file;
  file.header = RIDGE_TRY(as_gguf(RIDGE_TRY(Safetensors::open(path))));
  return file;
}

namespace {

constexpr std::string_view kTakesPatchesIn = "x_embedder.proj.1.weight";

std::optional<std::string> diffusion_name(std::string_view name) {
  if (is_no_weight(name)) return std::nullopt;
  for (std::string_view prefix : {"model.diffusion_model.", "diffusion_model.", "net."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return std::string(name);
}

}  // namespace

bool holds_diffusion(const Gguf& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [](const GgufTensor& t) { return diffusion_name(t.name) == kTakesPatchesIn; });
}

Result<ModelFile> open_diffusion(const std::string& path) {
  const ModelFile file = RIDGE_TRY(open_weights(path));
  Metadata metadata;
  metadata.entries()["general.architecture"] = std::string("anima");
  ModelFile named;
  named.header = RIDGE_TRY(renamed(file.header, std::move(metadata), diffusion_name));
  for (const std::string& name : file.panels) {
    if (auto other = diffusion_name(name)) named.panels.push_back(std::move(*other));
  }
  std::sort(named.panels.begin(), named.panels.end());
  return named;
}

Result<std::unique_ptr<Model>> open_text_encoder(const std::string& path) {
  if (!is_safetensors(path)) return Model::open(path);
  const ModelFile file = RIDGE_TRY(open_weights(path));
  const Gguf named = RIDGE_TRY(renamed(file.header, Metadata(), qwen_name));
  Metadata metadata = RIDGE_TRY(qwen_metadata(named));
  return Model::from_gguf(RIDGE_TRY(
      renamed(named, std::move(metadata), [](std::string_view name) { return std::optional<std::string>(name); })));
}

}  // namespace ridge
