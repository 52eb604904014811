// Attention for vectors of 16 floats: 16 positions per vector for the scores (the key panels), 16 value dimensions per
// vector for the outputs. See AttentionArgs in kernels.h for what is computed, kv_types.h for how keys and values are
// read, and simd/math.h for V and why only templates may stand here.
//
// A row is one head of one token. Blocks of up to twelve rows go together over one chunk of 256 positions: keys and
// values are converted to float once for all of them, and rows × panels (or rows × value vectors) accumulators stay in
// registers. None of it changes the order within an accumulator. A chunk is finished for all rows before the next one
// begins: its keys and values come from memory once and then from the L2 cache. The memory works all the while: the
// chunk's values are fetched as its keys are scored, and the next chunk's keys as its values are summed up.
//
// Rows of different tokens see different positions. Positions that all rows of a block see are the inner loop; the few
// at its edges are added row by row, because a number that a row does not see may be NaN and must not meet it.
//
//   {Op::attention, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Attention<Vec>::attention), "…"}
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/simd/kv_types.h"
#include "kernels/simd/math.h"

namespace ridge::simd {

template <class V>
struct Attention {
  using F = typename V::F;
  using M = Math<V>;
  static constexpr size_t kChunk = kAttentionChunk;
  static constexpr size_t kMostRows = V::kRegisters >= 32 ? 12 : 6;
  static constexpr float kMinusInfinity = -__builtin_inff();

  // What is constant in a call, and the scratch cut into its parts.
  struct Call {
    const AttentionArgs& args;
    size_t rows, key_row, value_row;  // bytes of a position
    float* queries;                   // per block of rows [key_dim][rows of the block], at row · key_dim
    float* scores;                    // [kMostRows, kChunk], by position % kChunk; become p = exp(s − m)
    float *maxima, *sums;             // [rows]
  };

  // Fetches memory line by line into the L2 cache. Two requests in a row read at 14.5 GB/s what requests with a load
  // between them read at 17 (a Xeon with AMX, memory 16.9): so each load of the inner loops takes its share.
  struct Fetch {
    const uint8_t *next, *end;

    // Load number j of n, which together fetch `lines` lines.
    inline void share(size_t j, size_t n, size_t lines) {
      for (size_t i = lines * j / n; i < lines * (j + 1) / n && next < end; ++i, next += 64) {
        __builtin_prefetch(next, 0, 2);
      }
    }
  };

  // One block of rows in one chunk.
  struct Block {
    size_t row;                               // the first
    size_t begin[kMostRows], end[kMostRows];  // positions each row sees in this chunk
    bool first[kMostRows];                    // nothing has been merged into the row yet
    float* out[kMostRows];
    float old_factor[kMostRows], new_factor[kMostRows];
    size_t all_begin, all_end;    // what any of them sees
    size_t core_begin, core_end;  // what all of them see; core_begin ≤ core_end
  };

  static void attention(const AttentionArgs& args) {
    if (args.kv_type == KvType::f16) run<PlainCache<V, LoadHalf<V>>>(args);
    if (args.kv_type == KvType::f32) run<PlainCache<V, LoadFloat<V>>>(args);
    if (args.kv_type == KvType::bf16) run<PlainCache<V, LoadBf16<V>>>(args);
    if (args.kv_type == KvType::q8_0) run<Q8Cache<V>>(args);
  }

  // Sixteen chunks at a time: their maxima are known before any output is, so that their factors take two exponentials
  // rather than 32.
  static void merge(const AttentionMergeArgs& args) {
    const size_t n = args.value_dim;
    float max = 0, sum = 0;
    bool first = true;
    for (size_t begin = 0; begin < args.chunks; begin += 16) {
      const size_t count = args.chunks - begin < 16 ? args.chunks - begin : 16;
      const float* partials = args.partials + begin * args.stride;
      float old_max[16] = {}, chunk_max[16] = {}, new_max[16] = {}, old_factor[16], new_factor[16];
      bool was_first = first;
      for (size_t c = 0; c < count; ++c) {
        const float* o = partials + c * args.stride;
        if (o[n + 1] == 0) continue;
        old_max[c] = max;
        chunk_max[c] = o[n];
        max = new_max[c] = was_first || o[n] > max ? o[n] : max;
        was_first = false;
      }
      V::store(old_factor, M::exp(V::sub(V::load(old_max), V::load(new_max))));
      V::store(new_factor, M::exp(V::sub(V::load(chunk_max), V::load(new_max))));
      for (size_t c = 0; c < count; ++c) {
        const float* o = partials + c * args.stride;
        const float l = o[n + 1];
        if (l == 0) continue;
        const float factor = first ? 0.0f : old_factor[c];
        for (size_t i = 0; i < n; i += 16) {
          const size_t some = n - i < 16 ? n - i : 16;
          put(first, factor, new_factor[c], V::load(o + i, some), args.out + i, some);
        }
        sum = first ? l : __builtin_fmaf(sum, factor, l * new_factor[c]);
        first = false;
      }
    }
    finish(args.out, n, args.sink, max, sum);
  }

