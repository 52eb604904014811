// The operations that kernels implement. Plain data, so that the files of every ISA may include it.
//
// Not for: what an operation computes (kernels.h), or which kernel runs (choose.h).
//
//   const KernelEntry entry = {Op::quantize, Isa::avx2, Type::F32, kBitAvx2Fma, …};
//
// To add one: a row here, a name in choose.cpp, a field in Kernels (kernels.h), and its scalar kernel.
#pragma once

#include <stdint.h>

namespace ridge {

enum class Op : uint8_t {
  matmul_q8,
  matmul_float,
  pack,
  quantize,
  rms_norm,
  add,
  scale,
  swiglu,
  geglu,
  softcap,
  rope_norm,
  rope_neox,
  attention,
  attention_merge,
  store_key_f16,
  store_key_f32,
  store_key_bf16,
  store_key_q8_0,
  store_value_f16,
  store_value_f32,
  store_value_bf16,
  store_value_q8_0,
  transpose,
  soften,
  merge_chunk,
  layer_norm,
  gelu,
  add_scaled,
  pack_activations,
};

}  // namespace ridge
