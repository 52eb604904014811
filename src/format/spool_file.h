// A file without a name for what must wait on disk instead of in memory: written from the front to the back, then read
// once the same way. It vanishes with the object, however the process ends, and its pages leave the page cache as it
// grows, without standing still for the device.
//
// Not for results (output_file.h).
//
//   SpoolFile spool = RIDGE_TRY(SpoolFile::create("folder"));
//   RIDGE_TRY(spool.append(bytes));
//   RIDGE_TRY(spool.read(offset, into));
//
// One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "format/unique_fd.h"

namespace ridge {

class SpoolFile {
 public:
  // Bytes of page cache that a spool holds at most, if no append is larger than `largest`.
  static constexpr uint64_t cached_bytes(uint64_t largest) { return 2 * largest; }

  // In this folder, which has to exist. All errors are io errors.
  static Result<SpoolFile> create(const std::string& folder);

  uint64_t size() const { return size_; }
  // A name under which this process may open it again, as long as the object lives.
  std::string path() const;
  Result<void> append(std::span<const uint8_t> bytes);
  // Fills `into` from this offset on, which must lie within what was appended; drops what was read from the cache.
  Result<void> read(uint64_t offset, std::span<uint8_t> into) const;

 private:
  SpoolFile(UniqueFd fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}

  UniqueFd fd_;
  std::string folder_;
  uint64_t size_ = 0;
  uint64_t started_ = 0, settled_ = 0;  // up to where writing to the device was begun, and is over
};

}  // namespace ridge
