// Attention, from the one list: byte for byte the scalar one, and the scalar one close to a softmax in double
// precision.

#include <algorithm>

#include "kernels/kernels.h"
#include "tensor/half.h"
#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

using test::for_each_kernel;
using test::Random;
using test::reference;
using test::same_bytes;

struct Case {
  size_t group = 1, key_dim = 64, value_dim = 64, capacity = 512, begin = 0, end = 1;
  float softcap = 0;
  bool sinks = false;
  KvType kv_type = KvType::f16;
  size_t tokens = 1;    // the first sees [begin, end)
  bool poison = false;  // NaN and infinity among keys and values
};

constexpr KvType kAllTypes[] = {KvType::f16, KvType::f32, KvType::bf16, KvType::q8_0};
constexpr const char* kTypeNames[] = {"f16", "f32", "bf16", "q8_0"};
constexpr Op kStoreKey[] = {Op::store_key_f16, Op::store_key_f32, Op::store_key_bf16, Op::store_key_q8_0};
constexpr Op kStoreValue[] = {Op::store_value_f16, Op::store_value_f32, Op::store_value_bf16, Op::store_value_q8_0};
size_t index_of(KvType type) { return static_cast<size_t>(type); }

std::string text_of(const Case& c) {
  return std::to_string(c.tokens) + " tokens, group " + std::to_string(c.group) + ", key " + std::to_string(c.key_dim) +
         ", value " + std::to_string(c.value_dim) + ", capacity " + std::to_string(c.capacity) + ", positions " +
         std::to_string(c.begin) + " to " + std::to_string(c.end) + ", softcap " + std::to_string(c.softcap) +
         (c.sinks ? ", sinks, " : ", ") + kTypeNames[index_of(c.kv_type)];
}

// The numbers that a type keeps, block by block as docs/numerics.md says.
std::vector<float> kept(KvType type, const std::vector<float>& x) {
  std::vector<float> out = x;
  for (size_t from = 0; from < x.size(); from += 32) {
    const size_t to = std::min(x.size(), from + 32);
    float amax = 0;
    for (size_t i = from; i < to; ++i) amax = std::max(amax, std::fabs(x[i]));
    const float d = f16_to_f32(f32_to_f16(amax / 127.0f));
    for (size_t i = from; i < to; ++i) {
      if (type == KvType::f16) out[i] = f16_to_f32(f32_to_f16(x[i]));
      if (type == KvType::bf16) out[i] = bf16_to_f32(f32_to_bf16(x[i]));
      if (type == KvType::q8_0) out[i] = d == 0 ? 0 : d * std::nearbyint(std::clamp(x[i] / d, -127.0f, 127.0f));
    }
  }
  return out;
}

// A cache filled position by position, as a conversation does, and the queries of some tokens.
class Fixture {
 public:
  explicit Fixture(const Case& c) : c_(c) {
    Random random(c.group * 1000003 + c.key_dim * 1009 + c.end);
    k_.assign(c.capacity * kv_bytes(c.kv_type, c.key_dim), 0xff);  // NaN until a position is stored there
    v_.assign(c.capacity * kv_bytes(c.kv_type, c.value_dim), 0xff);
    const size_t stored_end = c.end + c.tokens - 1;
    oldest_ = stored_end > c.capacity ? stored_end - c.capacity : 0;
    for (size_t p = oldest_; p < stored_end; ++p) {
      std::vector<float> key = random.vector(c.key_dim, -1, 1), value = random.vector(c.value_dim, -1, 1);
      if (c.poison && p % 7 == 3) value[p % c.value_dim] = p % 2 ? NAN : HUGE_VALF;
      reference<StoreKeyFn>(kStoreKey[index_of(c.kv_type)])(key.data(), c.key_dim, k_.data(), p % c.capacity);
      reference<StoreValueFn>(kStoreValue[index_of(c.kv_type)])(value.data(), c.value_dim, v_.data(), p % c.capacity);
      keys_.push_back(kept(c.kv_type, key));
      values_.push_back(kept(c.kv_type, value));
    }
    q_ = random.vector(c.tokens * q_token(), -3, 3);
    sinks_ = random.vector(c.group, -2, 4);
  }

  size_t q_token() const { return c_.group * (c_.key_dim + 3) + 2; }
  size_t out_token() const { return c_.group * (c_.value_dim + 5) + 1; }

