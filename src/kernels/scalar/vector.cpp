// The reference for quantising, norms, activations, rope and cache stores: plain loops that follow the contract of
// kernels.h word by word. Every other ISA is compared with these, byte for byte. Speed is not a goal: std::fma is a
// call where the baseline CPU has no such instruction.

#include <bit>
#include <cmath>

#include "kernels/entries.h"
#include "kernels/math.h"

namespace ridge::scalar {
namespace {

// Rule 4: lane i % 16 takes element i, and the lanes end in a tree.
struct Lanes {
  float lane[16] = {};

  float sum() const {
    float t[16];
    for (size_t i = 0; i < 16; ++i) t[i] = lane[i];
    for (size_t step = 8; step > 0; step /= 2) {
      for (size_t i = 0; i < step; ++i) t[i] = t[i] + t[i + step];
    }
    return t[0];
  }
};

// One block of up to 32 values; what is missing counts as zero.
void quantize_block(const float* x, size_t count, int8_t* q, float* d, int32_t* sums) {
  // The bits of magnitudes order like the numbers, NaN above infinity above all others: a NaN or an infinity makes d
  // itself NaN or infinite, and with it everything that is computed from the block.
  uint32_t magnitude = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    if (bits > magnitude) magnitude = bits;
  }
  *d = std::bit_cast<float>(magnitude) / 127.0f;
  const bool usable = *d > 0 && *d <= __FLT_MAX__;
  sums[0] = sums[1] = 0;
  for (size_t i = 0; i < 32; ++i) {
    float v = 0;
    if (usable && i < count) {
      v = x[i] / *d;
      v = v < -127.0f ? -127.0f : v;  // only where d is denormal, and so coarse
      v = v > 127.0f ? 127.0f : v;
    }
    constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: to the nearest integer, ties to even
    q[i] = static_cast<int8_t>((v + kRound) - kRound);
    sums[i / 16] += q[i];
  }
}

void quantize(const float* x, size_t n, int8_t* q, float* d, int32_t* sums) {
  for (size_t i = 0; i < n; i += 32) {
    quantize_block(x + i, n - i < 32 ? n - i : 32, q + i, d + i / 32, sums + i / 16);
  }
}

void rms_norm(const float* x, const float* w, size_t n, float eps, float* out) {
  Lanes squares;
  for (size_t i = 0; i < n; ++i) squares.lane[i % 16] = std::fma(x[i], x[i], squares.lane[i % 16]);
  const float inverse = 1.0f / std::sqrt(squares.sum() / static_cast<float>(n) + eps);
  for (size_t i = 0; i < n; ++i) {
    const float y = x[i] * inverse;
    out[i] = w != nullptr ? y * w[i] : y;
  }
}

void layer_norm(const float* x, const float* scale, const float* shift, size_t n, float eps, float* out) {
  const float count = static_cast<float>(n);
  Lanes values, squares;
  for (size_t i = 0; i < n; ++i) values.lane[i % 16] += x[i];
  const float mean = values.sum() / count;
  for (size_t i = 0; i < n; ++i) {
    const float d = x[i] - mean;
    squares.lane[i % 16] = std::fma(d, d, squares.lane[i % 16]);
  }
  const float inverse = 1.0f / std::sqrt(squares.sum() / count + eps);
  for (size_t i = 0; i < n; ++i) out[i] = std::fma((x[i] - mean) * inverse, scale[i], shift[i]);
}

void gelu(size_t n, float* inout) {
  for (size_t i = 0; i < n; ++i) inout[i] = gelu_f32(inout[i]);
}

void add_scaled(const float* factors, const float* x, size_t n, float* inout) {
  for (size_t i = 0; i < n; ++i) inout[i] = std::fma(factors[i], x[i], inout[i]);
}

void pack_activations(const float* x, size_t x_stride, size_t tokens, size_t cols, float* packed) {
  for (size_t t = 0; t < tokens;) {
    const size_t left = tokens - t, n = left >= 12 ? 12 : left >= 4 ? 4 : left;
    for (size_t c = 0; c < cols; ++c) {
      for (size_t i = 0; i < n; ++i) packed[t * cols + c * n + i] = x[(t + i) * x_stride + c];
    }
    t += n;
  }
}

void add(const float* a, size_t n, float* inout) {
  for (size_t i = 0; i < n; ++i) inout[i] = inout[i] + a[i];
}

void scale(float factor, size_t n, float* inout) {
  for (size_t i = 0; i < n; ++i) inout[i] = inout[i] * factor;
}

void swiglu(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = silu_f32(gate[i]) * up[i];
}

void geglu(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = gelu_tanh_f32(gate[i]) * up[i];
}

void softcap(float cap, size_t n, float* inout) {
  for (size_t i = 0; i < n; ++i) inout[i] = cap * tanh_f32(inout[i] / cap);
}

void rotate(float* a, float* b, float cos, float sin) {
  const float x = *a, y = *b;
  *a = std::fma(x, cos, -(y * sin));
  *b = std::fma(y, cos, x * sin);
}

void rope_norm(float* head, size_t rot, const float* cos_sin) {
  for (size_t i = 0; i < rot / 2; ++i) rotate(head + 2 * i, head + 2 * i + 1, cos_sin[2 * i], cos_sin[2 * i + 1]);
}

void rope_neox(float* head, size_t rot, const float* cos_sin) {
  for (size_t i = 0; i < rot / 2; ++i) rotate(head + i, head + i + rot / 2, cos_sin[2 * i], cos_sin[2 * i + 1]);
}

}  // namespace

const KernelEntry kVectorEntries[] = {
    {Op::quantize, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(quantize), "scalar"},
    {Op::rms_norm, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(rms_norm), "scalar"},
    {Op::add, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(add), "scalar"},
    {Op::scale, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(scale), "scalar"},
    {Op::swiglu, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(swiglu), "scalar"},
    {Op::geglu, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(geglu), "scalar"},
    {Op::softcap, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(softcap), "scalar"},
    {Op::layer_norm, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(layer_norm), "scalar"},
    {Op::gelu, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(gelu), "scalar"},
    {Op::add_scaled, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(add_scaled), "scalar"},
    {Op::pack_activations, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(pack_activations), "scalar"},
    {Op::rope_norm, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(rope_norm), "scalar"},
    {Op::rope_neox, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(rope_neox), "scalar"},
};
const size_t kVectorCount = sizeof(kVectorEntries) / sizeof(kVectorEntries[0]);

}  // namespace ridge::scalar
