#include "kernels/kernels.h"

namespace ridge {

// The scores of up to twelve rows (a head of a token is a row) for one chunk of 256 positions, their queries
// transposed, and each row's running maximum and sum.
size_t attention_scratch_floats(size_t rows, size_t key_dim) {
  constexpr size_t kMostRows = 12;
  return kMostRows * kAttentionChunk + rows * (key_dim + 2);
}

// o, m, l, and so much that every row begins on a cache line.
size_t attention_partial_floats(size_t value_dim) { return (value_dim + 2 + 15) / 16 * 16; }

size_t kv_bytes(KvType type, size_t dim) {
  constexpr size_t kBlock = 32, kBlockBytes = 34;
  if (type == KvType::q8_0) return (dim + kBlock - 1) / kBlock * kBlockBytes;
  return dim * (type == KvType::f32 ? sizeof(float) : sizeof(uint16_t));
}

}  // namespace ridge