 private:
  // How many panels or value vectors go beside `rows` rows: as many as leave registers for accumulators and operands.
  static constexpr size_t beside(size_t rows) {
    if (rows == 1) return V::kRegisters >= 32 ? 8 : 4;
    size_t n = 1;
    while (2 * n * (rows + 1) < V::kRegisters && n < 8) n *= 2;
    return n;
  }

  static inline size_t block_of(size_t remaining) {
    constexpr size_t kBest[] = {0, 1, 2, 3, 4, 3, 6, 4, 8, 6, 6, 8, 12, 8};
    if (remaining >= 14) return kMostRows;
    return kBest[remaining] <= kMostRows ? kBest[remaining] : kMostRows;
  }

  template <class Cache>
  static void run(const AttentionArgs& args) {
    Call call{args,
              args.tokens * args.group,
              kv_bytes(args.kv_type, args.key_dim),
              kv_bytes(args.kv_type, args.value_dim),
              nullptr,
              nullptr,
              nullptr,
              nullptr};
    call.scores = args.scratch;
    call.queries = call.scores + kMostRows * kChunk;
    call.maxima = call.queries + call.rows * args.key_dim;
    call.sums = call.maxima + call.rows;
    transpose_queries(call);
    if (args.partials != nullptr) return run_chunk<Cache>(call, args.chunk * kChunk);
    const size_t end = args.end + args.tokens - 1;
    for (size_t base = begin_of(args, 0) / kChunk * kChunk; base < end; base += kChunk) run_chunk<Cache>(call, base);
    for (size_t r = 0; r < call.rows; ++r) {
      const float* sink = args.sinks != nullptr ? args.sinks + r % args.group : nullptr;
      finish(out_of(args, r), args.value_dim, sink, call.maxima[r], call.sums[r]);
    }
  }

  static inline size_t begin_of(const AttentionArgs& args, size_t token) {
    const size_t end = args.end + token;
    return args.window != 0 && end > args.window ? end - args.window : 0;
  }

  static inline float* out_of(const AttentionArgs& args, size_t row) {
    if (args.partials != nullptr) return args.partials + row * attention_partial_floats(args.value_dim);
    return args.out + row / args.group * args.out_token_stride + row % args.group * args.out_stride;
  }

  static void transpose_queries(const Call& call) {
    const AttentionArgs& args = call.args;
    for (size_t row = 0; row < call.rows;) {
      const size_t rows = block_of(call.rows - row);
      float* to = call.queries + row * args.key_dim;
      for (size_t r = 0; r < rows; ++r) {
        const size_t token = (row + r) / args.group, head = (row + r) % args.group;
        const float* q = args.q + token * args.q_token_stride + head * args.q_stride;
        for (size_t i = 0; i < args.key_dim; ++i) to[i * rows + r] = q[i];
      }
      row += rows;
    }
  }

  template <class Cache>
  static void run_chunk(const Call& call, size_t base) {
    for (size_t row = 0; row < call.rows;) {
      const size_t rows = block_of(call.rows - row);
      Block block = describe(call, base, row, rows);
      if (block.all_begin < block.all_end) {
        if (rows == 1) attend<Cache, 1>(call, block);
        if (rows == 2) attend<Cache, 2>(call, block);
        if (rows == 3) attend<Cache, 3>(call, block);
        if (rows == 4) attend<Cache, 4>(call, block);
        if (rows == 6) attend<Cache, 6>(call, block);
        if constexpr (kMostRows >= 12) {
          if (rows == 8) attend<Cache, 8>(call, block);
          if (rows == 12) attend<Cache, 12>(call, block);
        }
      } else if (call.args.partials != nullptr) {
        for (size_t r = 0; r < rows; ++r) block.out[r][call.args.value_dim + 1] = 0;
      }
      row += rows;
    }
  }