  AttentionArgs args(size_t first, size_t tokens) const {
    AttentionArgs args{};
    args.q = q_.data() + first * q_token();
    args.tokens = tokens;
    args.group = c_.group;
    args.q_stride = c_.key_dim + 3;
    args.q_token_stride = q_token();
    args.key_dim = c_.key_dim;
    args.value_dim = c_.value_dim;
    args.kv_type = c_.kv_type;
    args.k = k_.data();
    args.v = v_.data();
    args.capacity = c_.capacity;
    args.end = c_.end + first;
    args.window = c_.begin == 0 ? 0 : c_.end - c_.begin;
    args.scale = scale();
    args.softcap = c_.softcap;
    args.sinks = c_.sinks ? sinks_.data() : nullptr;
    args.out_stride = c_.value_dim + 5;
    args.out_token_stride = out_token();
    return args;
  }

  // All tokens, `tile` at a time.
  std::vector<float> run(AttentionFn fn, size_t tile) const {
    std::vector<float> out(c_.tokens * out_token(), 7.0f);
    for (size_t first = 0; first < c_.tokens; first += tile) {
      AttentionArgs a = args(first, std::min(tile, c_.tokens - first));
      std::vector<float> scratch(attention_scratch_floats(a.tokens * c_.group, c_.key_dim) + 1, 7.0f);
      a.out = out.data() + first * out_token();
      a.scratch = scratch.data();
      fn(a);
      EXPECT_EQ(scratch.back(), 7.0f) << "scratch overrun";
    }
    return out;
  }
  std::vector<float> run(AttentionFn fn) const { return run(fn, c_.tokens); }

  // Chunk by chunk, then merged, as several workers do.
  std::vector<float> run_chunks(AttentionFn fn, AttentionMergeFn merge) const {
    const size_t row = attention_partial_floats(c_.value_dim), rows = c_.tokens * c_.group;
    const size_t first = c_.begin / kAttentionChunk, last = (c_.end + c_.tokens - 2) / kAttentionChunk;
    const size_t chunks = last - first + 1;
    std::vector<float> partials(chunks * rows * row, NAN), out(c_.tokens * out_token(), 7.0f);
    std::vector<float> scratch(attention_scratch_floats(rows, c_.key_dim));
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      AttentionArgs a = args(0, c_.tokens);
      a.scratch = scratch.data();
      a.chunk = first + chunk;
      a.partials = partials.data() + chunk * rows * row;
      fn(a);
    }
    for (size_t r = 0; r < rows; ++r) {
      AttentionMergeArgs m{};
      m.partials = partials.data() + r * row;
      m.chunks = chunks;
      m.stride = rows * row;
      m.value_dim = c_.value_dim;
      m.sink = c_.sinks ? &sinks_[r % c_.group] : nullptr;
      m.out = out.data() + r / c_.group * out_token() + r % c_.group * (c_.value_dim + 5);
      merge(m);
    }
    return out;
  }

  // The definition, in double precision and without chunks.
  std::vector<double> exact(size_t token, size_t head) const {
    std::vector<double> scores, out(c_.value_dim, 0.0);
    double max = c_.sinks ? sinks_[head] : -HUGE_VAL;
    const size_t end = c_.end + token, begin = c_.begin == 0 ? 0 : c_.begin + token;
    const float* q = q_.data() + token * q_token() + head * (c_.key_dim + 3);
    for (size_t p = begin; p < end; ++p) {
      double s = 0;
      for (size_t i = 0; i < c_.key_dim; ++i) s += static_cast<double>(q[i]) * keys_[p - oldest_][i];
      s *= scale();
      if (c_.softcap != 0) s = c_.softcap * std::tanh(s / c_.softcap);
      scores.push_back(s);
      max = std::max(max, s);
    }
    double sum = c_.sinks ? std::exp(sinks_[head] - max) : 0;
    for (size_t p = begin; p < end; ++p) {
      const double weight = std::exp(scores[p - begin] - max);
      sum += weight;
      for (size_t i = 0; i < c_.value_dim; ++i) out[i] += weight * values_[p - oldest_][i];
    }
    for (double& x : out) x /= sum;
    return out;
  }

 private:
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(c_.key_dim)); }

  Case c_;
  size_t oldest_ = 0;
  std::vector<uint8_t> k_, v_;
  std::vector<std::vector<float>> keys_, values_;
  std::vector<float> q_, sinks_;
};

