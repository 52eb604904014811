#include "model/kv_cache.h"

#include <algorithm>

#include "base/units.h"
#include "tensor/half.h"

namespace ridge {
namespace {

constexpr uint64_t kPositions = 16;  // of one key panel
constexpr uint64_t kCacheLine = 64;

uint64_t element_bytes(KvType type) { return type == KvType::f16 ? 2 : 4; }

}  // namespace

std::vector<KvCache::LayerLayout> KvCache::layout(const std::vector<KvLayer>& layers, const KvOptions& options,
                                                  uint64_t& total) {
  std::vector<LayerLayout> out;
  total = 0;
  for (const KvLayer& layer : layers) {
    LayerLayout l;
    uint64_t positions = options.context;
    // The tokens of a batch are stored before the first of them attends, so the ring holds the window and the batch.
    if (layer.window != 0) positions = std::min<uint64_t>(positions, uint64_t{layer.window} + options.batch);
    l.capacity = round_up(std::max<uint64_t>(positions, 1), kPositions);
    l.heads = layer.kv_heads;
    l.key_dim = layer.key_dim;
    l.value_dim = layer.value_dim;
    l.key_bytes = round_up(l.capacity * layer.key_dim * element_bytes(options.type), kCacheLine);
    l.value_bytes = round_up(l.capacity * layer.value_dim * element_bytes(options.type), kCacheLine);
    l.offset = total;
    total += layer.kv_heads * (l.key_bytes + l.value_bytes);
    out.push_back(l);
  }
  return out;
}

uint64_t KvCache::bytes(const std::vector<KvLayer>& layers, const KvOptions& options) {
  uint64_t total = 0;
  (void)layout(layers, options, total);
  return Slab::charge(total);
}

uint64_t KvCache::bytes_per_token(const std::vector<KvLayer>& layers, KvType type) {
  uint64_t sum = 0;
  for (const KvLayer& l : layers) {
    if (l.window == 0) sum += uint64_t{l.kv_heads} * (l.key_dim + l.value_dim) * element_bytes(type);
  }
  return sum;
}

Result<KvCache> KvCache::create(const std::vector<KvLayer>& layers, const KvOptions& options) {
  KvCache cache;
  cache.options_ = options;
  uint64_t total = 0;
  cache.layout_ = layout(layers, options, total);
  cache.slab_ = RIDGE_TRY(Slab::allocate(total, {.what = "the KV cache"}));
  return cache;
}

void* KvCache::key(uint32_t layer, uint32_t head) {
  const LayerLayout& l = layout_[layer];
  return slab_.data() + l.offset + head * (l.key_bytes + l.value_bytes);
}

void* KvCache::value(uint32_t layer, uint32_t head) {
  return static_cast<uint8_t*>(key(layer, head)) + layout_[layer].key_bytes;
}

const uint8_t* KvCache::head_data(uint32_t layer, uint32_t head) const {
  const LayerLayout& l = layout_[layer];
  return slab_.data() + l.offset + head * (l.key_bytes + l.value_bytes);
}

void KvCache::read_key(uint32_t layer, uint32_t head, uint64_t position, size_t begin, std::span<float> out) const {
  const LayerLayout& l = layout_[layer];
  uint64_t slot = position % l.capacity;
  size_t first = slot / kPositions * kPositions * l.key_dim + begin * kPositions + slot % kPositions;
  const uint8_t* data = head_data(layer, head);
  switch (options_.type) {
    case KvType::f16:
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = f16_to_f32(reinterpret_cast<const uint16_t*>(data)[first + i * kPositions]);
      return;
    case KvType::f32:
      for (size_t i = 0; i < out.size(); ++i) out[i] = reinterpret_cast<const float*>(data)[first + i * kPositions];
      return;
  }
}

void KvCache::read_value(uint32_t layer, uint32_t head, uint64_t position, std::span<float> out) const {
  const LayerLayout& l = layout_[layer];
  size_t first = position % l.capacity * l.value_dim;
  const uint8_t* data = head_data(layer, head) + l.key_bytes;
  switch (options_.type) {
    case KvType::f16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = f16_to_f32(reinterpret_cast<const uint16_t*>(data)[first + i]);
      return;
    case KvType::f32:
      for (size_t i = 0; i < out.size(); ++i) out[i] = reinterpret_cast<const float*>(data)[first + i];
      return;
  }
}

}  // namespace ridge
