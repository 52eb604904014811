// Anima's configuration from the shapes of its tensors, and its tensors; and what turns latents, times and positions
// into the rows of a pass.
#include <fmt/format.h>

#include "kernels/math.h"
#include "kernels/rope_table.h"
#include "model/anima.h"
#include "model/builder.h"
#include "model/image_files.h"

namespace ridge {
namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 24;

// A matrix of the file, as its shapes say: cols() are inputs.
Result<const GgufTensor*> need(const Gguf& file, const std::string& name) {
  const GgufTensor* t = file.find(name);
  if (t == nullptr) {
    return bad_input(
        fmt::format("{}: tensor '{}' is missing: this is no Anima with its text adapter", file.metadata().where, name));
  }
  if (t->cols() > kMostSize || t->rows() > kMostSize) {
    return bad_input(fmt::format("{}: tensor '{}' of [{}, {}] is beyond any model", file.metadata().where, name,
                                 t->rows(), t->cols()));
  }
  return t;
}

uint32_t u32(uint64_t n) { return static_cast<uint32_t>(n); }

constexpr std::string_view kFirstOfLayer = ".self_attn.q_proj.weight";

uint32_t count_layers(const Gguf& file, std::string_view before) { return layers_named(file, before, kFirstOfLayer); }

}  // namespace

Result<std::unique_ptr<Anima>> Anima::open(const std::string& path, std::span<const LoraFile> loras) {
  ModelFile file = RIDGE_TRY(open_diffusion(path));
  LoraSet set = RIDGE_TRY(add_loras(std::move(file.header), loras));
  auto anima = RIDGE_TRY(from_gguf(std::move(set.file), set.pairs));
  anima->place_panels(file);
  return anima;
}

std::vector<TensorId> Anima::multiplied() const {
  std::vector<uint8_t> looked_up(tensors_.size());
  for (TensorId id : gathered()) looked_up[id] = 1;
  std::vector<TensorId> ids;
  for (TensorId id = 0; id < tensors_.size(); ++id) {
    if (looked_up[id] == 0) ids.push_back(id);
  }
  return ids;
}

Result<std::unique_ptr<Anima>> Anima::from_gguf(Gguf file, std::span<const LoraPair> loras) {
  auto anima = std::make_unique<Anima>();
  RIDGE_TRY(anima->read_shape(file));
  ModelBuilder b(std::move(file), {});
  RIDGE_TRY(anima->load(b));
  RIDGE_TRY(anima->load_loras(b, loras));
  ModelConfig config;
  config.architecture = "anima";
  config.layers = anima->shape_.layers;
  config.width = anima->shape_.width;
  config.ffn = anima->shape_.ffn;
  config.vocabulary = anima->shape_.vocabulary;
  config.heads = config.kv_heads = anima->shape_.heads;
  config.key_dim = config.value_dim = anima->shape_.head_dim;
  Anima* own = anima.get();
  auto model = RIDGE_TRY(b.finish(std::move(anima), std::move(config)));
  (void)model.release();
  own->place_loras(loras);
  return std::unique_ptr<Anima>(own);
}

