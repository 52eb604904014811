// Every kernel but the matrix products and attention, from the one list: byte for byte the scalar one, and the scalar
// one close to the definition in double precision.

#include "kernels/kernels.h"
#include "tensor/half.h"
#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

using test::for_each_kernel;
using test::lengths;
using test::Random;
using test::reference;
using test::same_bytes;
using test::with_specials;

constexpr float kGuard = 12345.0f;  // stands behind every output: a kernel that writes too far changes it

std::vector<float> guarded(std::vector<float> v) {
  v.resize(v.size() + 20, kGuard);
  return v;
}

// ---- Quantising -----------------------------------------------------------------------------------------------------

struct Quantized {
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int32_t> sums;
};

Quantized quantize(QuantizeFn fn, const std::vector<float>& x) {
  const size_t blocks = (x.size() + 31) / 32;
  Quantized out{std::vector<int8_t>(32 * blocks + 16, 99), std::vector<float>(blocks + 2, kGuard),
                std::vector<int32_t>(2 * blocks + 2, 99)};
  fn(x.data(), x.size(), out.q.data(), out.d.data(), out.sums.data());
  return out;
}

void expect_equal(const Quantized& got, const Quantized& want, size_t n) {
  EXPECT_EQ(got.q, want.q) << n;
  EXPECT_TRUE(same_bytes(got.d, want.d)) << n;
  EXPECT_EQ(got.sums, want.sums) << n;
}

TEST(Quantize, EveryKernelEqualsTheScalarOne) {
  const auto scalar = reference<QuantizeFn>(Op::quantize);
  for_each_kernel<QuantizeFn>(Op::quantize, [&](QuantizeFn fn) {
    for (const size_t n : lengths()) {
      Random random(n);
      for (const float range : {4.0f, 1e-30f, 1e-42f, 1e38f}) {
        const auto x = random.vector(n, -range, range);
        expect_equal(quantize(fn, x), quantize(scalar, x), n);
      }
      const auto x = with_specials(n, n);
      expect_equal(quantize(fn, x), quantize(scalar, x), n);
    }
  });
}

TEST(Quantize, FollowsItsDefinition) {
  Random random(3);
  const auto x = random.vector(32 * 40 + 7);
  const Quantized out = quantize(reference<QuantizeFn>(Op::quantize), x);
  for (size_t b = 0; b < 41; ++b) {
    float amax = 0;
    for (size_t i = 32 * b; i < std::min(x.size(), 32 * b + 32); ++i) amax = std::max(amax, std::fabs(x[i]));
    EXPECT_EQ(out.d[b], amax / 127.0f);
    int32_t sums[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) {
      const size_t at = 32 * b + i;
      const int want = at < x.size() ? static_cast<int>(std::nearbyint(x[at] / out.d[b])) : 0;
      ASSERT_EQ(out.q[at], want) << at;
      sums[i / 16] += want;
    }
    EXPECT_EQ(out.sums[2 * b], sums[0]);
    EXPECT_EQ(out.sums[2 * b + 1], sums[1]);
  }
}

TEST(Quantize, TiesGoToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // d = 1
  x[1] = 0.5f, x[2] = 1.5f, x[3] = 2.5f, x[4] = -0.5f, x[5] = -1.5f, x[6] = 126.5f;
  for_each_kernel<QuantizeFn>(Op::quantize, [&](QuantizeFn fn) {
    const Quantized out = quantize(fn, x);
    EXPECT_EQ((std::vector<int8_t>(out.q.begin(), out.q.begin() + 7)), (std::vector<int8_t>{127, 0, 2, 2, 0, -2, 126}));
  });
}

TEST(Quantize, WhatIsNotFiniteStaysVisible) {
  for_each_kernel<QuantizeFn>(Op::quantize, [&](QuantizeFn fn) {
    std::vector<float> x(64, 1.0f);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    x[40] = -std::numeric_limits<float>::infinity();
    const Quantized out = quantize(fn, x);
    EXPECT_TRUE(std::isnan(out.d[0]));
    EXPECT_TRUE(std::isinf(out.d[1]));
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(out.q[i], 0);
  });
}

// ---- Element by element ---------------------------------------------------------------------------------------------

// run(fn, data of n values) for every kernel and length, with ordinary and with special values.
template <class Function, class Run>
void compare_with_scalar(Op op, Run run) {
  const auto scalar = reference<Function>(op);
  for_each_kernel<Function>(op, [&](Function fn) {
    for (const size_t n : lengths()) {
      Random random(n);
      const auto plain = random.vector(2 * n);
      const auto special = with_specials(2 * n, n + 1000);
      ASSERT_TRUE(same_bytes(run(fn, plain, n), run(scalar, plain, n))) << "n = " << n;
      ASSERT_TRUE(same_bytes(run(fn, special, n), run(scalar, special, n))) << "n = " << n << ", special values";
    }
  });
}

std::vector<float> head(const std::vector<float>& v, size_t n) { return {v.begin(), v.begin() + static_cast<long>(n)}; }

