// How made_model.h writes its files: a header, then each tensor at its place.
//
//   MadeFile file = RIDGE_TRY(MadeFile::create(metadata, tensors, options));     // fills in the offsets
//   for (const GgufTensor& t : tensors) { RIDGE_TRY(file.pad_to(t.offset)); RIDGE_TRY(file.append(bytes)); }
//   return MadeModel(RIDGE_TRY(std::move(file).spool()));
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
  // I/O error when interrupted.
  Result<void> append(std::span<const uint8_t> bytes);
  Result<void> pad_to(uint64_t offset);  // from what was written; not backwards
  Result<SpoolFile> spool() &&;

 private:
  MadeFile(SpoolFile spool, const std::atomic<bool>* interrupted)
      : spool_(std::move(spool)), interrupted_(interrupted) {}
  uint64_t size() const { return spool_.size() + pending_.size(); }

  SpoolFile spool_;
  const std::atomic<bool>* interrupted_;
  // A spool waits for the device at every append: small tensors are written together.
  std::vector<uint8_t> pending_;
};

}  // namespace ridge
