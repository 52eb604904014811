// The reference for attention: one query head at a time, chunk by chunk, as AttentionArgs says. See kernels.h.

#include <cmath>

#include "kernels/entries.h"
#include "kernels/math.h"
#include "tensor/half.h"

namespace ridge::scalar {
namespace {

constexpr size_t kChunk = 256;

float key_at(const AttentionArgs& a, size_t position, size_t i) {
  const size_t slot = position % a.capacity;
  const size_t index = slot / 16 * 16 * a.key_dim + i * 16 + slot % 16;
  if (a.kv_type == KvType::f16) return f16_to_f32(static_cast<const uint16_t*>(a.k)[index]);
  return static_cast<const float*>(a.k)[index];
}

float value_at(const AttentionArgs& a, size_t position, size_t i) {
  const size_t index = position % a.capacity * a.value_dim + i;
  if (a.kv_type == KvType::f16) return f16_to_f32(static_cast<const uint16_t*>(a.v)[index]);
  return static_cast<const float*>(a.v)[index];
}

float score(const AttentionArgs& a, const float* q, size_t position) {
  float acc = 0;
  for (size_t i = 0; i < a.key_dim; ++i) acc = std::fma(q[i], key_at(a, position, i), acc);
  const float s = acc * a.scale;
  return a.softcap != 0 ? a.softcap * tanh_f32(s / a.softcap) : s;
}

// What has been merged so far: the largest score, the sum of exp(score − max); the outputs are in `out`.
struct Merged {
  bool empty = true;
  float max = 0, sum = 0;
};

float tree_sum(float* lane) {
  for (size_t step = 8; step > 0; step /= 2) {
    for (size_t i = 0; i < step; ++i) lane[i] = lane[i] + lane[i + step];
  }
  return lane[0];
}

// Positions [begin, end) of one chunk. p: [256] by position % 256.
void attend_chunk(const AttentionArgs& a, const float* q, size_t begin, size_t end, float* p, Merged& merged,
                  float* out) {
  float max = -HUGE_VALF;
  for (size_t t = begin; t < end; ++t) {
    p[t % kChunk] = score(a, q, t);
    max = p[t % kChunk] > max ? p[t % kChunk] : max;
  }
  float lane[16] = {};
  for (size_t t = begin; t < end; ++t) {
    p[t % kChunk] = exp_f32(p[t % kChunk] - max);
    lane[t % 16] += p[t % kChunk];
  }
  const float sum = tree_sum(lane);

  const float new_max = merged.empty || max > merged.max ? max : merged.max;
  const float old_factor = merged.empty ? 0.0f : exp_f32(merged.max - new_max);
  const float new_factor = exp_f32(max - new_max);
  for (size_t i = 0; i < a.value_dim; ++i) {
    float o = 0;
    for (size_t t = begin; t < end; ++t) o = std::fma(p[t % kChunk], value_at(a, t, i), o);
    out[i] = merged.empty ? o : std::fma(out[i], old_factor, o * new_factor);
  }
  merged.sum = merged.empty ? sum : std::fma(merged.sum, old_factor, sum * new_factor);
  merged.max = new_max;
  merged.empty = false;
}

void attend_head(const AttentionArgs& a, size_t head) {
  const float* q = a.q + head * a.q_stride;
  float* out = a.out + head * a.out_stride;
  Merged merged;
  for (size_t chunk = a.begin / kChunk * kChunk; chunk < a.end; chunk += kChunk) {
    const size_t begin = chunk > a.begin ? chunk : a.begin;
    const size_t end = chunk + kChunk < a.end ? chunk + kChunk : a.end;
    attend_chunk(a, q, begin, end, a.scratch, merged, out);
  }
  float factor = 1;
  if (a.sinks != nullptr) {
    const float sink = a.sinks[head];
    const float max = sink > merged.max ? sink : merged.max;
    factor = exp_f32(merged.max - max);
    merged.sum = std::fma(merged.sum, factor, exp_f32(sink - max));
  }
  for (size_t i = 0; i < a.value_dim; ++i) out[i] = out[i] * factor / merged.sum;
}

void attention(const AttentionArgs& a) {
  for (size_t head = 0; head < a.group; ++head) attend_head(a, head);
}

}  // namespace

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(attention), "scalar"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::scalar