  static Block describe(const Call& call, size_t base, size_t row, size_t rows) {
    const AttentionArgs& args = call.args;
    Block b;
    b.row = row;
    b.all_begin = b.core_begin = 0;
    b.all_end = b.core_end = 0;
    for (size_t r = 0; r < rows; ++r) {
      const size_t token = (row + r) / args.group, end = args.end + token, begin = begin_of(args, token);
      b.first[r] = args.partials != nullptr || begin >= base;
      b.begin[r] = begin < base ? base : begin < base + kChunk ? begin : base + kChunk;
      b.end[r] = end < b.begin[r] ? b.begin[r] : end < base + kChunk ? end : base + kChunk;
      b.out[r] = out_of(args, row + r);
      // Later tokens begin and end later.
      if (r == 0) b.all_begin = b.begin[r];
      if (r == 0) b.core_end = b.end[r];
      b.core_begin = b.begin[r];
      b.all_end = b.end[r];
    }
    // Where no position is seen by all, everything is edge.
    if (b.core_begin > b.core_end) b.core_begin = b.core_end = b.all_end;
    return b;
  }

  template <class Cache, size_t Rows>
  static void attend(const Call& call, Block& block) {
    score<Cache, Rows>(call, block);
    for (size_t r = 0; r < Rows; ++r) soften(call, block, r);
    weigh_values<Cache, Rows>(call, block);
  }

  // Positions [begin, end) of keys or values, as far as they lie one after the other in the ring.
  static Fetch stretch(const void* ring, size_t capacity, size_t begin, size_t end, size_t position_bytes) {
    const size_t slot = begin % capacity, count = end - begin, room = capacity - slot;
    const uint8_t* first = static_cast<const uint8_t*>(ring) + slot * position_bytes;
    return {first, first + (count < room ? count : room) * position_bytes};
  }

  // What is fetched during the scores: the chunk's values or, where nobody has fetched the keys, those after `next`.
  static Fetch beside_scores(const Call& call, const Block& block, size_t next) {
    const AttentionArgs& args = call.args;
    const bool later_chunk = args.partials == nullptr && begin_of(args, 0) < block.all_begin / kChunk * kChunk;
    if (!args.keys_fetched && !later_chunk && next < block.all_end) {
      return stretch(args.k, args.capacity, next, block.all_end, call.key_row);
    }
    return stretch(args.v, args.capacity, block.all_begin, block.all_end, call.value_row);
  }

  // Scores of whole panels; what a row does not see is overwritten by soften().
  template <class Cache, size_t Rows>
  static void score(const Call& call, const Block& block) {
    constexpr size_t kPanels = beside(Rows);
    constexpr size_t kLines = (kPanels * Cache::kKeyBytes + 63) / 64;  // per dimension
    const AttentionArgs& args = call.args;
    const size_t last = (block.all_end - 1) / 16 * 16;
    const F scale = V::set(args.scale);
    Fetch ahead = beside_scores(call, block, block.all_begin / 16 * 16 + 16 * kPanels);
    for (size_t position = block.all_begin / 16 * 16; position <= last; position += 16 * kPanels) {
      const uint8_t* panel[kPanels];  // past the end the last one again, computed and dropped
      for (size_t j = 0; j < kPanels; ++j) {
        const size_t p = position + 16 * j < last ? position + 16 * j : last;
        panel[j] = static_cast<const uint8_t*>(args.k) + p % args.capacity * call.key_row;
      }
      F acc[Rows][kPanels];
#pragma GCC unroll 12
      for (size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
        for (size_t j = 0; j < kPanels; ++j) acc[r][j] = V::zero();
      }
      const float* q = call.queries + block.row * args.key_dim;
      for (size_t from = 0; from < args.key_dim; from += Cache::kBlock) {
        const size_t count = args.key_dim - from < Cache::kBlock ? args.key_dim - from : Cache::kBlock;
        typename Cache::Keys keys[kPanels];
        for (size_t j = 0; j < kPanels; ++j) keys[j] = Cache::keys(panel[j], from);
        for (size_t i = 0; i < count; ++i, q += Rows) {
          F key[kPanels];
#pragma GCC unroll 8
          for (size_t j = 0; j < kPanels; ++j) {
            ahead.share(j, kPanels, kLines);
            key[j] = keys[j].at(i);
          }
#pragma GCC unroll 12
          for (size_t r = 0; r < Rows; ++r) {
            const F query = V::set(q[r]);
#pragma GCC unroll 8
            for (size_t j = 0; j < kPanels; ++j) acc[r][j] = V::fma(query, key[j], acc[r][j]);
          }
        }
      }
#pragma GCC unroll 8
      for (size_t j = 0; j < kPanels; ++j) {
        if (position + 16 * j > last) break;
#pragma GCC unroll 12
        for (size_t r = 0; r < Rows; ++r) {
          V::store(call.scores + r * kChunk + (position + 16 * j) % kChunk, V::mul(acc[r][j], scale));
        }
      }
    }
  }

