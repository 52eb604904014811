// Compute::attention: how the work of one layer's attention is cut among the workers. Nothing here changes a result;
// the arithmetic is that of AttentionArgs (kernels.h).
//
// Many tokens are cut into tiles of one key/value head × some tokens, so that a tile reads each chunk of keys and
// values once for all its rows. A single token has only its key/value heads to share out, of which Gemma has one: there
// the chunks of positions are shared out as well, and merged from left to right afterwards.
#include <algorithm>
#include <atomic>

#include "base/units.h"
#include "model/compute.h"

namespace ridge {
namespace {

// Rows (heads of tokens) of a tile. With 48 of 128 floats a chunk of 256 positions from memory feeds 12 MFLOP, 10 to 20
// times what the memory can deliver it in; more rows would leave the workers unevenly loaded.
constexpr size_t kTileRows = 48;
// Rows that still fill the registers of every kernel.
constexpr size_t kFewRows = 12;
// So many units per worker leave little to wait for at the end.
constexpr size_t kUnitsPerWorker = 4;

constexpr size_t kLineFloats = 16;

size_t tile_tokens(size_t group) { return std::max<size_t>(1, kTileRows / group); }

size_t worker_floats(const ModelConfig& config, const KvLayer& layer) {
  size_t group = config.heads / std::max(1u, layer.kv_heads);
  return round_up(attention_scratch_floats(tile_tokens(group) * group, layer.key_dim), kLineFloats);
}

uint64_t most_chunks(uint64_t positions) { return positions / kAttentionChunk + 2; }

// What all calls of the kernel for one layer of one pass have in common.
struct Job {
  const Machinery& m;
  const AttentionCall& call;
  Rows q, out;
  uint64_t position;  // of the first token
  const float* sinks;
  size_t group, worker_floats;

  size_t tokens() const { return q.rows; }
  // What the first token sees begins there.
  uint64_t first_position() const {
    return call.window != 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  }
  size_t workers() const { return static_cast<size_t>(m.pool->size()); }
  float* scratch(size_t worker) const { return m.attention.data() + worker * worker_floats; }
  std::span<float> partials() const { return m.attention.subspan(workers() * worker_floats); }

  // `count` tokens from the first-th, for one key/value head.
  AttentionArgs args(size_t head, size_t first, size_t count, size_t worker) const {
    KvCache& cache = *m.cache;
    AttentionArgs a{};
    a.q = q.row(first) + head * group * call.key_dim;
    a.tokens = count;
    a.group = group;
    a.q_stride = call.key_dim;
    a.q_token_stride = q.stride;
    a.key_dim = call.key_dim;
    a.value_dim = call.value_dim;
    a.kv_type = cache.type();
    a.k = cache.key(call.layer, static_cast<uint32_t>(head));
    a.v = cache.value(call.layer, static_cast<uint32_t>(head));
    a.capacity = cache.capacity(call.layer);
    a.end = position + first + 1;
    a.window = call.window;
    a.scale = call.scale;
    a.softcap = call.softcap;
    a.sinks = sinks == nullptr ? nullptr : sinks + head * group;
    a.out = out.row(first) + head * group * call.value_dim;
    a.out_stride = call.value_dim;
    a.out_token_stride = out.stride;
    a.scratch = scratch(worker);
    return a;
  }

