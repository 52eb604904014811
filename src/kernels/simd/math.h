// exp, tanh and the activations for vectors of 16 floats: the operations of math.cpp in the same order, so the same
// bytes.
//
// V is the ISA's Vec (avx2/vec.h, avx512/vec.h), a type of an unnamed namespace: that gives every function here
// internal linkage, one copy per ISA file, and the linker nothing to choose from. Only templates over V may stand here.
//
//   typename V::F p = Math<V>::exp(V::sub(V::load(x), V::set(max)));
#pragma once

namespace ridge::simd {

template <class V>
struct Math {
  using F = typename V::F;

  static inline F exp(F x) {
    // min returns its second operand where one is NaN, and NaN is not less than anything: so NaN passes.
    x = V::min(V::set(89.0f), V::select_less(x, V::set(-87.0f), V::set(-104.0f), x));
    const F round = V::set(12582912.0f);
    const F n = V::sub(V::fma(x, V::set(0x1.715476p+0f), round), round);
    F r = V::fma(n, V::set(-0x1.62e43p-1f), x);
    r = V::fma(n, V::set(0x1.05c61p-29f), r);
    F p = V::set(0x1.6a23d0p-10f);
    p = V::fma(p, r, V::set(0x1.123a20p-7f));
    p = V::fma(p, r, V::set(0x1.5558f2p-5f));
    p = V::fma(p, r, V::set(0x1.555492p-3f));
    p = V::fma(p, r, V::set(0x1.fffffcp-2f));
    p = V::fma(p, r, V::set(1.0f));
    p = V::fma(p, r, V::set(1.0f));
    return V::times_power_of_two(p, n);
  }

  static inline F tanh(F x) {
    const F a = V::abs(x);
    const F t = V::mul(a, a);
    F p = V::set(-0x1.75e1ccp-8f);
    p = V::fma(p, t, V::set(0x1.52269cp-6f));
    p = V::fma(p, t, V::set(-0x1.b83c5ap-5f));
    p = V::fma(p, t, V::set(0x1.110726p-3f));
    p = V::fma(p, t, V::set(-0x1.555532p-2f));
    const F small = V::fma(V::mul(a, t), p, a);
    const F e = exp(V::add(a, a));
    const F large = V::sub(V::set(1.0f), V::div(V::set(2.0f), V::add(e, V::set(1.0f))));
    return V::copy_sign(V::select_less(a, V::set(0.625f), small, large), x);
  }

  static inline F silu(F x) { return V::div(x, V::add(V::set(1.0f), exp(V::negate(x)))); }

  static inline F gelu(F x) {
    const F z = V::mul(V::abs(x), V::set(0x1.6a09e6p-1f));
    const F t = V::div(V::set(1.0f), V::fma(z, V::set(0.5f), V::set(1.0f)));
    F p = V::set(0x1.1f6b46p-3f);
    p = V::fma(p, t, V::set(-0x1.4fcef8p-1f));
    p = V::fma(p, t, V::set(0x1.192230p+0f));
    p = V::fma(p, t, V::set(-0x1.3cbe6ap-1f));
    p = V::fma(p, t, V::set(-0x1.271acap-3f));
    p = V::fma(p, t, V::set(0x1.1de826p-5f));
    p = V::fma(p, t, V::set(0x1.7d747ap-6f));
    p = V::fma(p, t, V::set(0x1.8e505cp-2f));
    p = V::fma(p, t, V::set(0x1.ff29acp-1f));
    p = V::fma(p, t, V::set(-0x1.43f38cp+0f));
    const F e = exp(V::fma(V::negate(z), z, p));
    const F tail = V::mul(V::mul(x, V::set(0.5f)), V::mul(t, e));
    return V::select_less(x, V::zero(), tail, V::sub(x, tail));
  }

  static inline F gelu_tanh(F x) {
    const F w = V::fma(V::mul(x, x), V::set(-0x1.2444f2p-4f), V::set(-0x1.988454p+0f));
    return V::div(x, V::add(V::set(1.0f), exp(V::mul(x, w))));
  }
};

}  // namespace ridge::simd
