// LoRA files: for some matrices W of a model two narrow ones, so that W + s · B · A stands for W (Hu and others 2021,
// arXiv 2106.09685). They are kept apart and computed beside W, y = W x + s · B (A x), so that W may be of any type and
// is never written: A and B become tensors of the model's own directory, placed and streamed with the blocks whose
// matrices they change.
//
// Names as tools write them: "lora_unet_blocks_0_mlp_layer1.lora_down.weight", ".lora_up.weight", ".alpha"; or
// "diffusion_model.blocks.0.mlp.layer1.lora_A.weight", ".lora_B.weight".
//
//   LoraSet loras = RIDGE_TRY(add_loras(dit, files));
//   for (const LoraPair& p : loras.pairs) …       // loras.file is dit with the tensors p.down and p.up
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"

namespace ridge {

struct LoraFile {
  std::string path;     // safetensors; of language models GGUF (adapters.h)
  double strength = 1;  // of all of it
};

inline constexpr uint64_t kMostRank = 4096;

// strength · alpha / rank; without an alpha: strength. Bad input, with file and tensor or key of the alpha, if that is
// no finite float.
Result<float> lora_scale(const std::string& where, const std::string& name, double strength,
                         std::optional<double> alpha, uint64_t rank);

struct LoraPair {
  std::string weight;    // the tensor it changes, [rows, cols]
  std::string down, up;  // A: [rank, cols]; B: [rows, rank]
  uint32_t rows = 0, cols = 0, rank = 0;
  float scale = 1;  // strength · alpha / rank; without an alpha: strength
};

struct LoraSet {
  Gguf file;
  std::vector<LoraPair> pairs;  // file by file, in the order of the model's tensors
};

// Bad input: a tensor that changes nothing of `model` or is of another kind than these, a matrix without its other,
// shapes that do not fit. What a file has for the text encoder is left out, which a note says.
Result<LoraSet> add_loras(Gguf model, std::span<const LoraFile> loras);

}  // namespace ridge
