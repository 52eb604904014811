#include "model/model_file.h"

#include <algorithm>

#include "format/ridge_pack.h"

namespace ridge {

Layout ModelFile::layout(const std::string& tensor) const {
  return std::binary_search(panels.begin(), panels.end(), tensor) ? Layout::panels : Layout::rows;
}

Result<ModelFile> open_model_file(const std::string& path, Verify verify) {
  ModelFile file;
  auto pack = is_ridge_pack(path);
  if (!pack.ok() || !pack.value()) {
    file.header = RIDGE_TRY(Gguf::open(path));  // says what is wrong with a file that cannot be read
    return file;
  }
  RidgePack opened = RIDGE_TRY(open_ridge_pack(path));
  if (verify == Verify::data) RIDGE_TRY(ensure_verified(path));
  for (size_t i = 0; i < opened.tensors.size(); ++i) {
    if (opened.tensors[i].panels) file.panels.push_back(opened.gguf.tensors()[i].name);
  }
  std::sort(file.panels.begin(), file.panels.end());
  file.bundles = std::move(opened.bundles);
  file.header = std::move(opened.gguf);
  return file;
}

}  // namespace ridge
