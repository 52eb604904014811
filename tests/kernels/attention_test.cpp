// Attention, from the one list: byte for byte the scalar one, and the scalar one close to a softmax in double
// precision.

#include <cstring>

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
};

std::string text_of(const Case& c) {
  return "group " + std::to_string(c.group) + ", key " + std::to_string(c.key_dim) + ", value " +
         std::to_string(c.value_dim) + ", capacity " + std::to_string(c.capacity) + ", positions " +
         std::to_string(c.begin) + " to " + std::to_string(c.end) + ", softcap " + std::to_string(c.softcap) +
         (c.sinks ? ", sinks" : "") + (c.kv_type == KvType::f16 ? ", f16" : ", f32");
}

// A cache filled position by position, as a conversation does, and one token's queries.
class Fixture {
 public:
  explicit Fixture(const Case& c) : c_(c) {
    Random random(c.group * 1000003 + c.key_dim * 1009 + c.end);
    const size_t element = c.kv_type == KvType::f16 ? 2 : 4;
    k_.assign(c.capacity * c.key_dim * element, 0xff);  // NaN until a position is stored there
    v_.assign(c.capacity * c.value_dim * element, 0xff);
    const auto store_key = reference<StoreKeyFn>(c.kv_type == KvType::f16 ? Op::store_key_f16 : Op::store_key_f32);
    const auto store_value =
        reference<StoreValueFn>(c.kv_type == KvType::f16 ? Op::store_value_f16 : Op::store_value_f32);
    const size_t oldest = c.end > c.capacity ? c.end - c.capacity : 0;
    for (size_t p = oldest; p < c.end; ++p) {
      keys_.push_back(random.vector(c.key_dim, -1, 1));
      values_.push_back(random.vector(c.value_dim, -1, 1));
      store_key(keys_.back().data(), c.key_dim, k_.data(), p % c.capacity);
      store_value(values_.back().data(), c.value_dim, v_.data(), p % c.capacity);
    }
    oldest_ = oldest;
    q_ = random.vector(c.group * (c.key_dim + 3), -3, 3);
    sinks_ = random.vector(c.group, -2, 4);
  }

  std::vector<float> run(AttentionFn fn) const {
    const size_t out_stride = c_.value_dim + 5;
    std::vector<float> out(c_.group * out_stride, 7.0f);
    std::vector<float> scratch(attention_scratch_floats(c_.group, c_.value_dim) + 1, 7.0f);
    AttentionArgs args{};
    args.q = q_.data();
    args.group = c_.group;
    args.q_stride = c_.key_dim + 3;
    args.key_dim = c_.key_dim;
    args.value_dim = c_.value_dim;
    args.kv_type = c_.kv_type;
    args.k = k_.data();
    args.v = v_.data();
    args.capacity = c_.capacity;
    args.begin = c_.begin;
    args.end = c_.end;
    args.scale = scale();
    args.softcap = c_.softcap;
    args.sinks = c_.sinks ? sinks_.data() : nullptr;
    args.out = out.data();
    args.out_stride = out_stride;
    args.scratch = scratch.data();
    fn(args);
    EXPECT_EQ(scratch.back(), 7.0f) << "scratch overrun";
    return out;
  }

  // The definition, in double precision and without chunks.
  std::vector<double> exact(size_t head) const {
    std::vector<double> scores, out(c_.value_dim, 0.0);
    double max = c_.sinks ? sinks_[head] : -HUGE_VAL;
    for (size_t p = c_.begin; p < c_.end; ++p) {
      double s = 0;
      for (size_t i = 0; i < c_.key_dim; ++i)
        s += static_cast<double>(q_[head * (c_.key_dim + 3) + i]) * stored(keys_, p, i);
      s *= scale();
      if (c_.softcap != 0) s = c_.softcap * std::tanh(s / c_.softcap);
      scores.push_back(s);
      max = std::max(max, s);
    }
    double sum = c_.sinks ? std::exp(sinks_[head] - max) : 0;
    for (size_t p = c_.begin; p < c_.end; ++p) {
      const double weight = std::exp(scores[p - c_.begin] - max);
      sum += weight;
      for (size_t i = 0; i < c_.value_dim; ++i) out[i] += weight * stored(values_, p, i);
    }
    for (double& x : out) x /= sum;
    return out;
  }

 private:
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(c_.key_dim)); }
  double stored(const std::vector<std::vector<float>>& rows, size_t p, size_t i) const {
    const float x = rows[p - oldest_][i];
    return c_.kv_type == KvType::f16 ? f16_to_f32(f32_to_f16(x)) : x;
  }

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
  for (size_t h = 0; h < c.group; ++h) {
    const std::vector<double> exact = fixture.exact(h);
    for (size_t i = 0; i < c.value_dim; ++i)
      ASSERT_NEAR(want[h * (c.value_dim + 5) + i], exact[i], 3e-6) << h << " " << i;
    for (size_t i = c.value_dim; i < c.value_dim + 5; ++i) ASSERT_EQ(want[h * (c.value_dim + 5) + i], 7.0f);
  }
  for_each_kernel<AttentionFn>(Op::attention, [&](AttentionFn fn) { ASSERT_TRUE(same_bytes(fixture.run(fn), want)); });
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

TEST(Attention, FloatCache) {
  check({.group = 4, .end = 300, .kv_type = KvType::f32});
  check({.group = 1,
         .key_dim = 20,
         .value_dim = 20,
         .capacity = 48,
         .begin = 300,
         .end = 333,
         .sinks = true,
         .kv_type = KvType::f32});
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
      AttentionArgs args{q.data(), 1,         dim,  dim,  dim,     KvType::f32, k.data(), v.data(),      608,
                         0,        positions, 1.0f, 0.0f, nullptr, result,      dim,      scratch.data()};
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