  // Scores of one row to p = exp(s − m); the chunk's maximum and sum are merged into the row's.
  static void soften(const Call& call, Block& block, size_t r) {
    const AttentionArgs& args = call.args;
    const size_t begin = block.begin[r], end = block.end[r];
    float* out_end = block.out[r] + args.value_dim;
    if (begin == end) {
      if (args.partials != nullptr) out_end[1] = 0;
      return;
    }
    float* s = call.scores + r * kChunk;
    const size_t from = begin % kChunk / 16 * 16, to = from + (end - begin / 16 * 16 + 15) / 16 * 16;
    if (args.softcap != 0) {
      const F cap = V::set(args.softcap);
      for (size_t i = from; i < to; i += 16) V::store(s + i, V::mul(cap, M::tanh(V::div(V::load(s + i), cap))));
    }
    for (size_t i = from; i < begin % kChunk; ++i) s[i] = kMinusInfinity;
    for (size_t i = (end - 1) % kChunk + 1; i < to; ++i) s[i] = kMinusInfinity;

    F largest = V::set(kMinusInfinity);
    for (size_t i = from; i < to; i += 16) largest = V::max(V::load(s + i), largest);
    const float max = V::reduce_max(largest);
    const F m = V::set(max);
    F lanes = V::zero();
    for (size_t i = from; i < to; i += 16) {
      const F p = M::exp(V::sub(V::load(s + i), m));
      lanes = V::add(lanes, p);
      V::store(s + i, p);
    }
    const float sum = V::reduce_add(lanes);
    if (args.partials != nullptr) {
      out_end[0] = max;
      out_end[1] = sum;
      return;
    }
    float *row_max = call.maxima + block.row + r, *row_sum = call.sums + block.row + r;
    const bool first = block.first[r];
    const float new_max = first || max > *row_max ? max : *row_max;
    block.old_factor[r] = first ? 0.0f : exp_one(*row_max - new_max);
    block.new_factor[r] = exp_one(max - new_max);
    *row_sum = first ? sum : __builtin_fmaf(*row_sum, block.old_factor[r], sum * block.new_factor[r]);
    *row_max = new_max;
  }

  static inline float exp_one(float x) {
    float lanes[16];
    V::store(lanes, M::exp(V::set(x)));
    return lanes[0];
  }

  // The keys that will be wanted next: the next chunk's, or what the caller names.
  static Fetch next_keys(const Call& call, const Block& block) {
    const AttentionArgs& args = call.args;
    const size_t begin = (block.all_begin / kChunk + 1) * kChunk, end = args.end + args.tokens - 1;
    if (args.partials != nullptr || begin >= end) {
      const auto* next = static_cast<const uint8_t*>(args.next_keys);
      return {next, next + args.next_keys_bytes};
    }
    return stretch(args.k, args.capacity, begin, end < begin + kChunk ? end : begin + kChunk, call.key_row);
  }

