// Attention for vectors of 16 floats: 16 positions per vector for the scores (the key panels), 16 value dimensions per
// vector for the outputs. See AttentionArgs in kernels.h for what is computed, and simd/math.h for V and why only
// templates may stand here.
//
// Up to four query heads of the group go together, so that keys and values are converted to float once for all of them,
// and several panels or value vectors at once, so that enough independent accumulators hide the latency of the FMA.
// None of it changes the order within an accumulator. A chunk of 256 positions is finished for all heads before the
// next one begins: its keys and values come from memory once and then from the L2 cache.
//
//   {Op::attention, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Attention<Vec>::attention), "…"}
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/simd/math.h"

namespace ridge::simd {

template <class V>
struct HalfCache {
  using Element = uint16_t;
  static inline typename V::F load(const uint16_t* p) { return V::load_half(p); }
  static inline typename V::F load(const uint16_t* p, size_t n) { return V::load_half(p, n); }
};

template <class V>
struct FloatCache {
  using Element = float;
  static inline typename V::F load(const float* p) { return V::load(p); }
  static inline typename V::F load(const float* p, size_t n) { return V::load(p, n); }
};

template <class V>
struct Attention {
  using F = typename V::F;
  using M = Math<V>;
  static constexpr size_t kChunk = 256, kMaxHeads = 4;
  static constexpr float kMinusInfinity = -__builtin_inff();

  // Positions [begin, end) of one chunk, for a block of heads.
  struct Chunk {
    size_t begin, end;
    bool first;     // nothing has been merged yet
    float* scores;  // [kMaxHeads, kChunk], by position % kChunk; become p = exp(s − m)
    float old_factor[kMaxHeads], new_factor[kMaxHeads];
  };

  static void attention(const AttentionArgs& args) {
    if (args.kv_type == KvType::f16) {
      run<HalfCache<V>>(args);
    } else {
      run<FloatCache<V>>(args);
    }
  }

 private:
  template <class Cache>
  static void run(const AttentionArgs& args) {
    float* maxima = args.scratch + kMaxHeads * kChunk;  // [group]
    float* sums = maxima + args.group;                  // [group]
    Chunk chunk;
    chunk.scores = args.scratch;
    chunk.first = true;
    for (size_t base = args.begin / kChunk * kChunk; base < args.end; base += kChunk) {
      chunk.begin = base > args.begin ? base : args.begin;
      chunk.end = base + kChunk < args.end ? base + kChunk : args.end;
      size_t head = 0;
      while (head < args.group) {
        const size_t heads = block_of(args.group - head);
        if (heads == 1) attend<Cache, 1>(args, head, chunk, maxima, sums);
        if (heads == 2) attend<Cache, 2>(args, head, chunk, maxima, sums);
        if (heads == 3) attend<Cache, 3>(args, head, chunk, maxima, sums);
        if (heads == 4) attend<Cache, 4>(args, head, chunk, maxima, sums);
        head += heads;
      }
      chunk.first = false;
    }
    for (size_t head = 0; head < args.group; ++head) finish(args, head, maxima[head], sums[head]);
  }

  // Blocks of four as long as no single head remains: 5 = 3 + 2, 9 = 4 + 3 + 2.
  static inline size_t block_of(size_t remaining) {
    if (remaining == 5) return 3;
    return remaining < kMaxHeads ? remaining : kMaxHeads;
  }

  template <class Cache, size_t Heads>
  static void attend(const AttentionArgs& args, size_t head, Chunk& chunk, float* maxima, float* sums) {
    score<Cache, Heads>(args, head, chunk);
    for (size_t h = 0; h < Heads; ++h) soften(args, chunk, h, maxima + head + h, sums + head + h);
    weigh_values<Cache, Heads>(args, head, chunk);
  }

  // Scores of whole panels; what lies outside of [begin, end) is overwritten by soften().
  template <class Cache, size_t Heads>
  static void score(const AttentionArgs& args, size_t head, const Chunk& chunk) {
    using Element = typename Cache::Element;
    constexpr size_t kPanels = V::kAccumulators / Heads > 0 ? V::kAccumulators / Heads : 1;
    const size_t last = (chunk.end - 1) / 16 * 16;
    const float* q = args.q + head * args.q_stride;
    const F scale = V::set(args.scale);
    for (size_t position = chunk.begin / 16 * 16; position <= last; position += 16 * kPanels) {
      const Element* panel[kPanels];  // past the end the last one again, computed and dropped
      for (size_t j = 0; j < kPanels; ++j) {
        const size_t p = position + 16 * j < last ? position + 16 * j : last;
        panel[j] = static_cast<const Element*>(args.k) + p % args.capacity * args.key_dim;
      }
      F acc[Heads][kPanels];
      for (size_t h = 0; h < Heads; ++h) {
        for (size_t j = 0; j < kPanels; ++j) acc[h][j] = V::zero();
      }
      for (size_t i = 0; i < args.key_dim; ++i) {
        F key[kPanels];
        for (size_t j = 0; j < kPanels; ++j) key[j] = Cache::load(panel[j] + 16 * i);
        for (size_t h = 0; h < Heads; ++h) {
          const F query = V::set(q[h * args.q_stride + i]);
          for (size_t j = 0; j < kPanels; ++j) acc[h][j] = V::fma(query, key[j], acc[h][j]);
        }
      }
      for (size_t j = 0; j < kPanels && position + 16 * j <= last; ++j) {
        for (size_t h = 0; h < Heads; ++h) {
          V::store(chunk.scores + h * kChunk + (position + 16 * j) % kChunk, V::mul(acc[h][j], scale));
        }
      }
    }
  }