TEST(Vector, AddEqualsScalar) {
  compare_with_scalar<AddFn>(Op::add, [](AddFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    fn(v.data() + n, n, out.data());
    return out;
  });
}

TEST(Vector, ScaleEqualsScalar) {
  compare_with_scalar<ScaleFn>(Op::scale, [](ScaleFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    fn(1.7f, n, out.data());
    return out;
  });
}

TEST(Vector, RmsNormEqualsScalar) {
  compare_with_scalar<RmsNormFn>(Op::rms_norm, [](RmsNormFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    fn(out.data(), v.data() + n, n, 1e-5f, out.data());
    auto unweighted = guarded(std::vector<float>(n));
    fn(v.data(), nullptr, n, 1e-6f, unweighted.data());
    out.insert(out.end(), unweighted.begin(), unweighted.end());
    return out;
  });
}

TEST(Vector, LayerNormEqualsScalar) {
  compare_with_scalar<LayerNormFn>(Op::layer_norm, [](LayerNormFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(std::vector<float>(n));
    fn(v.data(), v.data() + n, v.data() + n / 2, n, 1e-6f, out.data());
    auto in_place = guarded(head(v, n));
    fn(in_place.data(), v.data() + n, v.data() + n / 2, n, 1e-6f, in_place.data());
    EXPECT_TRUE(same_bytes(out, in_place));
    return out;
  });
}

TEST(Vector, AddScaledEqualsScalar) {
  compare_with_scalar<AddScaledFn>(Op::add_scaled, [](AddScaledFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    fn(v.data() + n, v.data() + n / 2, n, out.data());
    return out;
  });
}

TEST(Vector, GeluEqualsScalar) {
  compare_with_scalar<GeluFn>(Op::gelu, [](GeluFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    fn(n, out.data());
    return out;
  });
}

TEST(Vector, GluEqualsScalar) {
  for (const Op op : {Op::swiglu, Op::geglu}) {
    compare_with_scalar<GluFn>(op, [](GluFn fn, const std::vector<float>& v, size_t n) {
      auto out = guarded(head(v, n));
      fn(out.data(), v.data() + n, n, out.data());
      return out;
    });
  }
}

TEST(Vector, ActivationsEqualScalarOverTheirWholeRange) {
  std::vector<float> x;
  for (float v = -130.0f; v < 130.0f; v += 0x1.7p-7f) x.push_back(v);
  const std::vector<float> one(x.size(), 1.0f);
  for (const Op op : {Op::swiglu, Op::geglu}) {
    std::vector<float> want(x.size()), got(x.size());
    reference<GluFn>(op)(x.data(), one.data(), x.size(), want.data());
    for_each_kernel<GluFn>(op, [&](GluFn fn) {
      fn(x.data(), one.data(), x.size(), got.data());
      EXPECT_TRUE(same_bytes(got, want));
    });
  }
}

TEST(Vector, GeluEqualsScalarOverItsWholeRange) {
  std::vector<float> x;
  for (float v = -20.0f; v < 20.0f; v += 0x1.7p-9f) x.push_back(v);
  std::vector<float> want = x;
  reference<GeluFn>(Op::gelu)(want.size(), want.data());
  for_each_kernel<GeluFn>(Op::gelu, [&](GeluFn fn) {
    std::vector<float> got = x;
    fn(got.size(), got.data());
    EXPECT_TRUE(same_bytes(got, want));
  });
}

TEST(Vector, SoftcapEqualsScalar) {
  compare_with_scalar<SoftcapFn>(Op::softcap, [](SoftcapFn fn, const std::vector<float>& v, size_t n) {
    auto out = guarded(head(v, n));
    for (size_t i = 0; i < n; ++i) out[i] *= 20;
    fn(30.0f, n, out.data());
    return out;
  });
}

TEST(Vector, RopeEqualsScalar) {
  for (const Op op : {Op::rope_norm, Op::rope_neox}) {
    compare_with_scalar<RopeFn>(op, [](RopeFn fn, const std::vector<float>& v, size_t n) {
      const size_t rot = n / 2 * 2;
      auto out = guarded(head(v, n));
      fn(out.data(), rot, v.data() + n);
      return out;
    });
  }
}

TEST(Vector, StoresEqualScalar) {
  for (const Op op : {Op::store_key_f16, Op::store_value_f16}) {
    compare_with_scalar<StoreKeyFn>(op, [](StoreKeyFn fn, const std::vector<float>& v, size_t n) {
      std::vector<uint16_t> cache(48 * n + 16, 0x7777);
      fn(v.data(), n, cache.data(), 3);
      fn(v.data() + n, n, cache.data(), 37);
      return std::vector<float>(cache.begin(), cache.end());
    });
  }
  for (const Op op : {Op::store_key_f32, Op::store_value_f32}) {
    compare_with_scalar<StoreKeyFn>(op, [](StoreKeyFn fn, const std::vector<float>& v, size_t n) {
      std::vector<float> cache(48 * n + 16, kGuard);
      fn(v.data(), n, cache.data(), 3);
      fn(v.data() + n, n, cache.data(), 37);
      return cache;
    });
  }
}

