// A small model in which neurons rest, for tests of packs in bundles.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tensor/half.h"
#include "tests/format/gguf_builder.h"
#include "tests/tensor/random_blocks.h"

namespace ridge::test {

struct NeuronCase {
  const char* architecture;
  Type type;
  uint32_t bundle;
};

inline constexpr uint32_t kNeuronWidth = 256, kNeurons = 512, kNeuronWords = 96, kNeuronLayers = 2;

inline Bytes floats_as_bytes(const std::vector<float>& values) {
  Bytes bytes(sizeof(float) * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A model in which neurons rest: in a reglu-llama biases of the gates see to it (a third of the groups never fires,
// the others seldom), in an arcee, which has none, every second group has no weights.
class RestingModel {
 public:
  // `gate_bias`: by neuron, in place of those.
  explicit RestingModel(const NeuronCase& c, std::function<float(uint32_t)> gate_bias = {})
      : c_(c), gate_bias_(std::move(gate_bias)) {
    const std::string arch = c.architecture;
    gated_ = arch == "reglu-llama";
    gguf_.string("general.architecture", arch);
    gguf_.number<uint32_t>(arch + ".block_count", kNeuronLayers).number<uint32_t>(arch + ".context_length", 64);
    gguf_.number<uint32_t>(arch + ".embedding_length", kNeuronWidth);
    gguf_.number<uint32_t>(arch + ".feed_forward_length", kNeurons);
    gguf_.number<uint32_t>(arch + ".attention.head_count", 8).number<uint32_t>(arch + ".attention.head_count_kv", 2);
    matrix("token_embd.weight", kNeuronWords, kNeuronWidth);
    for (uint32_t i = 0; i < kNeuronLayers; ++i) layer("blk." + std::to_string(i) + ".");
    vector("output_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    matrix("output.weight", kNeuronWords, kNeuronWidth);
  }
  Bytes build() const { return gguf_.build(); }

 private:
  void layer(const std::string& block) {
    vector(block + "attn_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    matrix(block + "attn_q.weight", kNeuronWidth, kNeuronWidth);
    matrix(block + "attn_k.weight", kNeuronWidth / 4, kNeuronWidth);
    matrix(block + "attn_v.weight", kNeuronWidth / 4, kNeuronWidth);
    matrix(block + "attn_output.weight", kNeuronWidth, kNeuronWidth);
    vector(block + "ffn_norm.weight", std::vector<float>(kNeuronWidth, 1.0f));
    if (gated_) {
      matrix(block + "ffn_gate.weight", kNeurons, kNeuronWidth);
      vector(block + "ffn_gate.bias", gate_biases());
      vector(block + "ffn_up.bias", std::vector<float>(kNeurons, 0.25f));
      vector(block + "ffn_down.bias", std::vector<float>(kNeuronWidth, -0.125f));
    }
    matrix(block + "ffn_up.weight", kNeurons, kNeuronWidth, !gated_);
    matrix(block + "ffn_down.weight", kNeuronWidth, kNeurons);
  }
  std::vector<float> gate_biases() const {
    std::vector<float> biases(kNeurons);
    for (uint32_t n = 0; n < kNeurons; ++n)
      biases[n] = gate_bias_ ? gate_bias_(n) : n / c_.bundle % 3 == 0 ? -1e4f : -2.5f;
    return biases;
  }
  void vector(const std::string& name, const std::vector<float>& values) {
    gguf_.tensor({.name = name, .shape = {values.size()}, .data = floats_as_bytes(values)});
  }
  void matrix(const std::string& name, uint64_t rows, uint64_t cols, bool every_second_group = false) {
    const uint64_t stride = row_bytes(c_.type, cols);
    Bytes bytes(rows * stride);
    if (c_.type == Type::F16) {
      std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(cols)));
      for (size_t i = 0; i < bytes.size(); i += 2) {
        const uint16_t half = f32_to_f16(normal(rng_));
        std::memcpy(bytes.data() + i, &half, 2);
      }
    } else {
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng_());
      const TypeInfo& info = type_info(c_.type);
      const float scale = (c_.type == Type::Q8_0 ? 0.014f : 0.004f) / std::sqrt(static_cast<float>(cols));
      for (size_t b = 0; b < bytes.size(); b += info.bytes) {
        for (const size_t offset : scale_offsets(c_.type)) set_scale(f32_to_f16(scale), bytes.data() + b + offset);
      }
    }
    for (uint64_t row = 0; every_second_group && row < rows; ++row) {
      if (row / c_.bundle % 2 == 0) std::memset(bytes.data() + row * stride, 0, stride);
    }
    gguf_.tensor({.name = name, .shape = {cols, rows}, .type = c_.type, .data = std::move(bytes)});
  }

  NeuronCase c_;
  std::function<float(uint32_t)> gate_bias_;
  bool gated_ = false;
  std::mt19937_64 rng_{11};
  GgufBuilder gguf_;
};

}  // namespace ridge::test
