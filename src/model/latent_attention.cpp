#include "model/latent_attention.h"

#include <algorithm>

#include "base/units.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr size_t kLine = 16;  // floats of a cache line

// The parts of a thread's scratch, in floats from its beginning.
struct ScratchLayout {
  size_t packed = 0, turned = 0;  // panels of a head; a head's K transposed
  size_t expanded = 0, keys = 0, values = 0, scores = 0, weighted = 0, stats = 0;  // of a chunk, prompt tokens only
  size_t total = 0;
};

ScratchLayout scratch_layout(const LatentCall& c, uint32_t tokens) {
  ScratchLayout s;
  size_t end = 0;
  auto take = [&](size_t floats) {
    size_t at = end;
    end += round_up(floats, kLine);
    return at;
  };
  size_t k_bytes = c.kv_b ? panels_bytes(c.kv_b.type, c.nope, c.latent) : panels_bytes(c.k_b.type, c.latent, c.nope);
  size_t v_bytes = panels_bytes(c.kv_b ? c.kv_b.type : c.v_b.type, c.value, c.latent);
  s.packed = take((std::max(k_bytes, v_bytes) + 64) / sizeof(float));  // kernels may read one vector further
  s.turned = take(size_t{c.nope} * c.latent);
  s.expanded = take(kAttentionChunk * std::max(c.nope, c.value));
  s.keys = take(kAttentionChunk * size_t{c.nope + c.rope});
  s.values = take(kAttentionChunk * size_t{c.value});
  s.scores = take(kAttentionChunk * size_t{tokens});
  s.weighted = take(size_t{tokens} * c.value);
  s.stats = take(2 * size_t{tokens});
  s.total = end;
  return s;
}

// One worker's view of the work: its scratch and the heads' weights.
class Worker {
 public:
  Worker(const LatentContext& context, const LatentSlice& slice, int worker)
      : x_(context), c_(context.call), slice_(slice), layout_(scratch_layout(context.call, context.shape.tokens)) {
    size_t workers = static_cast<size_t>(context.pool.size()), w = static_cast<size_t>(worker);
    scratch_ = context.scratch.data() + w * (context.scratch.size() / workers);
    attention_ = context.attention.data() + w * (context.attention.size() / workers);
  }

  void absorbed(uint32_t begin, uint32_t end, const LatentTemps& temps);
  void expanded(uint32_t head, uint64_t base, size_t count, const LatentTemps& temps);

 private:
  float* part(size_t offset) const { return scratch_ + offset; }
  const uint8_t* panels(const HeadRows& weight, size_t first, size_t rows) const;
  const uint8_t* k_panels(uint32_t head) const;
  const uint8_t* v_panels(uint32_t head) const;
  const uint8_t* turned(uint32_t head) const;
  void multiply(Type type, const uint8_t* panels, Rows x, const Q8Rows* x8, Rows out) const;
  void expand_keys(uint32_t head, size_t count, const LatentTemps& temps) const;
  void expand_values(uint32_t head, size_t count, const LatentTemps& temps) const;

  const LatentContext& x_;
  const LatentCall& c_;
  const LatentSlice& slice_;
  ScratchLayout layout_;
  float* scratch_;
  float* attention_;
};

// Rows [first, first + rows) as panels: where they are, or rearranged into the scratch.
const uint8_t* Worker::panels(const HeadRows& weight, size_t first, size_t rows) const {
  if (weight.layout == Layout::panels) return weight.data + first / kPanelRows * panel_bytes(weight.type, weight.cols);
  size_t stride = row_bytes(weight.type, weight.cols), bytes = panel_bytes(weight.type, weight.cols);
  uint8_t* out = reinterpret_cast<uint8_t*>(part(layout_.packed));
  for (size_t row = 0; row < rows; row += kPanelRows) {
    x_.kernels.pack[static_cast<size_t>(weight.type)]({.type = weight.type,
                                                       .rows = weight.data + (first + row) * stride,
                                                       .row_stride = stride,
                                                       .row_count = std::min(kPanelRows, rows - row),
                                                       .cols = weight.cols,
                                                       .panel = out + row / kPanelRows * bytes});
  }
  return out;
}

const uint8_t* Worker::k_panels(uint32_t head) const {
  size_t first = size_t{head - slice_.head_begin} * slice_.k_stride;
  return panels(slice_.k, first, slice_.joint ? c_.nope : c_.latent);
}

const uint8_t* Worker::v_panels(uint32_t head) const {
  return panels(slice_.v, size_t{head - slice_.head_begin} * slice_.v_stride + slice_.v_first, c_.value);
}