  template <class Cache, size_t Rows>
  static void weigh_values(const Call& call, const Block& block) {
    constexpr size_t kWide = beside(Rows);
    const size_t dim = call.args.value_dim;
    Fetch keys = next_keys(call, block);
    size_t i = 0;
    if constexpr (kWide >= 8) {
      for (; i + 128 <= dim; i += 128) weigh<Cache, Rows, 8>(call, block, i, 16, keys);
    }
    if constexpr (kWide >= 4) {
      for (; i + 64 <= dim; i += 64) weigh<Cache, Rows, 4>(call, block, i, 16, keys);
    }
    if constexpr (kWide >= 2) {
      for (; i + 32 <= dim; i += 32) weigh<Cache, Rows, 2>(call, block, i, 16, keys);
    }
    for (; i + 16 <= dim; i += 16) weigh<Cache, Rows, 1>(call, block, i, 16, keys);
    if (i < dim) weigh<Cache, Rows, 1>(call, block, i, dim - i, keys);
  }

  // Dimensions [column, column + 16 · (Vectors − 1) + last_count) of the outputs: the sum of p · v in the order of the
  // positions, merged into what is there.
  template <class Cache, size_t Rows, size_t Vectors>
  static void weigh(const Call& call, const Block& block, size_t column, size_t last_count, Fetch& keys) {
    constexpr size_t kLines = (Vectors * Cache::kKeyBytes + 63) / 64;  // per position
    const AttentionArgs& args = call.args;
    F acc[Rows][Vectors];
#pragma GCC unroll 12
    for (size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (size_t j = 0; j < Vectors; ++j) acc[r][j] = V::zero();
    }
    size_t slot = block.all_begin % args.capacity;
    const auto step = [&](size_t t, auto sees) __attribute__((always_inline)) {
      const uint8_t* row = static_cast<const uint8_t*>(args.v) + slot * call.value_row;
      if (++slot == args.capacity) slot = 0;
      F value[Vectors];
#pragma GCC unroll 8
      for (size_t j = 0; j < Vectors; ++j) {
        keys.share(j, Vectors, kLines);
        value[j] = Vectors == 1 && last_count < 16 ? Cache::value(row, column, last_count)
                                                   : Cache::value(row, column + 16 * j);
      }
      const float* p = call.scores + t % kChunk;
#pragma GCC unroll 12
      for (size_t r = 0; r < Rows; ++r) {
        if (!sees(r)) continue;
        const F weight = V::set(p[r * kChunk]);
#pragma GCC unroll 8
        for (size_t j = 0; j < Vectors; ++j) acc[r][j] = V::fma(weight, value[j], acc[r][j]);
      }
    };
    const auto edge = [&](size_t from, size_t to) __attribute__((always_inline)) {
      for (size_t t = from; t < to; ++t) step(t, [&](size_t r) { return block.begin[r] <= t && t < block.end[r]; });
    };
    edge(block.all_begin, block.core_begin);
    for (size_t t = block.core_begin; t < block.core_end; ++t) step(t, [](size_t) { return true; });
    edge(block.core_end, block.all_end);
#pragma GCC unroll 12
    for (size_t r = 0; r < Rows; ++r) {
      if (block.begin[r] == block.end[r]) continue;
#pragma GCC unroll 8
      for (size_t j = 0; j < Vectors; ++j) {
        put(block.first[r], block.old_factor[r], block.new_factor[r], acc[r][j], block.out[r] + column + 16 * j,
            j + 1 == Vectors ? last_count : 16);
      }
    }
  }

  // One vector of a chunk's output into what was merged so far.
  static inline void put(bool first, float old_factor, float new_factor, F o, float* out, size_t count) {
    if (!first) o = V::fma(V::load(out, count), V::set(old_factor), V::mul(o, V::set(new_factor)));
    V::store(out, o, count);
  }

  // out = O / L, with the head's sink in L.
  static void finish(float* out, size_t value_dim, const float* sink, float max, float sum) {
    float factor = 1;
    if (sink != nullptr) {
      const float new_max = *sink > max ? *sink : max;
      factor = exp_one(max - new_max);
      sum = __builtin_fmaf(sum, factor, exp_one(*sink - new_max));
    }
    for (size_t i = 0; i < value_dim; i += 16) {
      const size_t count = value_dim - i < 16 ? value_dim - i : 16;
      V::store(out + i, V::div(V::mul(V::load(out + i, count), V::set(factor)), V::set(sum)), count);
    }
  }
};

}  // namespace ridge::simd