void check(const Case& c) {
  SCOPED_TRACE(text_of(c));
  const Fixture fixture(c);
  const std::vector<float> want = fixture.run(reference<AttentionFn>(Op::attention));
  for (size_t t = 0; t < c.tokens && !c.poison; ++t) {
    for (size_t h = 0; h < c.group; ++h) {
      const float* got = want.data() + t * fixture.out_token() + h * (c.value_dim + 5);
      const std::vector<double> exact = fixture.exact(t, h);
      for (size_t i = 0; i < c.value_dim; ++i) ASSERT_NEAR(got[i], exact[i], 3e-6) << t << " " << h << " " << i;
      for (size_t i = c.value_dim; i < c.value_dim + 5; ++i) ASSERT_EQ(got[i], 7.0f);
    }
  }
  for_each_kernel<AttentionFn>(Op::attention, [&](AttentionFn fn) {
    ASSERT_TRUE(same_bytes(fixture.run(fn), want));
    for (const size_t tile : {1, 3}) {
      ASSERT_TRUE(same_bytes(fixture.run(fn, tile), want)) << tile << " tokens at a time";
    }
    for_each_kernel<AttentionMergeFn>(Op::attention_merge, [&](AttentionMergeFn merge) {
      ASSERT_TRUE(same_bytes(fixture.run_chunks(fn, merge), want)) << "in chunks";
    });
  });
}

TEST(Attention, EndsThatAreNotMultiplesOfAPanel) {
  for (size_t end = 1; end <= 35; ++end) check({.group = 1 + end % 4, .key_dim = 16, .value_dim = 16, .end = end});
  for (const size_t end : {127, 128, 129, 130, 255, 256, 257}) check({.group = 2, .end = end});
}

TEST(Attention, ManyChunks) {
  check({.group = 3, .capacity = 1024, .end = 1000});
  check({.group = 1, .capacity = 1024, .begin = 5, .end = 777});
  check({.group = 1, .capacity = 1024, .end = 1024});
}

TEST(Attention, GroupsOfHeads) {
  for (const size_t group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
    check({.group = group, .key_dim = 32, .value_dim = 32, .end = 300});
}

TEST(Attention, HeadSizes) {
  for (const size_t dim : {1, 2, 8, 15, 17, 33, 48, 80, 96, 100, 112, 128, 192, 256}) {
    check({.group = 2, .key_dim = dim, .value_dim = dim, .end = 40});
  }
  check({.group = 1, .key_dim = 128, .value_dim = 256, .end = 40});
  check({.group = 16, .key_dim = 576, .value_dim = 512, .capacity = 64, .end = 50});  // absorbed MLA
  check({.group = 3, .key_dim = 192, .value_dim = 128, .end = 19});
}

TEST(Attention, WindowsAndRings) {
  check({.capacity = 64, .begin = 936, .end = 1000});   // full ring that wraps
  check({.capacity = 48, .begin = 1000, .end = 1037});  // smaller than a chunk, not a divisor of it
  check({.group = 4, .capacity = 304, .begin = 900, .end = 1203});
  check({.capacity = 16, .begin = 250, .end = 262});  // across a chunk boundary, within one panel twice
  check({.group = 2, .capacity = 512, .begin = 255, .end = 257});
  check({.capacity = 512, .begin = 511, .end = 512});
}

TEST(Attention, SoftcapAndSinks) {
  check({.group = 2, .end = 300, .softcap = 2.0f});
  check({.group = 3, .end = 300, .sinks = true});
  check({.group = 5, .begin = 200, .end = 290, .softcap = 50.0f, .sinks = true});
}

TEST(Attention, EveryCacheType) {
  for (const KvType type : kAllTypes) {
    check({.group = 4, .end = 300, .kv_type = type});
    for (const size_t dim : {1, 15, 16, 17, 31, 32, 33, 48, 80, 96, 100, 256}) {
      check({.group = 3, .key_dim = dim, .value_dim = dim, .end = 37, .kv_type = type, .tokens = 2});
    }
    check({.group = 16, .key_dim = 576, .value_dim = 512, .capacity = 320, .end = 270, .kv_type = type});
    check({.group = 1,
           .key_dim = 20,
           .value_dim = 20,
           .capacity = 48,
           .begin = 300,
           .end = 333,
           .sinks = true,
           .kv_type = type,
           .tokens = 4});
  }
}

TEST(Attention, TilesOfTokens) {
  for (const size_t tokens : {2, 3, 5, 16, 37}) {
    for (const size_t group : {1, 2, 3, 4, 7}) {
      check({.group = group, .key_dim = 32, .value_dim = 48, .end = 1, .tokens = tokens});
      check({.group = group, .key_dim = 32, .value_dim = 32, .end = 240, .tokens = tokens});
    }
  }
  check({.group = 16, .key_dim = 576, .value_dim = 512, .end = 250, .tokens = 9});
  check({.group = 4, .key_dim = 256, .value_dim = 256, .capacity = 1024, .end = 700, .tokens = 33});
}

TEST(Attention, TilesInWindows) {
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    for (const size_t window : {1, 2, 5, 17, 100}) {
      for (const size_t end : {250, 255, 256, 257, 300, 511}) {
        const size_t begin = end - window;
        check({.group = 3,
               .key_dim = 16,
               .value_dim = 16,
               .capacity = 160,
               .begin = begin,
               .end = end,
               .kv_type = type,
               .tokens = 13});
      }
    }
  }
  check({.group = 2, .capacity = 608, .begin = 200, .end = 712, .softcap = 3.0f, .sinks = true, .tokens = 40});
}

