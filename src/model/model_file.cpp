#include "model/model_file.h"

namespace ridge {

Result<ModelFile> open_model_file(const std::string& path) {
  ModelFile file;
  file.path = path;
  file.header = RIDGE_TRY(Gguf::open(path));
  return file;
}

Result<void> place_in_pack(const ModelFile& file, std::vector<StoredTensor>&, std::vector<std::string>&) {
  (void)file;
  return {};
}

}  // namespace ridge
