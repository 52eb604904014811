#include "distill/model_files.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "format/gguf_writer.h"
#include "format/output_file.h"
#include "format/safetensors.h"

namespace ridge::distill {
namespace {

std::span<const uint8_t> bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

Metadata metadata_of(const StudentShape& s, const Metadata& vocabulary, const GgufOptions& options, uint32_t layers) {
  const std::string architecture(architecture_of(s.ffn_kind));
  Metadata metadata = vocabulary;
  auto& entries = metadata.entries();
  entries["general.architecture"] = architecture;
  entries["general.name"] = options.name;
  auto number = [&](const char* key, uint64_t value) {
    entries[architecture + "." + key] = static_cast<int64_t>(value);
  };
  number("block_count", layers);
  number("embedding_length", s.dim);
  number("feed_forward_length", s.ffn);
  number("context_length", s.context);
  number("attention.head_count", s.heads);
  number("attention.head_count_kv", s.kv_heads);
  number("rope.dimension_count", s.head_dim());
  number("vocab_size", s.vocabulary);
  entries[architecture + ".rope.freq_base"] = kRopeBase;
  entries[architecture + ".attention.layer_norm_rms_epsilon"] = double{static_cast<float>(kNormEpsilon)};
  return metadata;
}

// Of "blk.12.attn_q.weight" 12 and "attn_q.weight"; layer −1 for what is in no block.
struct Part {
  int layer = -1;
  std::string_view rest;
};
Part part_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return {-1, name};
  Part part;
  const char* begin = name.data() + kPrefix.size();
  const auto end = std::from_chars(begin, name.data() + name.size(), part.layer).ptr;
  part.rest = name.substr(static_cast<size_t>(end - name.data()) + 1);
  return part;
}

struct Source {
  GgufTensor tensor;
  const NamedTensor* from = nullptr;
};

// The name in a Llama of transformers.
std::string transformers_name(const Part& part) {
  struct Pair {
    std::string_view gguf, other;
  };
  constexpr Pair kWhole[] = {{"token_embd.weight", "model.embed_tokens.weight"},
                             {"output_norm.weight", "model.norm.weight"},
                             {"output.weight", "lm_head.weight"}};
  constexpr Pair kOfLayer[] = {
      {"attn_norm.weight", "input_layernorm.weight"},    {"attn_q.weight", "self_attn.q_proj.weight"},
      {"attn_k.weight", "self_attn.k_proj.weight"},      {"attn_v.weight", "self_attn.v_proj.weight"},
      {"attn_output.weight", "self_attn.o_proj.weight"}, {"ffn_norm.weight", "post_attention_layernorm.weight"},
      {"ffn_gate.weight", "mlp.gate_proj.weight"},       {"ffn_up.weight", "mlp.up_proj.weight"},
      {"ffn_down.weight", "mlp.down_proj.weight"}};
  for (const Pair& p : kWhole) {
    if (part.layer < 0 && p.gguf == part.rest) return std::string(p.other);
  }
  for (const Pair& p : kOfLayer) {
    if (part.layer >= 0 && p.gguf == part.rest) return fmt::format("model.layers.{}.{}", part.layer, p.other);
  }
  return std::string(part.rest);
}

// Rotary pairs of a head are neighbours here and in GGUF's llama; transformers has them half a head apart: its row i is
// our row 2i, its row half + i our row 2i + 1.
std::vector<float> pairs_apart(const NamedTensor& t, uint32_t head_dim) {
  std::vector<float> out(t.values.size());
  for (uint64_t row = 0; row < t.rows; ++row) {
    const uint64_t head = row / head_dim * head_dim, i = row % head_dim, half = head_dim / 2;
    const uint64_t from = head + (i < half ? 2 * i : 2 * (i - half) + 1);
    std::copy_n(t.values.begin() + static_cast<std::ptrdiff_t>(from * t.cols), t.cols,
                out.begin() + static_cast<std::ptrdiff_t>(row * t.cols));
  }
  return out;
}

std::string config_json(const StudentShape& s) {
  const bool relu2 = s.ffn_kind == FfnKind::relu2;
  const nlohmann::ordered_json config = {{"architectures", {relu2 ? "ArceeForCausalLM" : "LlamaForCausalLM"}},
                                         {"model_type", relu2 ? "arcee" : "llama"},
                                         {"hidden_act", relu2                          ? "relu2"
                                                        : s.ffn_kind == FfnKind::reglu ? "relu"
                                                                                       : "silu"},
                                         {"hidden_size", s.dim},
                                         {"intermediate_size", s.ffn},
                                         {"num_hidden_layers", s.runs()},
                                         {"num_attention_heads", s.heads},
                                         {"num_key_value_heads", s.kv_heads},
                                         {"head_dim", s.head_dim()},
                                         {"max_position_embeddings", s.context},
                                         {"vocab_size", s.vocabulary},
                                         {"rms_norm_eps", kNormEpsilon},
                                         {"rope_theta", kRopeBase},
                                         {"tie_word_embeddings", s.tied},
                                         {"torch_dtype", "float32"}};
  return config.dump(2) + "\n";
}

// The blocks of the model as they run, each stored one once or twice; those of `layers` runs.
std::vector<std::pair<std::string, const NamedTensor*>> as_run(const StudentShape& shape,
                                                               std::span<const NamedTensor> tensors, uint32_t layers) {
  std::vector<std::pair<std::string, const NamedTensor*>> out;
  for (const NamedTensor& t : tensors) {
    const Part part = part_of(t.name);
    if (part.layer < 0) {
      out.emplace_back(t.name, &t);
      continue;
    }
    const uint32_t times = shape.shared ? 2 : 1;
    for (uint32_t k = 0; k < times; ++k) {
      const uint32_t run = static_cast<uint32_t>(part.layer) * times + k;
      if (run < layers) out.emplace_back(fmt::format("blk.{}.{}", run, part.rest), &t);
    }
  }
  return out;
}

std::vector<uint64_t> dimensions_of(const NamedTensor& t) {
  return t.rows == 0 ? std::vector<uint64_t>{t.cols} : std::vector<uint64_t>{t.rows, t.cols};
}

}  // namespace

