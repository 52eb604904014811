#include "format/safetensors_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "format/quote.h"

namespace ridge {
namespace {

std::optional<Type> type_of(SafeType type) {
  switch (type) {
    case SafeType::F32:
      return Type::F32;
    case SafeType::F16:
      return Type::F16;
    case SafeType::BF16:
      return Type::BF16;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool is_no_weight(std::string_view name) {
  return name.ends_with("_extra_state") || name.find("pos_embedder.") != std::string_view::npos ||
         name.find("accum_") != std::string_view::npos;
}

Result<Gguf> as_gguf(const Safetensors& file) {
  std::vector<GgufTensor> tensors;
  for (const SafeTensor& t : file.tensors()) {
    GgufTensor out;
    if (t.elements() == 0 || is_no_weight(t.name)) continue;
    const std::optional<Type> type = type_of(t.type);
    if (!type) {
      return bad_input(
          fmt::format("{}: tensor {} is of type {}, which Ridge cannot compute with; it knows BF16, F16 and "
                      "F32: fetch it in one of these",
                      file.files()[t.file].path, in_quotes(t.name), name_of(t.type)),
          t.offset);
    }
    out.name = t.name;
    out.type = *type;
    out.dims = std::min<uint32_t>(t.dims, static_cast<uint32_t>(out.shape.size()));
    // The row length first. What has more than four dimensions keeps the rows of its last one.
    for (uint32_t d = 0; d < t.dims; ++d) {
      const uint64_t n = t.shape[t.dims - 1 - d];
      if (d < out.shape.size()) {
        out.shape[d] = n;
      } else {
        out.shape.back() *= n;
      }
    }
    out.file = t.file;
    out.offset = t.offset;
    out.bytes = t.bytes;
    tensors.push_back(std::move(out));
  }
  std::vector<GgufFile> files;
  for (const SafeFile& f : file.files()) files.push_back({f.path, f.bytes});
  Metadata metadata;
  metadata.where = file.where();
  return Gguf::assemble(std::move(metadata), std::move(tensors), std::move(files));
}

}  // namespace ridge
