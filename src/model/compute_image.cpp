// The operations of diffusion transformers (ops.h), on real numbers. Attention without order runs on the kernel of
// causal attention: the rows of a tile stand where the heads of one token do, and all of them see the same positions.
#include <algorithm>
#include <array>

#include "base/units.h"
#include "kernels/math.h"
#include "model/compute.h"

namespace ridge {
namespace {

// Rows of a tile: as many as compute_attention.cpp takes, for the same reason.
constexpr size_t kTileRows = 48;

uint64_t worker_floats(size_t head_dim) { return round_up(attention_scratch_floats(kTileRows, head_dim), 16); }

}  // namespace

uint64_t attend_floats(uint32_t head_dim, int workers) {
  return static_cast<uint64_t>(workers) * worker_floats(head_dim);
}

void Compute::layer_norm(Rows x, Rows scale, Rows shift, float eps, Rows out) {
  StageTimer timer(m_.profile, Stage::norm);
  if (failed()) return;
  each_token(x.rows,
             [&](size_t t) { m_.kernels->layer_norm(x.row(t), scale.data, shift.data, x.cols, eps, out.row(t)); });
}

void Compute::gelu(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  each_token(x.rows, [&](size_t t) { m_.kernels->gelu(x.cols, x.row(t)); });
}

void Compute::silu(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  each_token(x.rows, [&](size_t t) {
    for (float& v : x.row_span(t)) v = silu_f32(v);
  });
}

void Compute::add_scaled(Rows into, Rows factors, Rows x) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  each_token(into.rows, [&](size_t t) { m_.kernels->add_scaled(factors.data, x.row(t), x.cols, into.row(t)); });
}

void Compute::copy(Rows x, Rows out) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  for (size_t t = 0; t < x.rows; ++t) std::copy_n(x.row(t), x.cols, out.row(t));
}

void Compute::rotate(Rows x, Rows angles, uint32_t heads) {
  StageTimer timer(m_.profile, Stage::rope);
  if (failed()) return;
  RIDGE_CHECK(x.rows <= angles.rows && x.cols == heads * angles.cols, "there is an angle for every row");
  each_token(x.rows, [&](size_t t) {
    for (size_t h = 0; h < heads; ++h) m_.kernels->rope_neox(x.row(t) + h * angles.cols, angles.cols, angles.row(t));
  });
}

void Compute::pack_keys(Rows k, Rows v, uint32_t heads, Rows packed) {
  StageTimer timer(m_.profile, Stage::attention);
  if (failed()) return;
  const size_t dim = k.cols / heads, values = packed_floats(k.rows, dim) / 2;
  constexpr size_t kind = static_cast<size_t>(KvType::f32);
  each_token(k.rows, [&](size_t t) {
    for (uint32_t h = 0; h < heads; ++h) {
      m_.kernels->store_key[kind](k.row(t) + h * dim, dim, packed.row(h), t);
      m_.kernels->store_value[kind](v.row(t) + h * dim, dim, packed.row(h) + values, t);
    }
  });
}

void Compute::attend(const AttendCall& call, Rows q, Rows packed, Rows out) {
  StageTimer timer(m_.profile, Stage::attention);
  if (failed()) return;
  const size_t dim = call.head_dim, floats = packed_floats(call.keys, dim), scratch = worker_floats(dim);
  RIDGE_CHECK(m_.attention.size() >= static_cast<size_t>(m_.pool->size()) * scratch, "scratch as attend_floats() says");
  std::array<float, kTileRows> sinks;
  sinks.fill(call.sink.value_or(0));
  const size_t tiles = (q.rows + kTileRows - 1) / kTileRows;
  // Head by head, so that the workers share its keys and values in the last cache.
  m_.pool->share(tiles * call.heads, 1, [&](size_t begin, size_t end, int worker) {
    for (size_t unit = begin; unit < end; ++unit) {
      const size_t head = unit / tiles, first = unit % tiles * kTileRows;
      AttentionArgs a{};
      a.q = q.row(first) + head * dim;
      a.tokens = 1;
      a.group = std::min(kTileRows, q.rows - first);
      a.q_stride = q.stride;
      a.key_dim = a.value_dim = dim;
      a.kv_type = KvType::f32;
      a.k = packed.row(head);
      a.v = packed.row(head) + floats / 2;
      a.capacity = round_up(call.keys, kPanelRows);
      a.end = call.keys;
      a.scale = call.scale;
      a.sinks = call.sink ? sinks.data() : nullptr;
      a.out = out.row(first) + head * dim;
      a.out_stride = out.stride;
      a.scratch = m_.attention.data() + static_cast<size_t>(worker) * scratch;
      m_.kernels->attention(a);
    }
  });
}

}  // namespace ridge