Result<void> Anima::read_shape(const Gguf& file) {
  AnimaConfig& c = shape_;
  const std::string& where = file.metadata().where;
  const GgufTensor* first = RIDGE_TRY(need(file, "x_embedder.proj.1.weight"));
  const GgufTensor* last = RIDGE_TRY(need(file, "final_layer.linear.weight"));
  c.width = u32(first->rows());
  c.layers = count_layers(file, "blocks.");
  c.head_dim = u32(RIDGE_TRY(need(file, "blocks.0.self_attn.q_norm.weight"))->elements());
  c.ffn = u32(RIDGE_TRY(need(file, "blocks.0.mlp.layer1.weight"))->rows());
  c.rank = u32(RIDGE_TRY(need(file, "blocks.0.adaln_modulation_mlp.1.weight"))->rows());
  c.channels = u32(last->rows() / (c.patch * c.patch));
  if (last->rows() != c.patch_outputs() || first->cols() != c.patch_inputs()) {
    return bad_input(
        fmt::format("{}: it maps {} numbers of a patch to {}; Ridge knows patches of 2 × 2 with a padding "
                    "mask, such as 68 to 64",
                    where, first->cols(), last->rows()));
  }
  c.adapter_layers = count_layers(file, "llm_adapter.blocks.");
  const GgufTensor* embedding = RIDGE_TRY(need(file, "llm_adapter.embed.weight"));
  c.vocabulary = u32(embedding->rows());
  c.context_width = u32(embedding->cols());
  c.adapter_head_dim = u32(RIDGE_TRY(need(file, "llm_adapter.blocks.0.self_attn.q_norm.weight"))->elements());
  c.adapter_ffn = u32(RIDGE_TRY(need(file, "llm_adapter.blocks.0.mlp.0.weight"))->rows());
  c.text_width = u32(RIDGE_TRY(need(file, "llm_adapter.blocks.0.cross_attn.k_proj.weight"))->cols());
  // Row, column and time share the dimensions of a head; below 12 none would be left to turn.
  constexpr uint32_t kSmallestHead = 12, kSmallestAdapterHead = 2;
  auto divides = [&](uint32_t width, uint32_t dim, uint32_t least) {
    return dim >= least && dim % 2 == 0 && width % dim == 0;
  };
  if (!divides(c.width, c.head_dim, kSmallestHead) ||
      !divides(c.context_width, c.adapter_head_dim, kSmallestAdapterHead)) {
    return bad_input(
        fmt::format("{}: heads of {} and of {} do not divide the widths of the transformer, {}, and of its "
                    "text adapter, {}",
                    where, c.head_dim, c.adapter_head_dim, c.width, c.context_width));
  }
  c.heads = c.width / c.head_dim;
  c.adapter_heads = c.context_width / c.adapter_head_dim;
  return {};
}

Result<void> Anima::load(ModelBuilder& b) {
  const AnimaConfig& c = shape_;
  first_ = RIDGE_TRY(b.matrix("x_embedder.proj.1.weight", {.rows = c.width, .cols = c.patch_inputs()}));
  time_1_ = RIDGE_TRY(b.matrix("t_embedder.1.linear_1.weight", {.rows = c.width, .cols = c.width}));
  time_2_ = RIDGE_TRY(b.matrix("t_embedder.1.linear_2.weight", {.rows = 3 * c.width, .cols = c.width}));
  time_norm_ = RIDGE_TRY(b.vector("t_embedding_norm.weight", c.width));
  for (uint32_t il = 0; il < c.layers; ++il) RIDGE_TRY(load_layer(b, il));
  last_modulation_.down =
      RIDGE_TRY(b.matrix("final_layer.adaln_modulation.1.weight", {.rows = c.rank, .cols = c.width}));
  last_modulation_.up =
      RIDGE_TRY(b.matrix("final_layer.adaln_modulation.2.weight", {.rows = 2 * c.width, .cols = c.rank}));
  last_ = RIDGE_TRY(b.matrix("final_layer.linear.weight", {.rows = c.patch_outputs(), .cols = c.width}));
  return load_adapter(b);
}

Result<void> Anima::load_loras(ModelBuilder& b, std::span<const LoraPair> loras) {
  for (const LoraPair& p : loras) {
    loras_.push_back({.down = RIDGE_TRY(b.matrix(p.down, {.rows = p.rank, .cols = p.cols})),
                      .up = RIDGE_TRY(b.matrix(p.up, {.rows = p.rows, .cols = p.rank})),
                      .scale = p.scale});
  }
  return {};
}

void Anima::place_loras(std::span<const LoraPair> loras) {
  if (loras.empty()) return;
  loras_of_.resize(tensors_.size());
  for (TensorId id = 0; id < tensors_.size(); ++id) {
    for (uint32_t n = 0; n < loras.size(); ++n) {
      if (tensors_[id].name == loras[n].weight) loras_of_[id].push_back(n);
    }
  }
}

