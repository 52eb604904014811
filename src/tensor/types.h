// The element and block types of weight files, one row each: name, block size, and how a block turns into floats.
//
// Not for: the layouts kernels compute on (panel.h).
//
//   const TypeInfo* t = find_type(Type::Q4_0);
//   t->dequantize(blocks, out, 64);          // 64 values from 2 blocks of 18 bytes
//
// To add a type: a block struct and a dequantise function in blocks.h/.cpp, one row in types.cpp, and its panel row in
// panel.cpp. Tests and benchmarks walk the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ridge {

// Numbers as in the GGUF format.
enum class Type : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
};

struct TypeInfo {
  Type type;
  std::string_view name;
  uint32_t block;  // elements of one block (1 for F32, F16, BF16)
  uint32_t bytes;  // bytes of one block
  bool is_float;   // computed with float activations, not with int8 ones
  // `count` elements (a multiple of `block`) of file layout to float, by the formula of the format; exact in f32 steps.
  void (*dequantize)(const uint8_t* blocks, float* out, size_t count);
};

// The row of a type, or nullptr if there is none (an unknown number from a file).
const TypeInfo* find_type(uint32_t number);
// The row of a type that is known to exist.
const TypeInfo& type_info(Type type);
std::span<const TypeInfo> all_types();

// Bytes of a row of `cols` elements in the file layout; cols is a multiple of the block.
size_t row_bytes(Type type, size_t cols);

}  // namespace ridge
