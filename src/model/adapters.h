// Adapters of a language model: GGUF files of llama.cpp's kind (general.type "adapter", adapter.type "lora") that have
// for some matrices W two narrow ones, so that y = W x + s · B (A x) with s = strength · alpha / rank (Hu and others
// 2021, arXiv 2106.09685). W stays as it is, quantised and streamed; A and B are kept in memory as float panels,
// whatever their type in the file, and computed beside each product.
//
// Tensors: "<weight>.lora_a" [cols, rank] and "<weight>.lora_b" [rank, rows], row lengths first.
// Not for: the image model, whose LoRAs are safetensors and placed with its blocks (lora.h).
//
//   AdapterSet set = RIDGE_TRY(AdapterSet::open(files, targets, "llama"));    // headers alone: bytes() is known
//   RIDGE_TRY(set.load());
//   for (const Adapter& a : set.of(weight.id)) …
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"
#include "memory/slab.h"
#include "model/lora.h"
#include "program/program.h"

namespace ridge {

// A matrix that adapters may change, or the reason why not.
struct AdapterTarget {
  TensorId id = 0;
  std::string name;
  uint32_t rows = 0, cols = 0;
  bool product = false;  // a plain product in every pass
};

struct Adapter {
  TensorId weight = 0;
  uint32_t rows = 0, cols = 0, rank = 0;
  float scale = 1;
  uint64_t down = 0, up = 0;  // where the panels of A [rank, cols] and B [rows, rank] begin
};

// Immutable after load(); then thread-safe.
class AdapterSet {
 public:
  // Bad input: no adapter, one of another architecture or kind, tensors for matrices that `targets` lacks or that are
  // no plain products, shapes that do not fit, one matrix without its other.
  static Result<AdapterSet> open(std::span<const LoraFile> files, std::span<const AdapterTarget> targets,
                                 const std::string& architecture);

  // Reads A and B. Bad input for values that are no finite numbers.
  Result<void> load();

  bool empty() const { return by_weight_.empty(); }
  uint64_t bytes() const { return empty() ? 0 : Slab::charge(panel_bytes_); }  // in memory
  std::span<const Adapter> of(TensorId weight) const {
    return weight < by_weight_.size() ? std::span<const Adapter>(by_weight_[weight]) : std::span<const Adapter>();
  }
  const uint8_t* panels(uint64_t offset) const { return slab_.data() + offset; }
  // Of values, places and scales, once loaded.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Source {  // one matrix of a file
    GgufTensor tensor;
    std::string path;
    uint64_t panels = 0;
  };
  Result<void> add(const LoraFile& file, std::span<const AdapterTarget> targets, const std::string& architecture);
  Result<void> read(const Source& source);
  uint64_t place(const Gguf& gguf, const GgufTensor& tensor);

  std::vector<std::vector<Adapter>> by_weight_;
  std::vector<Source> sources_;
  uint64_t panel_bytes_ = 0, fingerprint_ = 0;
  Slab slab_;
};

}  // namespace ridge