  // Scores of one head to p = exp(s − m); the chunk's maximum and sum are merged into the head's.
  static void soften(const AttentionArgs& args, Chunk& chunk, size_t h, float* head_max, float* head_sum) {
    float* s = chunk.scores + h * kChunk;
    const size_t from = chunk.begin % kChunk / 16 * 16, to = from + (chunk.end - chunk.begin / 16 * 16 + 15) / 16 * 16;
    if (args.softcap != 0) {
      const F cap = V::set(args.softcap);
      for (size_t i = from; i < to; i += 16) V::store(s + i, V::mul(cap, M::tanh(V::div(V::load(s + i), cap))));
    }
    for (size_t i = from; i < chunk.begin % kChunk; ++i) s[i] = kMinusInfinity;
    for (size_t i = (chunk.end - 1) % kChunk + 1; i < to; ++i) s[i] = kMinusInfinity;

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

    const float new_max = chunk.first || max > *head_max ? max : *head_max;
    chunk.old_factor[h] = chunk.first ? 0.0f : exp_one(*head_max - new_max);
    chunk.new_factor[h] = exp_one(max - new_max);
    *head_sum = chunk.first ? sum : __builtin_fmaf(*head_sum, chunk.old_factor[h], sum * chunk.new_factor[h]);
    *head_max = new_max;
  }

  static inline float exp_one(float x) {
    float lanes[16];
    V::store(lanes, M::exp(V::set(x)));
    return lanes[0];
  }

  template <class Cache, size_t Heads>
  static void weigh_values(const AttentionArgs& args, size_t head, const Chunk& chunk) {
    constexpr size_t kWide = V::kValueAccumulators / Heads;
    size_t i = 0;
    if constexpr (kWide >= 8) {
      for (; i + 128 <= args.value_dim; i += 128) weigh<Cache, Heads, 8>(args, head, chunk, i, 16);
    }
    if constexpr (kWide >= 4) {
      for (; i + 64 <= args.value_dim; i += 64) weigh<Cache, Heads, 4>(args, head, chunk, i, 16);
    }
    if constexpr (kWide >= 2) {
      for (; i + 32 <= args.value_dim; i += 32) weigh<Cache, Heads, 2>(args, head, chunk, i, 16);
    }
    for (; i + 16 <= args.value_dim; i += 16) weigh<Cache, Heads, 1>(args, head, chunk, i, 16);
    if (i < args.value_dim) weigh<Cache, Heads, 1>(args, head, chunk, i, args.value_dim - i);
  }

  // Dimensions [column, column + 16 · (Vectors − 1) + last_count) of the outputs: the sum of p · v in the order of the
  // positions, merged into what is there.
  template <class Cache, size_t Heads, size_t Vectors>
  static void weigh(const AttentionArgs& args, size_t head, const Chunk& chunk, size_t column, size_t last_count) {
    const auto* values = static_cast<const typename Cache::Element*>(args.v) + column;
    F acc[Heads][Vectors];
    for (size_t h = 0; h < Heads; ++h) {
      for (size_t j = 0; j < Vectors; ++j) acc[h][j] = V::zero();
    }
    const float* p = chunk.scores + chunk.begin % kChunk;
    size_t slot = chunk.begin % args.capacity;
    for (size_t t = chunk.begin; t < chunk.end; ++t, ++p) {
      const auto* row = values + slot * args.value_dim;
      F value[Vectors];
      if (Vectors == 1 && last_count < 16) {
        value[0] = Cache::load(row, last_count);
      } else {
        for (size_t j = 0; j < Vectors; ++j) value[j] = Cache::load(row + 16 * j);
      }
      for (size_t h = 0; h < Heads; ++h) {
        const F weight = V::set(p[h * kChunk]);
        for (size_t j = 0; j < Vectors; ++j) acc[h][j] = V::fma(weight, value[j], acc[h][j]);
      }
      if (++slot == args.capacity) slot = 0;
    }
    for (size_t h = 0; h < Heads; ++h) {
      float* out = args.out + (head + h) * args.out_stride + column;
      for (size_t j = 0; j < Vectors; ++j) {
        const size_t count = j + 1 == Vectors ? last_count : 16;
        merge(chunk, h, acc[h][j], out + 16 * j, count);
      }
    }
  }

  static inline void merge(const Chunk& chunk, size_t h, F o, float* out, size_t count) {
    if (!chunk.first) {
      o = V::fma(V::load(out, count), V::set(chunk.old_factor[h]), V::mul(o, V::set(chunk.new_factor[h])));
    }
    V::store(out, o, count);
  }

  // out = O / L, with the head's sink in L.
  static void finish(const AttentionArgs& args, size_t head, float max, float sum) {
    float* out = args.out + head * args.out_stride;
    float factor = 1;
    if (args.sinks != nullptr) {
      const float sink = args.sinks[head];
      const float new_max = sink > max ? sink : max;
      factor = exp_one(max - new_max);
      sum = __builtin_fmaf(sum, factor, exp_one(sink - new_max));
    }
    for (size_t i = 0; i < args.value_dim; i += 16) {
      const size_t count = args.value_dim - i < 16 ? args.value_dim - i : 16;
      V::store(out + i, V::div(V::mul(V::load(out + i, count), V::set(factor)), V::set(sum)), count);
    }
  }
};

}  // namespace ridge::simd
