// A student as files: GGUF for Ridge and llama.cpp, and safetensors with a config.json as transformers names things.
//
//   std::vector<NamedTensor> tensors = …;      // GGUF names: "blk.0.attn_q.weight", row-major
//   RIDGE_TRY(write_gguf(shape, words.keys, tensors, "student", "student.gguf"));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "distill/job.h"
#include "format/gguf.h"

namespace ridge::distill {

// F32, row-major; rows 0: a vector.
struct NamedTensor {
  std::string name;
  uint64_t rows = 0, cols = 0;
  std::span<const float> values;
};

inline constexpr double kNormEpsilon = 1e-5;
inline constexpr double kRopeBase = 10000;

// The layers of a shared student are written twice: what reads the file need not know. `layers` of them, 0: all; with
// fewer the file is the early exit, a draft for the whole.
struct GgufOptions {
  std::string name;
  uint32_t layers = 0;
};
Result<void> write_gguf(const StudentShape& shape, const Metadata& vocabulary, std::span<const NamedTensor> tensors,
                        const GgufOptions& options, const std::string& path);
// Numbers beside the weights (the Fisher information) as safetensors, with the names of the GGUF file. Those of a block
// that is stored once and written twice are halved, since a change of it is one of both copies.
Result<void> write_beside(const StudentShape& shape, std::span<const NamedTensor> tensors, const std::string& path);
// FOLDER/model.safetensors and FOLDER/config.json, for transformers: LlamaForCausalLM, ArceeForCausalLM for ReLU².
Result<void> write_transformers(const StudentShape& shape, std::span<const NamedTensor> tensors,
                                const std::string& folder);

}  // namespace ridge::distill