// ---- The scalar kernels against double precision --------------------------------------------------------------------

TEST(ScalarVector, LayerNormIsCloseToItsDefinition) {
  Random random(11);
  constexpr size_t kN = 333;
  auto x = random.vector(kN);
  for (float& v : x) v += 3;
  const auto scale = random.vector(kN), shift = random.vector(kN);
  std::vector<float> out(kN);
  reference<LayerNormFn>(Op::layer_norm)(x.data(), scale.data(), shift.data(), kN, 1e-6f, out.data());
  double mean = 0, variance = 0;
  for (const float v : x) mean += static_cast<double>(v) / kN;
  for (const float v : x) variance += (v - mean) * (v - mean) / kN;
  for (size_t i = 0; i < kN; ++i) {
    EXPECT_NEAR(out[i], (x[i] - mean) / std::sqrt(variance + 1e-6) * scale[i] + shift[i], 3e-6) << i;
  }
}

TEST(ScalarVector, RmsNormIsCloseToItsDefinition) {
  Random random(5);
  for (const size_t n : {1, 17, 576, 4096}) {
    const auto x = random.vector(n), w = random.vector(n);
    std::vector<float> out(n);
    reference<RmsNormFn>(Op::rms_norm)(x.data(), w.data(), n, 1e-5f, out.data());
    double squares = 0;
    for (const float v : x) squares += static_cast<double>(v) * v;
    const double root = std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-5f));
    for (size_t i = 0; i < n; ++i) {
      const double want = x[i] / root * w[i];
      ASSERT_NEAR(out[i], want, 1e-6 * std::fabs(want) + 1e-30) << i;
    }
  }
}

TEST(ScalarVector, RopeTurnsPairs) {
  const size_t rot = 10;
  Random random(6);
  const auto x = random.vector(rot), angles = random.vector(rot / 2);
  std::vector<float> cos_sin(rot);
  for (size_t i = 0; i < rot / 2; ++i) cos_sin[2 * i] = std::cos(angles[i]), cos_sin[2 * i + 1] = std::sin(angles[i]);
  auto norm = x, neox = x;
  reference<RopeFn>(Op::rope_norm)(norm.data(), rot, cos_sin.data());
  reference<RopeFn>(Op::rope_neox)(neox.data(), rot, cos_sin.data());
  for (size_t i = 0; i < rot / 2; ++i) {
    const double c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
    EXPECT_NEAR(norm[2 * i], x[2 * i] * c - x[2 * i + 1] * s, 1e-6);
    EXPECT_NEAR(norm[2 * i + 1], x[2 * i] * s + x[2 * i + 1] * c, 1e-6);
    EXPECT_NEAR(neox[i], x[i] * c - x[i + 5] * s, 1e-6);
    EXPECT_NEAR(neox[i + 5], x[i] * s + x[i + 5] * c, 1e-6);
  }
}

TEST(ScalarVector, ExpSumAndSoftcapAreClose) {
  Random random(7);
  auto x = random.vector(1000, -20, 20);
  const auto before = x;
  reference<SoftcapFn>(Op::softcap)(15.0f, x.size(), x.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], 15 * std::tanh(before[i] / 15.0), 4e-6);
}

TEST(ScalarVector, StoresLandWhereTheLayoutSays) {
  const size_t dim = 5;
  Random random(8);
  const auto k = random.vector(dim);
  std::vector<float> keys(3 * 16 * dim, kGuard), values(48 * dim, kGuard);
  reference<StoreKeyFn>(Op::store_key_f32)(k.data(), dim, keys.data(), 35);
  reference<StoreValueFn>(Op::store_value_f32)(k.data(), dim, values.data(), 35);
  for (size_t i = 0; i < dim; ++i) {
    EXPECT_EQ(keys[2 * 16 * dim + 16 * i + 3], k[i]);  // panel 2, place 3
    EXPECT_EQ(values[35 * dim + i], k[i]);
  }
  EXPECT_EQ(std::count(keys.begin(), keys.end(), kGuard), static_cast<long>(keys.size() - dim));

  std::vector<uint16_t> halves(3 * 16 * dim);
  reference<StoreKeyFn>(Op::store_key_f16)(k.data(), dim, halves.data(), 35);
  for (size_t i = 0; i < dim; ++i) EXPECT_NEAR(f16_to_f32(halves[2 * 16 * dim + 16 * i + 3]), k[i], 4 * 0x1p-11);
}

TEST(Vector, HalvesRoundToNearestEven) {
  // 1 + 2^-11 lies between 1 and 1 + 2^-10; 1 + 3 · 2^-11 between the next two.
  const std::vector<float> x = {1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, 65519.0f, 65520.0f, 0x1p-25f, 0x1.8p-24f, -0.0f};
  const std::vector<uint16_t> want = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0002, 0x8000};
  for_each_kernel<StoreValueFn>(Op::store_value_f16, [&](StoreValueFn fn) {
    std::vector<uint16_t> out(x.size());
    fn(x.data(), x.size(), out.data(), 0);
    EXPECT_EQ(out, want);
  });
}

}  // namespace
}  // namespace ridge
