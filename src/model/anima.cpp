#include "model/anima.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/math.h"

namespace ridge {
namespace {

std::string layer_part(uint32_t layer, std::string_view part) { return fmt::format("blocks.{}.{}", layer, part); }
std::string adapter_part(uint32_t layer, std::string_view part) { return fmt::format("adapter.{}.{}", layer, part); }

constexpr float kEps = 1e-6f;  // of every norm

AttendCall attend_call(uint32_t heads, uint32_t head_dim, uint32_t keys) {
  return {.heads = heads,
          .head_dim = head_dim,
          .keys = keys,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
          .sink = {}};
}

Rows slice(Rows x, const Segment& s) { return x.slice_rows(s.begin, s.count); }

}  // namespace

TextKeys TextKeys::of(const AnimaConfig& config, std::vector<uint32_t> rows) {
  TextKeys keys;
  keys.rows = std::move(rows);
  keys.offsets.push_back(0);
  for (uint32_t n : keys.rows) {
    keys.offsets.push_back(keys.offsets.back() + config.heads * packed_floats(n, config.head_dim));
  }
  keys.layers = Rows(nullptr, config.layers, keys.offsets.back());
  return keys;
}

Rows TextKeys::packed(const AnimaConfig& config, uint32_t layer, uint32_t prompt) const {
  return Rows(layers.row(layer) + offsets[prompt], config.heads, packed_floats(rows[prompt], config.head_dim));
}

// out = W x (+ bias), then out += scale · B (A x) for each LoRA in turn. The block of W has A and B as well, so that
// what is added takes no reads of its own; the activations take [rows, rank] and another [rows, outputs].
void Anima::linear(Ops& ops, Rows x, std::initializer_list<LinearPart> parts) const {
  ops.linear(x, parts);
  if (loras_.empty()) return;
  for (const LinearPart& part : parts) {
    for (uint32_t n : loras_of_[part.weight.id]) {
      const Adapter& a = loras_[n];
      Frame frame(ops);
      Rows low = ops.temp(x.rows, a.down.rows), more = ops.temp(x.rows, a.up.rows);
      ops.linear(x, {{.weight = a.down, .out = low}});
      ops.scale(low, a.scale);
      ops.linear(low, {{.weight = a.up, .out = more}});
      ops.add(part.out, more);
    }
  }
}

void Anima::forward(Ops&) const { RIDGE_CHECK(false, "a pass of Anima is condition() or denoise()"); }

// ---- condition ------------------------------------------------------------------------------------------------------

void Anima::condition(Ops& ops, const ConditionPass& pass) const {
  adapt(ops, pass);
  for (uint32_t il = 0; il < shape_.layers; ++il) {
    const Layer& w = layers_[il];
    Frame frame(ops);
    ops.part(layer_part(il, "text"));
    Rows k = ops.temp(pass.context.rows, shape_.width), v = ops.temp(pass.context.rows, shape_.width);
    linear(ops, pass.context, {{.weight = w.cross_k, .out = k}, {.weight = w.cross_v, .out = v}});
    ops.rms_norm_heads(k, w.cross_norms.k, kEps, shape_.heads);
    for (uint32_t p = 0; p < pass.prompts.size(); ++p) {
      ops.pack_keys(slice(k, pass.prompts[p]), slice(v, pass.prompts[p]), shape_.heads,
                    pass.keys.packed(shape_, il, p));
    }
  }
  modulate(ops, pass);
}

void Anima::adapt(Ops& ops, const ConditionPass& pass) const {
  Frame frame(ops);
  Rows x = ops.embed(embedding_);
  for (uint32_t il = 0; il < shape_.adapter_layers; ++il) {
    const AdapterLayer& w = adapter_[il];
    ops.part(adapter_part(il, "self"));
    adapter_attention(ops, w.self, pass, x, {}, pass.prompts);
    ops.part(adapter_part(il, "cross"));
    adapter_attention(ops, w.cross, pass, x, pass.states, pass.texts);
    ops.part(adapter_part(il, "ffn"));
    Frame inner(ops);
    Rows y = ops.rms_norm(x, w.ffn_norm, kEps);
    Rows hidden = ops.temp(x.rows, shape_.adapter_ffn);
    linear(ops, y, {{.weight = w.up, .bias = w.up_bias, .out = hidden}});
    ops.gelu(hidden);
    linear(ops, hidden, {{.weight = w.down, .bias = w.down_bias, .out = y}});
    ops.add(x, y);
  }
  ops.part("adapter.out");
  Rows y = ops.temp(x.rows, shape_.context_width);
  linear(ops, x, {{.weight = adapter_out_, .bias = adapter_out_bias_, .out = y}});
  ops.scale_rows(ops.rms_norm(y, adapter_norm_, kEps), pass.weights, pass.context);
}

// x += attention of x over itself, or over keys_of. Queries and keys are rotated by their own positions.
void Anima::adapter_attention(Ops& ops, const AdapterAttention& w, const ConditionPass& pass, Rows x, Rows keys_of,
                              const std::vector<Segment>& key_rows) const {
  Frame frame(ops);
  const uint32_t heads = shape_.adapter_heads, dim = shape_.adapter_head_dim;
  const bool self = keys_of.rows == 0;
  Rows y = ops.rms_norm(x, w.norm, kEps);
  Rows q = ops.temp(x.rows, size_t{heads} * dim);
  const size_t keys = self ? x.rows : keys_of.rows;
  Rows k = ops.temp(keys, size_t{heads} * dim), v = ops.temp(keys, size_t{heads} * dim);
  if (self) {
    linear(ops, y, {{.weight = w.q, .out = q}, {.weight = w.k, .out = k}, {.weight = w.v, .out = v}});
  } else {
    linear(ops, y, {{.weight = w.q, .out = q}});
    linear(ops, keys_of, {{.weight = w.k, .out = k}, {.weight = w.v, .out = v}});
  }
  ops.rms_norm_heads(q, w.norms.q, kEps, heads);
  ops.rms_norm_heads(k, w.norms.k, kEps, heads);
  Rows mixed = ops.temp(x.rows, size_t{heads} * dim);
  for (size_t p = 0; p < pass.prompts.size(); ++p) {
    Frame inner(ops);
    Rows q_rows = slice(q, pass.prompts[p]), k_rows = slice(k, key_rows[p]);
    ops.rotate(q_rows, pass.angles, heads);
    ops.rotate(k_rows, pass.angles, heads);
    Rows packed = ops.temp(heads, packed_floats(k_rows.rows, dim));
    ops.pack_keys(k_rows, slice(v, key_rows[p]), heads, packed);
    ops.attend(attend_call(heads, dim, key_rows[p].count), q_rows, packed, slice(mixed, pass.prompts[p]));
  }
  linear(ops, mixed, {{.weight = w.output, .out = y}});
  ops.add(x, y);
}

// Of every part and step: W2 · (W1 · SiLU(emb)) + lora, as (shift, scale, gate).
void Anima::modulate(Ops& ops, const ConditionPass& pass) const {
  Frame frame(ops);
  const size_t steps = pass.timesteps.rows, width = shape_.width;
  ops.part("adaln");
  Rows lora = ops.temp(steps, 3 * width);
  {
    Frame inner(ops);
    Rows hidden = ops.temp(steps, width);
    linear(ops, pass.timesteps, {{.weight = time_1_, .out = hidden}});
    ops.silu(hidden);
    linear(ops, hidden, {{.weight = time_2_, .out = lora}});
  }
  Rows emb = ops.rms_norm(pass.timesteps, time_norm_, kEps);
  ops.silu(emb);
  Rows low = ops.temp(steps, shape_.rank);
  auto one = [&](const Modulation& w, Rows out) {
    linear(ops, emb, {{.weight = w.down, .out = low}});
    linear(ops, low, {{.weight = w.up, .out = out}});
    ops.add(out, lora.slice_cols(0, out.cols));
  };
  for (uint32_t il = 0; il < shape_.layers; ++il) {
    ops.part(layer_part(il, "adaln"));
    for (Part part : {kSelf, kCross, kFfn}) {
      one(layers_[il].modulations[part], pass.modulations.slice_cols((3 * size_t{il} + part) * 3 * width, 3 * width));
    }
  }
  ops.part("last.adaln");
  one(last_modulation_, pass.modulations.slice_cols(9 * size_t{shape_.layers} * width, 2 * width));
}

void Anima::finish_modulations(Rows modulations) const {
  const size_t width = shape_.width, parts = 3 * size_t{shape_.layers} + 1;  // the last without a gate
  for (size_t step = 0; step < modulations.rows; ++step) {
    for (size_t part = 0; part < parts; ++part) {
      float* scale = modulations.row(step) + 3 * part * width + width;
      for (size_t i = 0; i < width; ++i) scale[i] += 1;
    }
  }
}

// ---- denoise --------------------------------------------------------------------------------------------------------

Rows Anima::modulation_of(Rows modulation, uint32_t layer, Part part) const {
  const size_t width = shape_.width, first = (3 * size_t{layer} + part) * 3 * width;
  const size_t count = layer == shape_.layers ? 2 : 3;
  return Rows(modulation.data + first, count, width);
}

Rows Anima::normed(Ops& ops, Rows x, Rows modulation) const {
  Rows y = ops.temp(x.rows, x.cols);
  ops.layer_norm(x, modulation.slice_rows(1, 1), modulation.slice_rows(0, 1), kEps, y);
  return y;
}

void Anima::denoise(Ops& ops, const DenoisePass& pass) const {
  Rows x = ops.temp(pass.patches.rows, shape_.width);
  blocks(ops, pass, x);
  finish(ops, pass, x);
}

void Anima::blocks(Ops& ops, const DenoisePass& pass) const { blocks(ops, pass, pass.hidden); }
void Anima::finish(Ops& ops, const DenoisePass& pass) const { finish(ops, pass, pass.hidden); }

bool Anima::begin_part(Ops& ops, const DenoisePass& pass, const std::string& name) const {
  ops.part(name);
  return pass.watch == nullptr || pass.watch->part(name);
}

void Anima::blocks(Ops& ops, const DenoisePass& pass, Rows x) const {
  if (!begin_part(ops, pass, "first")) return;
  linear(ops, pass.patches, {{.weight = first_, .out = x}});
  for (uint32_t il = 0; il < shape_.layers; ++il) {
    if (!begin_part(ops, pass, layer_part(il, "self"))) return;
    self_part(ops, layers_[il], pass, modulation_of(pass.modulation, il, kSelf), x);
    if (!begin_part(ops, pass, layer_part(il, "cross"))) return;
    cross_part(ops, il, pass, modulation_of(pass.modulation, il, kCross), x);
    if (!begin_part(ops, pass, layer_part(il, "ffn"))) return;
    ffn_part(ops, il, pass, modulation_of(pass.modulation, il, kFfn), x);
  }
}

void Anima::finish(Ops& ops, const DenoisePass& pass, Rows x) const {
  if (!begin_part(ops, pass, "last")) return;
  linear(ops, normed(ops, x, modulation_of(pass.modulation, shape_.layers, kSelf)),
         {{.weight = last_, .out = pass.velocity}});
}

void Anima::self_part(Ops& ops, const Layer& w, const DenoisePass& pass, Rows modulation, Rows x) const {
  Frame frame(ops);
  Rows y = normed(ops, x, modulation);
  Rows q = ops.temp(x.rows, x.cols), k = ops.temp(x.rows, x.cols), v = ops.temp(x.rows, x.cols);
  linear(ops, y, {{.weight = w.q, .out = q}, {.weight = w.k, .out = k}, {.weight = w.v, .out = v}});
  ops.rms_norm_heads(q, w.norms.q, kEps, shape_.heads);
  ops.rms_norm_heads(k, w.norms.k, kEps, shape_.heads);
  const uint32_t rows = static_cast<uint32_t>(pass.angles.rows);
  Rows packed = ops.temp(shape_.heads, packed_floats(rows, shape_.head_dim));
  for (const Segment& s : pass.segments) {
    ops.rotate(slice(q, s), pass.angles, shape_.heads);
    ops.rotate(slice(k, s), pass.angles, shape_.heads);
    ops.pack_keys(slice(k, s), slice(v, s), shape_.heads, packed);
    // y has been read: what is mixed goes there.
    ops.attend(attend_call(shape_.heads, shape_.head_dim, rows), slice(q, s), packed, slice(y, s));
  }
  linear(ops, y, {{.weight = w.output, .out = q}});
  ops.add_scaled(x, modulation.slice_rows(2, 1), q);
}

void Anima::cross_part(Ops& ops, uint32_t il, const DenoisePass& pass, Rows modulation, Rows x) const {
  const Layer& w = layers_[il];
  Frame frame(ops);
  Rows y = normed(ops, x, modulation);
  Rows q = ops.temp(x.rows, x.cols);
  linear(ops, y, {{.weight = w.cross_q, .out = q}});
  ops.rms_norm_heads(q, w.cross_norms.q, kEps, shape_.heads);
  for (const Segment& s : pass.segments) {
    const uint32_t rows = pass.keys.rows[s.prompt];
    AttendCall call = attend_call(shape_.heads, shape_.head_dim, rows);
    // The zero rows behind the text have zero keys and values: each adds e^0 to the softmax and nothing to the output.
    if (rows < kContextRows) call.sink = static_cast<float>(d_log(static_cast<double>(kContextRows - rows)));
    ops.attend(call, slice(q, s), pass.keys.packed(shape_, il, s.prompt), slice(y, s));
  }
  linear(ops, y, {{.weight = w.cross_output, .out = q}});
  ops.add_scaled(x, modulation.slice_rows(2, 1), q);
}

void Anima::ffn_part(Ops& ops, uint32_t il, const DenoisePass& pass, Rows modulation, Rows x) const {
  const Layer& w = layers_[il];
  Frame frame(ops);
  Rows y = normed(ops, x, modulation);
  Rows hidden = ops.temp(x.rows, shape_.ffn);
  if (pass.watch != nullptr) pass.watch->ffn_input(il, FfnMatrix::up, y);
  linear(ops, y, {{.weight = w.up, .out = hidden}});
  ops.gelu(hidden);
  if (pass.watch != nullptr) pass.watch->ffn_input(il, FfnMatrix::down, hidden);
  linear(ops, hidden, {{.weight = w.down, .out = y}});
  ops.add_scaled(x, modulation.slice_rows(2, 1), y);
}

}  // namespace ridge
