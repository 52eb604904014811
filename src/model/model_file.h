// A model on disk: a .gguf file or a .ridge pack, recognised by its first bytes.
//
//   ModelFile file = RIDGE_TRY(open_model_file(path));
//   file.header.metadata() …
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"
#include "program/program.h"

namespace ridge {

struct PackedTensor {
  std::string name;
  uint64_t offset = 0;
  Layout layout = Layout::panels;
};

struct ModelFile {
  Gguf header;                        // metadata and tensors as the GGUF file had them
  std::string path;
  std::vector<PackedTensor> packed;   // of a pack, sorted by name; empty for a .gguf file
  bool is_pack = false;
};

Result<ModelFile> open_model_file(const std::string& path);

// Points the tensors of a model at their places in the pack; nothing to do for a .gguf file.
Result<void> place_in_pack(const ModelFile& file, std::vector<StoredTensor>& tensors, std::vector<std::string>& files);

}  // namespace ridge
