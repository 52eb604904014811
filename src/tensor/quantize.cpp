#include "tensor/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/blocks.h"
#include "tensor/half.h"

namespace ridge {
namespace {

blocks::Q8_0::Block quantize_q8_0(const float* x) {
  constexpr size_t kBlock = blocks::Q8_0::kBlock;
  float most = 0;
  for (size_t i = 0; i < kBlock; ++i) most = std::max(most, std::fabs(x[i]));
  const float d = most / 127.0f, inverse = d > 0 ? 1.0f / d : 0.0f;
  blocks::Q8_0::Block block{.d = f32_to_f16(d), .qs = {}};
  for (size_t i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(std::lround(x[i] * inverse));
  return block;
}

// The value of largest magnitude becomes −8, which has no counterpart on the other side.
blocks::Q4_0::Block quantize_q4_0(const float* x) {
  constexpr size_t kHalf = blocks::Q4_0::kBlock / 2;
  float most = 0;
  for (size_t i = 0; i < 2 * kHalf; ++i) {
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  }
  const float d = most / -8.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
  auto code = [&](float value) { return static_cast<uint8_t>(std::min(15.0f, value * inverse + 8.5f)); };
  blocks::Q4_0::Block block{.d = f32_to_f16(d), .qs = {}};
  for (size_t i = 0; i < kHalf; ++i) block.qs[i] = static_cast<uint8_t>(code(x[i]) | code(x[i + kHalf]) << 4);
  return block;
}

// Blocks and rows in a file have no alignment.
template <class Block, class Make>
void each_block(const float* values, size_t count, size_t elements, uint8_t* out, Make make) {
  for (size_t i = 0; i < count; i += elements) {
    const Block block = make(values + i);
    std::memcpy(out + i / elements * sizeof block, &block, sizeof block);
  }
}

}  // namespace

bool can_quantize(Type type) {
  return type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::Q8_0 || type == Type::Q4_0;
}

void quantize_row(Type type, const float* values, size_t count, uint8_t* out) {
  RIDGE_CHECK(can_quantize(type) && count % type_info(type).block == 0, "the type can be made, from whole blocks");
  if (type == Type::F32) std::memcpy(out, values, count * sizeof(float));
  if (type == Type::F16) each_block<uint16_t>(values, count, 1, out, [](const float* x) { return f32_to_f16(*x); });
  if (type == Type::BF16) each_block<uint16_t>(values, count, 1, out, [](const float* x) { return f32_to_bf16(*x); });
  if (type == Type::Q8_0) each_block<blocks::Q8_0::Block>(values, count, blocks::Q8_0::kBlock, out, quantize_q8_0);
  if (type == Type::Q4_0) each_block<blocks::Q4_0::Block>(values, count, blocks::Q4_0::kBlock, out, quantize_q4_0);
}

}  // namespace ridge
