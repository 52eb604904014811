#include "model/attend.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace ridge {
namespace {

// Rows of a tile: as many as compute_attention.cpp takes, for the same reason.
constexpr size_t kTileRows = 48;

uint64_t worker_floats(size_t head_dim) { return round_up(attention_scratch_floats(kTileRows, head_dim), 16); }

}  // namespace

uint64_t attend_floats(uint32_t head_dim, int workers) {
  return static_cast<uint64_t>(workers) * worker_floats(head_dim);
}

void pack_rows(const Kernels& kernels, ThreadPool& pool, Rows k, Rows v, uint32_t heads, Rows packed) {
  const size_t dim = k.cols / heads, values = packed_floats(k.rows, dim) / 2;
  constexpr size_t kind = static_cast<size_t>(KvType::f32);
  pool.share(k.rows, kPanelRows, [&](size_t begin, size_t end, int) {
    for (size_t t = begin; t < end; ++t) {
      for (uint32_t h = 0; h < heads; ++h) {
        kernels.store_key[kind](k.row(t) + h * dim, dim, packed.row(h), t);
        kernels.store_value[kind](v.row(t) + h * dim, dim, packed.row(h) + values, t);
      }
    }
  });
}

void attend_rows(const Kernels& kernels, ThreadPool& pool, std::span<float> scratch, const AttendCall& call, Rows q,
                 Rows packed, Rows out) {
  const size_t dim = call.head_dim, floats = packed_floats(call.keys, dim), own = worker_floats(dim);
  RIDGE_CHECK(scratch.size() >= static_cast<size_t>(pool.size()) * own, "scratch as attend_floats() says");
  std::array<float, kTileRows> sinks;
  sinks.fill(call.sink.value_or(0));
  const size_t tiles = (q.rows + kTileRows - 1) / kTileRows;
  // Head by head, so that the workers share its keys and values in the last cache.
  pool.share(tiles * call.heads, 1, [&](size_t begin, size_t end, int worker) {
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
      a.scratch = scratch.data() + static_cast<size_t>(worker) * own;
      kernels.attention(a);
    }
  });
}

}  // namespace ridge
