// How made_model.h writes its files: a header, then each tensor at its place.
//
//   MadeFile file = RIDGE_TRY(MadeFile::create(metadata, tensors, options));     // fills in the offsets
//   for (const GgufTensor& t : tensors) { RIDGE_TRY(file.pad_to(t.offset)); RIDGE_TRY(file.append(bytes)); }
//   return MadeModel(std::move(file).spool());
#pragma once

#include <span>
#include <vector>

#include "analyze/made_model.h"
#include "format/gguf_writer.h"

namespace ridge {

class MadeFile {
 public:
  static Result<MadeFile> create(const Metadata& metadata, std::vector<GgufTensor>& tensors,
                                 const MadeOptions& options);
  Result<void> append(std::span<const uint8_t> bytes);
  Result<void> pad_to(uint64_t offset);  // from what was written; not backwards
  SpoolFile spool() && { return std::move(spool_); }

 private:
  explicit MadeFile(SpoolFile spool) : spool_(std::move(spool)) {}
  SpoolFile spool_;
};

}  // namespace ridge