  // Says that this worker goes on with position `first` of a head.
  void fetch_next(AttentionArgs& a, size_t head, uint64_t first) const {
    const size_t bytes = kv_bytes(a.kv_type, a.key_dim), slot = first % a.capacity / kPanelRows * kPanelRows;
    const auto* keys = static_cast<const uint8_t*>(m.cache->key(call.layer, static_cast<uint32_t>(head)));
    a.next_keys = keys + slot * bytes;
    a.next_keys_bytes = std::min<size_t>(kAttentionChunk, a.capacity - slot) * bytes;
  }
};

// What a worker does now and, if next < count, what it will do then.
struct Turn {
  size_t unit, next, worker;
  bool first;  // of this worker
};

// Units 0 … count − 1, the next one to whoever is free. A worker takes a unit one turn ahead, to know what to fetch.
void share_out(ThreadPool& pool, size_t count, FunctionRef<void(const Turn&)> work) {
  std::atomic<size_t> taken{0};
  const auto take_turns = [&](int worker) {
    Turn turn{taken.fetch_add(1), 0, static_cast<size_t>(worker), true};
    while (turn.unit < count) {
      turn.next = taken.fetch_add(1);
      work(turn);
      turn = {turn.next, 0, turn.worker, false};
    }
  };
  if (count == 1) return take_turns(0);
  pool.run(take_turns);
}

void attend_tiles(const Job& job, size_t tile) {
  size_t heads = job.call.kv_heads, tiles = (job.tokens() + tile - 1) / tile;
  // The last tokens see most: they go first, and the small units fill the gaps at the end.
  const size_t units = tiles * heads;
  share_out(*job.m.pool, units, [&](const Turn& turn) {
    size_t first = (tiles - 1 - turn.unit / heads) * tile;
    size_t count = std::min(tile, job.tokens() - first);
    AttentionArgs a = job.args(turn.unit % heads, first, count, turn.worker);
    if (job.tokens() == 1) {
      a.keys_fetched = !turn.first;
      if (turn.next < units) job.fetch_next(a, turn.next, job.first_position());
    }
    job.m.kernels->attention(a);
  });
}

struct Chunks {
  size_t first, count;
};

Chunks chunks_of(const Job& job) {
  size_t first = job.first_position() / kAttentionChunk;
  return {first, (job.position + job.tokens() - 1) / kAttentionChunk + 1 - first};
}

// Partials: [chunks, kv_heads, tokens, group] rows of attention_partial_floats.
void attend_chunks(const Job& job, const Chunks& chunks) {
  size_t row = attention_partial_floats(job.call.value_dim), heads = job.call.kv_heads;
  size_t head_floats = job.tokens() * job.group * row, chunk_floats = heads * head_floats;
  float* partials = job.partials().data();
  const size_t units = chunks.count * heads;
  share_out(*job.m.pool, units, [&](const Turn& turn) {
    size_t chunk = turn.unit / heads, head = turn.unit % heads;
    AttentionArgs a = job.args(head, 0, job.tokens(), turn.worker);
    a.chunk = chunks.first + chunk;
    a.partials = partials + chunk * chunk_floats + head * head_floats;
    a.keys_fetched = !turn.first;
    if (turn.next < units) {
      uint64_t begin = (chunks.first + turn.next / heads) * kAttentionChunk;
      job.fetch_next(a, turn.next % heads, std::max(begin, job.first_position()));
    }
    job.m.kernels->attention(a);
  });
  auto merge = [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; ++i) {
      size_t t = i / job.call.heads, h = i % job.call.heads;
      AttentionMergeArgs a{};
      a.partials = partials + h / job.group * head_floats + (t * job.group + h % job.group) * row;
      a.chunks = chunks.count;
      a.stride = chunk_floats;
      a.value_dim = job.call.value_dim;
      a.sink = job.sinks == nullptr ? nullptr : job.sinks + h;
      a.out = job.out.row(t) + h * job.call.value_dim;
      job.m.kernels->attention_merge(a);
    }
  };
  size_t merges = job.tokens() * job.call.heads;
  if (chunks.count * chunk_floats < kWorthSharing) return merge(0, merges, 0);
  job.m.pool->split(merges, 1, merge);
}

}  // namespace

uint64_t attention_floats(const Model& model, uint64_t context, int workers) {
  uint64_t worker = 0, partials = 0;
  for (const KvLayer& layer : model.kv_layers()) {
    worker = std::max<uint64_t>(worker, worker_floats(model.config(), layer));
    uint64_t positions = layer.window != 0 ? std::min<uint64_t>(context, layer.window) : context;
    partials =
        std::max(partials, model.config().heads * most_chunks(positions) * attention_partial_floats(layer.value_dim));
  }
  return static_cast<uint64_t>(workers) * worker + (workers > 1 ? partials : 0);
}

void Compute::attention(const AttentionCall& call, Rows q, Rows k, Rows v, Rows out) {
  StageTimer timer(m_.profile, Stage::attention);
  WorkTrace work(trace_, "attention");
  if (failed()) return;
  KvCache& cache = *m_.cache;
  uint64_t capacity = cache.capacity(call.layer);
  size_t kind = static_cast<size_t>(cache.type());
  each_token(k.rows, [&](size_t t) {
    size_t slot = (shape().position + t) % capacity;
    for (uint32_t h = 0; h < call.kv_heads; ++h) {
      m_.kernels->store_key[kind](k.row(t) + h * call.key_dim, call.key_dim, cache.key(call.layer, h), slot);
      m_.kernels->store_value[kind](v.row(t) + h * call.value_dim, call.value_dim, cache.value(call.layer, h), slot);
    }
  });
  const float* sinks = call.sinks ? model_.vector(call.sinks).data() : nullptr;
  Job job{m_, call, q, out, shape().position, sinks, call.heads / call.kv_heads, 0};
  for (const KvLayer& layer : model_.kv_layers()) {
    job.worker_floats = std::max(job.worker_floats, worker_floats(model_.config(), layer));
  }
  size_t tile = tile_tokens(job.group), enough = kUnitsPerWorker * job.workers();
  auto units = [&] { return call.kv_heads * ((job.tokens() + tile - 1) / tile); };
  while (units() < enough && tile * job.group > kFewRows && tile > 1) tile = (tile + 1) / 2;
  Chunks chunks = chunks_of(job);
  uint64_t needed = chunks.count * job.tokens() * call.heads * attention_partial_floats(call.value_dim);
  bool split = job.workers() > 1 && units() < enough && chunks.count > 1 && job.tokens() <= tile_tokens(job.group) &&
               needed <= job.partials().size();
  if (split) return attend_chunks(job, chunks);
  attend_tiles(job, tile);
}

}  // namespace ridge