// The head's K transposed, as F32 panels.
const uint8_t* Worker::turned(uint32_t head) const {
  const uint8_t* k = k_panels(head);
  uint32_t rows = slice_.joint ? c_.nope : c_.latent;
  x_.kernels.transpose(
      {.type = slice_.k.type, .panels = k, .rows = rows, .cols = slice_.k.cols, .out = part(layout_.turned)});
  return reinterpret_cast<const uint8_t*>(part(layout_.turned));
}

// out = x · weightᵀ; int8 if x8 is given.
void Worker::multiply(Type type, const uint8_t* panels, Rows x, const Q8Rows* x8, Rows out) const {
  MatmulArgs args{};
  args.panels = panels;
  args.rows = out.cols;
  args.cols = x.cols;
  args.tokens = x.rows;
  args.x = x.data;
  args.x_stride = x.stride;
  if (x8 != nullptr) args.x8 = *x8;
  args.out = out.data;
  args.out_stride = out.stride;
  size_t t = static_cast<size_t>(type);
  (x8 != nullptr ? x_.kernels.matmul_q8[t] : x_.kernels.matmul_float[t])(args);
}

// Heads [begin, end), all tokens: the queries go to the latents, the latents' weighted sums to the heads' values.
void Worker::absorbed(uint32_t begin, uint32_t end, const LatentTemps& temps) {
  size_t key = c_.latent + c_.rope, head_dim = c_.nope + c_.rope;
  for (uint32_t h = begin; h < end; ++h) {
    Rows q = x_.q.slice_cols(h * head_dim, c_.nope), to = temps.queries.slice_cols(h * key, c_.latent);
    if (slice_.joint) {
      multiply(Type::F32, turned(h), q, nullptr, to);
    } else {
      multiply(slice_.k.type, k_panels(h), q, nullptr, to);
    }
    for (size_t t = 0; t < q.rows; ++t) std::copy_n(q.row(t) + c_.nope, c_.rope, to.row(t) + c_.latent);
  }
  for (size_t t = 0; t < x_.q.rows; ++t) {
    AttentionArgs a{};
    a.q = temps.queries.row(t) + begin * key;
    a.tokens = 1;
    a.group = end - begin;
    a.q_stride = key;
    a.key_dim = key;
    a.value_dim = c_.latent;
    a.kv_type = x_.cache.type();
    a.k = x_.cache.key(c_.layer, 0);
    a.v = x_.cache.value(c_.layer, 0);
    a.capacity = x_.cache.capacity(c_.layer);
    a.end = x_.shape.position + t + 1;
    a.scale = c_.scale;
    a.out = temps.mixed.row(t) + size_t{begin} * c_.latent;
    a.out_stride = c_.latent;
    a.scratch = attention_;
    x_.kernels.attention(a);
  }
  for (uint32_t h = begin; h < end; ++h) {
    multiply(slice_.v.type, v_panels(h), temps.mixed.slice_cols(size_t{h} * c_.latent, c_.latent), nullptr,
             x_.out.slice_cols(size_t{h} * c_.value, c_.value));
  }
}

// Keys of the chunk as panels [16 positions][nope + rope][16].
void Worker::expand_keys(uint32_t head, size_t count, const LatentTemps& temps) const {
  Rows latents = temps.latents.slice_rows(0, count);
  Rows k(part(layout_.expanded), count, c_.nope);
  if (slice_.joint) {
    const Q8Rows* x8 = uses_int8(slice_.k.type, x_.exact) ? &temps.latents8 : nullptr;
    multiply(slice_.k.type, k_panels(head), latents, x8, k);
  } else {
    multiply(Type::F32, turned(head), latents, nullptr, k);
  }
  size_t dim = c_.nope + c_.rope;
  float* panels = part(layout_.keys);
  for (size_t p = 0; p < count; ++p) {
    float* out = panels + p / kPanelRows * kPanelRows * dim + p % kPanelRows;
    const float *nope = k.row(p), *rope = temps.ropes.row(p);
    for (size_t i = 0; i < c_.nope; ++i) out[kPanelRows * i] = nope[i];
    for (size_t i = 0; i < c_.rope; ++i) out[kPanelRows * (c_.nope + i)] = rope[i];
  }
}

