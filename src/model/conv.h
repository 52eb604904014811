// A convolution over the lines of a picture: 3 × 3 with zeros around, or 1 × 1. Pixels hold their channels side by
// side, [width, channels], so the three neighbours of a line that a kernel's row covers are one run of 3 · channels
// floats: each row of the kernel is a matrix product whose "tokens" are the pixels, `channels` floats apart. Nothing is
// copied.
//
// out = (w₀ · x₀ + w₁ · x₁) + w₂ · x₂ + bias, one product per line of input, each by rule 2 of docs/numerics.md.
//
//   Conv conv{.name = "decoder.conv1", .inputs = 16, .outputs = 384, .kind = ConvKind::square};
//   RIDGE_TRY(conv.load(file, kernels));
//   conv.line(kernels, {above, here, below}, width, scratch, out);       // lines begin one pixel before the picture
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/safetensors.h"
#include "kernels/kernels.h"
#include "memory/slab.h"

namespace ridge {

enum class ConvKind : uint8_t { square /* 3 × 3 */, point /* 1 × 1 */ };

struct Conv {
  std::string name;  // of the tensors, without ".weight" and ".bias"
  uint32_t inputs = 0, outputs = 0;
  ConvKind kind = ConvKind::square;
  uint32_t stride = 1;  // pixels from one of the output to the next, of square ones
  Type type = Type::F32;
  std::vector<float> bias = {};
  Slab panels = {};  // one matrix per row of the kernel

  // The convolution of these tensors: 2-D, or 3-D of which the last tap in time counts. Bad input: missing tensors,
  // another shape than [any, inputs, …], a type that cannot be computed with.
  static Result<Conv> describe(const Safetensors& file, const std::string& name, uint32_t inputs, ConvKind kind);

  size_t lines() const { return kind == ConvKind::square ? 3 : 1; }
  size_t cols() const { return lines() * inputs; }
  uint64_t matrix_bytes() const;
  uint64_t bytes() const;  // of panels and bias

  Result<void> load(const Safetensors& file, const Kernels& kernels);

  // One line of output, [width, outputs]. Each line of input: [width + 2, inputs], a pixel of zeros at both ends, with
  // a stride of 2 [2 · width + 1, inputs]; point convolutions read the second line alone. scratch: width · outputs
  // floats.
  void line(const Kernels& kernels, const std::array<const float*, 3>& in, size_t width, float* scratch,
            float* out) const;
};

}  // namespace ridge
