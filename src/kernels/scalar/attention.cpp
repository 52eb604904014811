// The reference for attention: one query head of one token at a time, chunk by chunk, as AttentionArgs says; and what
// is stored for each KvType. See kernels.h.

#include <cmath>
#include <cstring>

#include "kernels/entries.h"
#include "kernels/math.h"
#include "tensor/half.h"

namespace ridge::scalar {
namespace {

constexpr size_t kChunk = kAttentionChunk;

// q8_0 (KvType): where the scale and the code of a dimension lie.
constexpr size_t kBlock = 32, kBlockBytes = 34, kPanelBytes = 16 * kBlockBytes;

template <class T>
T read(const void* base, size_t offset) {
  T x;
  std::memcpy(&x, static_cast<const uint8_t*>(base) + offset, sizeof x);
  return x;
}

float number(KvType type, const void* base, size_t index) {
  if (type == KvType::f16) return f16_to_f32(read<uint16_t>(base, 2 * index));
  if (type == KvType::bf16) return bf16_to_f32(read<uint16_t>(base, 2 * index));
  return read<float>(base, 4 * index);
}

float key_at(const AttentionArgs& a, size_t position, size_t i) {
  const size_t slot = position % a.capacity, panel = slot / 16 * 16, lane = slot % 16;
  if (a.kv_type != KvType::q8_0) return number(a.kv_type, a.k, panel * a.key_dim + i * 16 + lane);
  const size_t block = panel * kv_bytes(a.kv_type, a.key_dim) + i / kBlock * kPanelBytes;
  const int8_t code = read<int8_t>(a.k, block + 32 + i % kBlock * 16 + lane);
  return static_cast<float>(code) * f16_to_f32(read<uint16_t>(a.k, block + 2 * lane));
}

float value_at(const AttentionArgs& a, size_t position, size_t i) {
  const size_t slot = position % a.capacity;
  if (a.kv_type != KvType::q8_0) return number(a.kv_type, a.v, slot * a.value_dim + i);
  const size_t block = slot * kv_bytes(a.kv_type, a.value_dim) + i / kBlock * kBlockBytes;
  return static_cast<float>(read<int8_t>(a.v, block + 2 + i % kBlock)) * f16_to_f32(read<uint16_t>(a.v, block));
}

float score(const AttentionArgs& a, const float* q, size_t position) {
  float acc = 0;
  for (size_t i = 0; i < a.key_dim; ++i) acc = std::fma(q[i], key_at(a, position, i), acc);
  const float s = acc * a.scale;
  return a.softcap != 0 ? a.softcap * tanh_f32(s / a.softcap) : s;
}

// What has been merged so far: the largest score, the sum of exp(score − max); the outputs are elsewhere.
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

// A chunk's maximum and sum into the row's; `o(i)` is the chunk's output in dimension i.
template <class Output>
void merge_chunk(float max, float sum, size_t value_dim, Output o, Merged& merged, float* out) {
  const float new_max = merged.empty || max > merged.max ? max : merged.max;
  const float old_factor = merged.empty ? 0.0f : exp_f32(merged.max - new_max);
  const float new_factor = exp_f32(max - new_max);
  for (size_t i = 0; i < value_dim; ++i) {
    out[i] = merged.empty ? o(i) : std::fma(out[i], old_factor, o(i) * new_factor);
  }
  merged.sum = merged.empty ? sum : std::fma(merged.sum, old_factor, sum * new_factor);
  merged.max = new_max;
  merged.empty = false;
}

// Positions [begin, end) of one chunk, merged. p: [256] by position % 256.
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
  const auto weighed = [&](size_t i) {
    float o = 0;
    for (size_t t = begin; t < end; ++t) o = std::fma(p[t % kChunk], value_at(a, t, i), o);
    return o;
  };
  merge_chunk(max, sum, a.value_dim, weighed, merged, out);
}

void finish(const Merged& merged, const float* sink, size_t value_dim, float* out) {
  float factor = 1, sum = merged.sum;
  if (sink != nullptr) {
    const float max = *sink > merged.max ? *sink : merged.max;
    factor = exp_f32(merged.max - max);
    sum = std::fma(sum, factor, exp_f32(*sink - max));
  }
  for (size_t i = 0; i < value_dim; ++i) out[i] = out[i] * factor / sum;
}

void attend_row(const AttentionArgs& a, size_t token, size_t head) {
  const float* q = a.q + token * a.q_token_stride + head * a.q_stride;
  const size_t end = a.end + token, begin = a.window != 0 && end > a.window ? end - a.window : 0;
  Merged merged;
  const auto chunk = [&](size_t base, float* out) {
    const size_t from = base > begin ? base : begin, to = base + kChunk < end ? base + kChunk : end;
    if (from < to) attend_chunk(a, q, from, to, a.scratch, merged, out);
  };
  if (a.partials != nullptr) {
    float* out = a.partials + (token * a.group + head) * attention_partial_floats(a.value_dim);
    chunk(a.chunk * kChunk, out);
    out[a.value_dim] = merged.max;
    out[a.value_dim + 1] = merged.sum;  // 0 if it saw nothing
    return;
  }
  float* out = a.out + token * a.out_token_stride + head * a.out_stride;
  for (size_t base = begin / kChunk * kChunk; base < end; base += kChunk) chunk(base, out);
  finish(merged, a.sinks != nullptr ? a.sinks + head : nullptr, a.value_dim, out);
}

void attention(const AttentionArgs& a) {
  for (size_t token = 0; token < a.tokens; ++token) {
    for (size_t head = 0; head < a.group; ++head) attend_row(a, token, head);
  }
}

void attention_merge(const AttentionMergeArgs& a) {
  Merged merged;
  for (size_t c = 0; c < a.chunks; ++c) {
    const float* o = a.partials + c * a.stride;
    if (o[a.value_dim + 1] == 0) continue;
    merge_chunk(
        o[a.value_dim], o[a.value_dim + 1], a.value_dim, [&](size_t i) { return o[i]; }, merged, a.out);
  }
  finish(merged, a.sink, a.value_dim, a.out);
}

// [capacity / 16][key_dim][16]: where dimension 0 of a slot's key lies; the next one is 16 further.
size_t key_offset(size_t key_dim, size_t slot) { return slot / 16 * 16 * key_dim + slot % 16; }

void store_key_f16(const float* k, size_t key_dim, void* panels, size_t slot) {
  uint16_t* out = static_cast<uint16_t*>(panels) + key_offset(key_dim, slot);
  for (size_t i = 0; i < key_dim; ++i) out[16 * i] = f32_to_f16(k[i]);
}

void store_key_f32(const float* k, size_t key_dim, void* panels, size_t slot) {
  float* out = static_cast<float*>(panels) + key_offset(key_dim, slot);
  for (size_t i = 0; i < key_dim; ++i) out[16 * i] = k[i];
}

void store_key_bf16(const float* k, size_t key_dim, void* panels, size_t slot) {
  uint16_t* out = static_cast<uint16_t*>(panels) + key_offset(key_dim, slot);
  for (size_t i = 0; i < key_dim; ++i) out[16 * i] = f32_to_bf16(k[i]);
}

void store_value_f16(const float* v, size_t value_dim, void* rows, size_t slot) {
  uint16_t* out = static_cast<uint16_t*>(rows) + slot * value_dim;
  for (size_t i = 0; i < value_dim; ++i) out[i] = f32_to_f16(v[i]);
}

void store_value_f32(const float* v, size_t value_dim, void* rows, size_t slot) {
  float* out = static_cast<float*>(rows) + slot * value_dim;
  for (size_t i = 0; i < value_dim; ++i) out[i] = v[i];
}

void store_value_bf16(const float* v, size_t value_dim, void* rows, size_t slot) {
  uint16_t* out = static_cast<uint16_t*>(rows) + slot * value_dim;
  for (size_t i = 0; i < value_dim; ++i) out[i] = f32_to_bf16(v[i]);
}

// The f16 scale of up to 32 numbers, and their 32 codes, zeros behind.
uint16_t quantize_block(const float* x, size_t n, int8_t* codes) {
  uint32_t largest = 0;  // as bits, so that a NaN or an infinity wins
  for (size_t i = 0; i < n; ++i) {
    const uint32_t magnitude = read<uint32_t>(x, i * sizeof(float)) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  const uint16_t half = f32_to_f16(read<float>(&largest, 0) / 127.0f);
  const float d = f16_to_f32(half);
  std::memset(codes, 0, kBlock);
  if (!(d > 0 && std::isfinite(d))) return half;
  for (size_t i = 0; i < n; ++i) {
    const float scaled = x[i] / d;
    codes[i] = static_cast<int8_t>(std::nearbyint(scaled > 127 ? 127 : scaled < -127 ? -127 : scaled));
  }
  return half;
}

void store_key_q8_0(const float* k, size_t key_dim, void* panels, size_t slot) {
  uint8_t* block = static_cast<uint8_t*>(panels) + slot / 16 * 16 * kv_bytes(KvType::q8_0, key_dim);
  for (size_t from = 0; from < key_dim; from += kBlock, block += kPanelBytes) {
    int8_t codes[kBlock];
    const uint16_t d = quantize_block(k + from, key_dim - from < kBlock ? key_dim - from : kBlock, codes);
    std::memcpy(block + 2 * (slot % 16), &d, sizeof d);
    for (size_t i = 0; i < kBlock; ++i) block[32 + 16 * i + slot % 16] = static_cast<uint8_t>(codes[i]);
  }
}

void store_value_q8_0(const float* v, size_t value_dim, void* rows, size_t slot) {
  uint8_t* block = static_cast<uint8_t*>(rows) + slot * kv_bytes(KvType::q8_0, value_dim);
  for (size_t from = 0; from < value_dim; from += kBlock, block += kBlockBytes) {
    int8_t codes[kBlock];
    const uint16_t d = quantize_block(v + from, value_dim - from < kBlock ? value_dim - from : kBlock, codes);
    std::memcpy(block, &d, sizeof d);
    std::memcpy(block + sizeof d, codes, sizeof codes);
  }
}

}  // namespace

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(attention), "scalar"},
    {Op::attention_merge, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(attention_merge), "scalar"},
    {Op::store_key_f16, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_key_f16), "scalar"},
    {Op::store_key_f32, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_key_f32), "scalar"},
    {Op::store_key_bf16, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_key_bf16), "scalar"},
    {Op::store_key_q8_0, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_key_q8_0), "scalar"},
    {Op::store_value_f16, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_value_f16), "scalar"},
    {Op::store_value_f32, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_value_f32), "scalar"},
    {Op::store_value_bf16, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_value_bf16), "scalar"},
    {Op::store_value_q8_0, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(store_value_q8_0), "scalar"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::scalar