// Values of the chunk as panels [value / 16][count][16]: the weights of a product over positions.
void Worker::expand_values(uint32_t head, size_t count, const LatentTemps& temps) const {
  Rows v(part(layout_.expanded), count, c_.value);
  const Q8Rows* x8 = uses_int8(slice_.v.type, x_.exact) ? &temps.latents8 : nullptr;
  multiply(slice_.v.type, v_panels(head), temps.latents.slice_rows(0, count), x8, v);
  float* panels = part(layout_.values);
  for (size_t i = 0; i < c_.value; i += kPanelRows) {
    for (size_t p = 0; p < count; ++p) std::copy_n(v.row(p) + i, kPanelRows, panels + i * count + p * kPanelRows);
  }
}

// One head, positions [base, base + count) of the cache, whose latents are in temps.
void Worker::expanded(uint32_t head, uint64_t base, size_t count, const LatentTemps& temps) {
  expand_keys(head, count, temps);
  expand_values(head, count, temps);
  uint64_t position = x_.shape.position;
  size_t first = base > position ? base - position : 0, dim = c_.nope + c_.rope;  // the first token that sees any of it
  size_t tokens = x_.q.rows - first;
  Rows scores(part(layout_.scores), tokens, count, kAttentionChunk), weighted(part(layout_.weighted), tokens, c_.value);
  Rows q = x_.q.slice_rows(first, tokens).slice_cols(head * dim, dim);
  multiply(Type::F32, reinterpret_cast<const uint8_t*>(part(layout_.keys)), q, nullptr, scores);
  float *maxima = part(layout_.stats), *sums = maxima + tokens;
  for (size_t t = 0; t < tokens; ++t) {
    size_t seen = std::min<uint64_t>(count, position + first + t + 1 - base);
    sums[t] = x_.kernels.soften(scores.row(t), seen, c_.scale, maxima + t);
    // What a token does not see weighs nothing: fma(v, 0, sum) is the sum, for the finite values of real keys.
    std::fill(scores.row(t) + seen, scores.row(t) + count, 0.0f);
  }
  multiply(Type::F32, reinterpret_cast<const uint8_t*>(part(layout_.values)), scores, nullptr, weighted);
  for (size_t t = 0; t < tokens; ++t) {
    float* merged = temps.merged.row(first + t) + 2 * head;
    float* out = x_.out.row(first + t) + size_t{head} * c_.value;
    x_.kernels.merge_chunk(weighted.row(t), c_.value, maxima[t], sums[t], merged, out);
    if (position + first + t >= base + count) continue;  // it sees the next chunk as well
    for (size_t i = 0; i < c_.value; ++i) out[i] = out[i] / merged[1];
  }
}

void load_chunk(const LatentContext& x, uint64_t base, size_t count, const LatentTemps& temps) {
  x.pool.split(count, 4, [&](size_t begin, size_t end, int) {
    for (size_t p = begin; p < end; ++p) {
      x.cache.read_value(x.call.layer, 0, base + p, temps.latents.row_span(p));
      x.cache.read_key(x.call.layer, 0, base + p, x.call.latent, temps.ropes.row_span(p));
      const Q8Rows& q8 = temps.latents8;
      if (q8.q == nullptr) continue;
      x.kernels.quantize(temps.latents.row(p), x.call.latent, q8.q + p * q8.q_stride, q8.d + p * q8.d_stride,
                         q8.sums + 2 * p * q8.d_stride);
    }
  });
}

}  // namespace

size_t latent_scratch_floats(const LatentCall& call, uint32_t tokens) { return scratch_layout(call, tokens).total; }

void attend_absorbed(const LatentContext& x, const LatentSlice& slice, const LatentTemps& temps) {
  x.pool.split(slice.head_end - slice.head_begin, 1, [&](size_t begin, size_t end, int worker) {
    Worker(x, slice, worker)
        .absorbed(slice.head_begin + static_cast<uint32_t>(begin), slice.head_begin + static_cast<uint32_t>(end),
                  temps);
  });
}

void attend_expanded(const LatentContext& x, const LatentSlice& slice, const LatentTemps& temps) {
  uint64_t end = x.shape.position + x.shape.tokens;
  for (uint64_t base = 0; base < end; base += kAttentionChunk) {
    size_t count = std::min<uint64_t>(kAttentionChunk, end - base);
    load_chunk(x, base, count, temps);
    x.pool.split(slice.head_end - slice.head_begin, 1, [&](size_t first, size_t last, int worker) {
      Worker w(x, slice, worker);
      for (size_t h = first; h < last; ++h) w.expanded(slice.head_begin + static_cast<uint32_t>(h), base, count, temps);
    });
  }
}

}  // namespace ridge
