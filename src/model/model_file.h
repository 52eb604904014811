// A model on disk: a .gguf file or a .ridge pack, recognised by its first bytes.
//
//   ModelFile file = RIDGE_TRY(open_model_file(path, Verify::headers));
//   file.header.metadata() …
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"
#include "format/neuron_bundles.h"
#include "program/program.h"

namespace ridge {

// Of a pack: its headers alone, or all of its data (once; remembered in the cache folder).
enum class Verify : uint8_t { headers, data };

struct ModelFile {
  Gguf header;                      // metadata and tensors, and where these lie
  std::vector<std::string> panels;  // names of the tensors that lie as panels, sorted; empty for a .gguf file

  NeuronBundles bundles;  // of a pack

  Layout layout(const std::string& tensor) const;
};

Result<ModelFile> open_model_file(const std::string& path, Verify verify);

}  // namespace ridge
