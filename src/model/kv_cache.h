// The key/value cache: per layer, keys in panels of 16 positions and values by position (kernels.h, AttentionArgs).
// Layers with a sliding window keep a ring of the window and one batch; the others the whole context.
//
//   KvCache cache = RIDGE_TRY(KvCache::create(model.kv_layers(), {.context = 512, .batch = 64, .type = KvType::f16}));
//   cache.key(layer, head), cache.value(layer, head), cache.capacity(layer)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernels.h"
#include "memory/slab.h"
#include "model/model.h"

namespace ridge {

struct KvOptions {
  uint64_t context = 0;  // positions
  uint32_t batch = 1;    // most tokens of one pass
  KvType type = KvType::f16;
  bool touch = true;  // make every page present now, so that no later position can fail for want of memory
};

Result<KvType> parse_kv_type(std::string_view name);  // "f16", "bf16", "q8_0", "f32"
const char* name_of(KvType type);

class KvCache {
 public:
  static Result<KvCache> create(const std::vector<KvLayer>& layers, const KvOptions& options);
  // Bytes that create() allocates.
  static uint64_t bytes(const std::vector<KvLayer>& layers, const KvOptions& options);
  // Bytes that one more position costs, all layers without a window.
  static uint64_t bytes_per_token(const std::vector<KvLayer>& layers, KvType type);

  KvType type() const { return options_.type; }
  uint64_t context() const { return options_.context; }
  uint64_t capacity(uint32_t layer) const { return layout_[layer].capacity; }
  void* key(uint32_t layer, uint32_t head);
  void* value(uint32_t layer, uint32_t head);
  // What is stored, as floats: dimensions [begin, begin + out.size()) of a position's key, and its value.
  void read_key(uint32_t layer, uint32_t head, uint64_t position, size_t begin, std::span<float> out) const;
  void read_value(uint32_t layer, uint32_t head, uint64_t position, std::span<float> out) const;

 private:
  struct LayerLayout {
    uint64_t capacity = 0, offset = 0;        // bytes into the slab
    uint64_t key_bytes = 0, value_bytes = 0;  // of one head
    uint32_t heads = 0, key_dim = 0, value_dim = 0;
  };
  const uint8_t* head_data(uint32_t layer, uint32_t head) const;
  static std::vector<LayerLayout> layout(const std::vector<KvLayer>& layers, const KvOptions& options, uint64_t& total);

  KvOptions options_;
  std::vector<LayerLayout> layout_;
  Slab slab_;
};

}  // namespace ridge
