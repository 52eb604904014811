#include "model/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

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

}  // namespace ridge