Result<void> Anima::load_layer(ModelBuilder& b, uint32_t il) {
  const AnimaConfig& c = shape_;
  Layer w;
  auto square = [&](const char* name, uint32_t cols) {
    return b.matrix(fmt::format("blocks.{}.{}.weight", il, name), {.rows = c.width, .cols = cols});
  };
  auto norm = [&](const char* name) { return b.vector(fmt::format("blocks.{}.{}.weight", il, name), c.head_dim); };
  w.q = RIDGE_TRY(square("self_attn.q_proj", c.width));
  w.k = RIDGE_TRY(square("self_attn.k_proj", c.width));
  w.v = RIDGE_TRY(square("self_attn.v_proj", c.width));
  w.output = RIDGE_TRY(square("self_attn.output_proj", c.width));
  w.norms = {.q = RIDGE_TRY(norm("self_attn.q_norm")), .k = RIDGE_TRY(norm("self_attn.k_norm"))};
  w.cross_q = RIDGE_TRY(square("cross_attn.q_proj", c.width));
  w.cross_k = RIDGE_TRY(square("cross_attn.k_proj", c.context_width));
  w.cross_v = RIDGE_TRY(square("cross_attn.v_proj", c.context_width));
  w.cross_output = RIDGE_TRY(square("cross_attn.output_proj", c.width));
  w.cross_norms = {.q = RIDGE_TRY(norm("cross_attn.q_norm")), .k = RIDGE_TRY(norm("cross_attn.k_norm"))};
  w.up = RIDGE_TRY(b.matrix(fmt::format("blocks.{}.mlp.layer1.weight", il), {.rows = c.ffn, .cols = c.width}));
  w.down = RIDGE_TRY(b.matrix(fmt::format("blocks.{}.mlp.layer2.weight", il), {.rows = c.width, .cols = c.ffn}));
  constexpr const char* kParts[] = {"self_attn", "cross_attn", "mlp"};
  for (Part part : {kSelf, kCross, kFfn}) {
    const std::string name = fmt::format("blocks.{}.adaln_modulation_{}", il, kParts[part]);
    w.modulations[part].down = RIDGE_TRY(b.matrix(name + ".1.weight", {.rows = c.rank, .cols = c.width}));
    w.modulations[part].up = RIDGE_TRY(b.matrix(name + ".2.weight", {.rows = 3 * c.width, .cols = c.rank}));
  }
  layers_.push_back(w);
  return {};
}

Result<Anima::AdapterAttention> Anima::load_adapter_attention(ModelBuilder& b, const std::string& prefix,
                                                              const char* norm, uint32_t key_width) {
  const uint32_t width = shape_.context_width;
  const bool cross = std::string_view(norm) == "norm_cross_attn";
  const std::string name = prefix + (cross ? "cross_attn." : "self_attn.");
  AdapterAttention w;
  w.norm = RIDGE_TRY(b.vector(fmt::format("{}{}.weight", prefix, norm), width));
  w.q = RIDGE_TRY(b.matrix(name + "q_proj.weight", {.rows = width, .cols = width}));
  w.k = RIDGE_TRY(b.matrix(name + "k_proj.weight", {.rows = width, .cols = key_width}));
  w.v = RIDGE_TRY(b.matrix(name + "v_proj.weight", {.rows = width, .cols = key_width}));
  w.output = RIDGE_TRY(b.matrix(name + "o_proj.weight", {.rows = width, .cols = width}));
  w.norms = {.q = RIDGE_TRY(b.vector(name + "q_norm.weight", shape_.adapter_head_dim)),
             .k = RIDGE_TRY(b.vector(name + "k_norm.weight", shape_.adapter_head_dim))};
  return w;
}