Result<void> write_gguf(const StudentShape& shape, const Metadata& vocabulary, std::span<const NamedTensor> tensors,
                        const GgufOptions& options, const std::string& path) {
  const uint32_t layers = options.layers == 0 ? shape.runs() : options.layers;
  const auto run = as_run(shape, tensors, layers);
  std::vector<GgufTensor> list;
  for (const auto& [name, t] : run) {
    GgufTensor entry{.name = name, .dims = t->rows == 0 ? 1u : 2u, .type = Type::F32};
    entry.shape = {t->cols, std::max<uint64_t>(t->rows, 1), 1, 1};
    list.push_back(std::move(entry));
  }
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  const std::string header = gguf_header(metadata_of(shape, vocabulary, options, layers), list);
  RIDGE_TRY(out.preallocate(gguf_file_bytes(list)));
  RIDGE_TRY(out.write(header));
  for (size_t i = 0; i < list.size(); ++i) {
    RIDGE_TRY(out.write_at(list[i].offset, bytes_of(run[i].second->values)));
  }
  return out.commit();
}

Result<void> write_beside(const StudentShape& shape, std::span<const NamedTensor> tensors, const std::string& path) {
  const auto run = as_run(shape, tensors, shape.runs());
  std::vector<SafetensorsWriter::Item> items;
  for (const auto& [name, t] : run) items.push_back({name, SafeType::F32, dimensions_of(*t)});
  auto out = RIDGE_TRY(SafetensorsWriter::create(path, std::move(items)));
  for (const auto& [name, t] : run) {
    std::vector<float> values(t->values.begin(), t->values.end());
    const float part = shape.shared && part_of(name).layer >= 0 ? 0.5f : 1.0f;
    for (float& v : values) v *= part;
    RIDGE_TRY(out.append(std::span<const float>(values)));
  }
  return out.finish();
}

Result<void> write_transformers(const StudentShape& shape, std::span<const NamedTensor> tensors,
                                const std::string& folder) {
  const auto run = as_run(shape, tensors, shape.runs());
  std::vector<SafetensorsWriter::Item> items;
  for (const auto& [name, t] : run) {
    items.push_back({transformers_name(part_of(name)), SafeType::F32, dimensions_of(*t)});
  }
  auto out = RIDGE_TRY(SafetensorsWriter::create(folder + "/model.safetensors", std::move(items)));
  for (const auto& [name, t] : run) {
    const std::string_view rest = part_of(name).rest;
    if (rest == "attn_q.weight" || rest == "attn_k.weight") {
      RIDGE_TRY(out.append(std::span<const float>(pairs_apart(*t, shape.head_dim()))));
      continue;
    }
    RIDGE_TRY(out.append(t->values));
  }
  RIDGE_TRY(out.finish());
  OutputFile config = RIDGE_TRY(OutputFile::create(folder + "/config.json"));
  RIDGE_TRY(config.write(config_json(shape)));
  return config.commit();
}

}  // namespace ridge::distill