// What one token does not see must not reach it, even if it is no number.
TEST(Attention, NumbersThatAreNone) {
  for (const KvType type : kAllTypes) {
    check({.group = 2, .key_dim = 32, .value_dim = 40, .end = 2, .kv_type = type, .tokens = 20, .poison = true});
    check({.group = 5,
           .key_dim = 32,
           .value_dim = 40,
           .capacity = 64,
           .begin = 250,
           .end = 255,
           .kv_type = type,
           .tokens = 20,
           .poison = true});
  }
}

// Every ISA stores the same bytes.
TEST(KvStore, EqualsTheScalarOne) {
  for (size_t type = 0; type < kKvTypes; ++type) {
    for (const size_t dim : test::lengths()) {
      const std::vector<float> plain = Random(dim).vector(dim, -300, 300);
      for (const std::vector<float>& x : {plain, test::with_specials(dim, dim), std::vector<float>(dim, 1e-6f)}) {
        for (const size_t slot : {0, 5, 31}) {
          const auto stored = [&](auto fn) {
            std::vector<uint8_t> bytes(32 * kv_bytes(static_cast<KvType>(type), dim), 0xee);
            fn(x.data(), dim, bytes.data(), slot);
            return bytes;
          };
          const auto key = stored(reference<StoreKeyFn>(kStoreKey[type]));
          const auto value = stored(reference<StoreValueFn>(kStoreValue[type]));
          for_each_kernel<StoreKeyFn>(kStoreKey[type], [&](StoreKeyFn fn) { EXPECT_EQ(stored(fn), key); });
          for_each_kernel<StoreValueFn>(kStoreValue[type], [&](StoreValueFn fn) { EXPECT_EQ(stored(fn), value); });
        }
      }
    }
  }
}

// A chunk whose scores lie far below those of another: its weight is a denormal number or zero, in either order.
TEST(Attention, ScoresFarApart) {
  const size_t dim = 16, positions = 600;
  for (const bool first_is_large : {true, false}) {
    std::vector<float> k(608 * dim, 0), v(608 * dim, 0), q(dim, 0), out(dim), want(dim);
    q[0] = 1;
    for (size_t p = 0; p < positions; ++p) {
      const float score = (p < 256) == first_is_large ? 95.0f : 0.25f * static_cast<float>(p % 7);
      std::vector<float> key(dim, 0), value(dim, static_cast<float>(p % 5) - 2);
      key[0] = score;
      reference<StoreKeyFn>(Op::store_key_f32)(key.data(), dim, k.data(), p);
      reference<StoreValueFn>(Op::store_value_f32)(value.data(), dim, v.data(), p);
    }
    std::vector<float> scratch(attention_scratch_floats(1, dim));
    const auto run = [&](AttentionFn fn, float* result) {
      AttentionArgs args{};
      args.q = q.data();
      args.tokens = args.group = 1;
      args.q_stride = args.q_token_stride = args.key_dim = args.value_dim = args.out_stride = dim;
      args.kv_type = KvType::f32;
      args.k = k.data();
      args.v = v.data();
      args.capacity = 608;
      args.end = positions;
      args.scale = 1;
      args.out = result;
      args.scratch = scratch.data();
      fn(args);
    };
    run(reference<AttentionFn>(Op::attention), want.data());
    EXPECT_TRUE(std::isfinite(want[0]));
    for_each_kernel<AttentionFn>(Op::attention, [&](AttentionFn fn) {
      run(fn, out.data());
      EXPECT_TRUE(same_bytes(out, want));
    });
  }
}

}  // namespace
}  // namespace ridge