Result<void> Anima::load_adapter(ModelBuilder& b) {
  const AnimaConfig& c = shape_;
  embedding_ = RIDGE_TRY(b.matrix("llm_adapter.embed.weight", {.rows = c.vocabulary, .cols = c.context_width}));
  for (uint32_t il = 0; il < c.adapter_layers; ++il) {
    const std::string prefix = fmt::format("llm_adapter.blocks.{}.", il);
    AdapterLayer w;
    w.self = RIDGE_TRY(load_adapter_attention(b, prefix, "norm_self_attn", c.context_width));
    w.cross = RIDGE_TRY(load_adapter_attention(b, prefix, "norm_cross_attn", c.text_width));
    w.ffn_norm = RIDGE_TRY(b.vector(prefix + "norm_mlp.weight", c.context_width));
    w.up = RIDGE_TRY(b.matrix(prefix + "mlp.0.weight", {.rows = c.adapter_ffn, .cols = c.context_width}));
    w.up_bias = RIDGE_TRY(b.vector(prefix + "mlp.0.bias", c.adapter_ffn));
    w.down = RIDGE_TRY(b.matrix(prefix + "mlp.2.weight", {.rows = c.context_width, .cols = c.adapter_ffn}));
    w.down_bias = RIDGE_TRY(b.vector(prefix + "mlp.2.bias", c.context_width));
    adapter_.push_back(w);
  }
  adapter_out_ = RIDGE_TRY(b.matrix("llm_adapter.out_proj.weight", {.rows = c.context_width, .cols = c.context_width}));
  adapter_out_bias_ = RIDGE_TRY(b.vector("llm_adapter.out_proj.bias", c.context_width));
  adapter_norm_ = RIDGE_TRY(b.vector("llm_adapter.norm.weight", c.context_width));
  return {};
}

void timestep_features(double t, std::span<float> out) {
  const size_t half = out.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const double frequency = d_pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
    out[i] = static_cast<float>(d_cos(t * frequency));
    out[half + i] = static_cast<float>(d_sin(t * frequency));
  }
}

void line_angles(Rows out) {
  const std::vector<double> frequencies = rope_frequencies({.rot = out.cols});
  for (size_t p = 0; p < out.rows; ++p) rope_table(frequencies, 1.0, p, out.row(p));
}

// Of head_dim / 2 pairs, a sixth of head_dim each belongs to row and column, and the first, the rest, to time. Rows and
// columns turn four times slower than trained for (the NTK rule): base 10000 · 4^(d / (d − 2)).
void grid_angles(uint32_t height, uint32_t width, Rows out) {
  const size_t dim = out.cols / 6 * 2, time_pairs = (out.cols - 2 * dim) / 2;
  const double d = static_cast<double>(dim);
  const std::vector<double> frequencies = rope_frequencies({.rot = dim, .base = 10000.0 * d_pow(4.0, d / (d - 2))});
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      float* row = out.row(size_t{y} * width + x);
      for (size_t pair = 0; pair < time_pairs; ++pair) {
        row[2 * pair] = 1;
        row[2 * pair + 1] = 0;
      }
      rope_table(frequencies, 1.0, y, row + 2 * time_pairs);
      rope_table(frequencies, 1.0, x, row + 2 * time_pairs + dim);
    }
  }
}

// Into a patch channel by channel; out of it pixel by pixel: the two orders differ.
void patchify(const AnimaConfig& c, std::span<const float> latent, uint32_t height, uint32_t width, Rows out) {
  const size_t p = c.patch, line = p * width;
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      float* row = out.row(y * width + x);
      for (size_t i = 0; i < c.patch_inputs(); ++i) {
        const size_t channel = i / (p * p), m = i / p % p, n = i % p;
        row[i] = channel < c.channels ? latent[(channel * p * height + p * y + m) * line + p * x + n] : 0;
      }
    }
  }
}

void unpatchify(const AnimaConfig& c, Rows patches, uint32_t height, uint32_t width, std::span<float> latent) {
  const size_t p = c.patch, line = p * width;
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const float* row = patches.row(y * width + x);
      for (size_t i = 0; i < c.patch_outputs(); ++i) {
        const size_t channel = i % c.channels, m = i / c.channels / p, n = i / c.channels % p;
        latent[(channel * p * height + p * y + m) * line + p * x + n] = row[i];
      }
    }
  }
}

}  // namespace ridge
