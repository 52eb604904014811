#include "model/kv_cache.h"

#include <cstring>

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "tensor/half.h"

namespace ridge {
namespace {

constexpr uint64_t kPositions = 16;  // of one key panel
constexpr uint64_t kCacheLine = 64;

}  // namespace

Result<KvType> parse_kv_type(std::string_view name) {
  for (KvType type : {KvType::f16, KvType::bf16, KvType::q8_0, KvType::f32}) {
    if (name == name_of(type)) return type;
  }
  return usage_error(fmt::format("--kv-type '{}' is unknown: use f16, bf16, q8_0 or f32", name));
}

const char* name_of(KvType type) {
  constexpr const char* kNames[kKvTypes] = {"f16", "f32", "bf16", "q8_0"};
  return kNames[static_cast<size_t>(type)];
}

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
    l.key_bytes = round_up(l.capacity * kv_bytes(options.type, layer.key_dim), kCacheLine);
    l.value_bytes = round_up(l.capacity * kv_bytes(options.type, layer.value_dim), kCacheLine);
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
    if (l.window == 0) sum += l.kv_heads * (kv_bytes(type, l.key_dim) + kv_bytes(type, l.value_dim));
  }
  return sum;
}

Result<KvCache> KvCache::create(const std::vector<KvLayer>& layers, const KvOptions& options) {
  KvCache cache;
  cache.options_ = options;
  uint64_t total = 0;
  cache.layout_ = layout(layers, options, total);
  cache.slab_ = RIDGE_TRY(Slab::allocate(total, {.what = "the KV cache", .touch = options.touch}));
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

namespace {

template <class T>
T stored(const uint8_t* base, size_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof value);
  return value;
}

// The number at `index` of an array of a type without blocks.
float number(KvType type, const uint8_t* base, size_t index) {
  if (type == KvType::f16) return f16_to_f32(stored<uint16_t>(base, 2 * index));
  if (type == KvType::bf16) return bf16_to_f32(stored<uint16_t>(base, 2 * index));
  return stored<float>(base, 4 * index);
}

// q8_0 (kernels.h, KvType): a scale and 32 codes.
constexpr size_t kBlock = 32, kBlockBytes = 34;

}  // namespace

void KvCache::read_key(uint32_t layer, uint32_t head, uint64_t position, size_t begin, std::span<float> out) const {
  const LayerLayout& l = layout_[layer];
  const uint64_t slot = position % l.capacity, panel = slot / kPositions * kPositions, lane = slot % kPositions;
  const uint8_t* data = head_data(layer, head);
  for (size_t i = begin; i < begin + out.size(); ++i) {
    if (options_.type != KvType::q8_0) {
      out[i - begin] = number(options_.type, data, panel * l.key_dim + i * kPositions + lane);
      continue;
    }
    const uint8_t* block = data + panel * kv_bytes(options_.type, l.key_dim) + i / kBlock * kPositions * kBlockBytes;
    const auto code = stored<int8_t>(block, 2 * kPositions + i % kBlock * kPositions + lane);
    out[i - begin] = static_cast<float>(code) * f16_to_f32(stored<uint16_t>(block, 2 * lane));
  }
}

void KvCache::read_value(uint32_t layer, uint32_t head, uint64_t position, std::span<float> out) const {
  const LayerLayout& l = layout_[layer];
  const uint64_t slot = position % l.capacity;
  const uint8_t* data = head_data(layer, head) + l.key_bytes;
  for (size_t i = 0; i < out.size(); ++i) {
    if (options_.type != KvType::q8_0) {
      out[i] = number(options_.type, data, slot * l.value_dim + i);
      continue;
    }
    const uint8_t* block = data + slot * kv_bytes(options_.type, l.value_dim) + i / kBlock * kBlockBytes;
    out[i] = static_cast<float>(stored<int8_t>(block, 2 + i % kBlock)) * f16_to_f32(stored<uint16_t>(block, 0));
  }
}

}  // namespace ridge
