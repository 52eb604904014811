// The file whose reading is timed: one that the user names, or a temporary one that has no name, so that nothing is
// left behind however the process ends.
//
// Not for: reading weights (memory/io_engine.h).
//
//   StorageFile file = RIDGE_TRY(StorageFile::temporary(folder, 256 * kMiB));
//   if (!file.set_direct(true)) …                    // O_DIRECT refused: file.refusal() says why
//   RIDGE_TRY(file.read(buffer, offset));
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace ridge {

class StorageFile {
 public:
  static Result<StorageFile> open(const std::string& path);
  // Writes `bytes` (a multiple of 1 MiB) of incompressible data to a nameless file in `folder`, which is made if it is
  // missing, and flushes it to the device.
  static Result<StorageFile> temporary(const std::string& folder, uint64_t bytes);

  StorageFile(StorageFile&& other) noexcept;
  StorageFile& operator=(StorageFile&& other) = delete;
  ~StorageFile();

  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }  // the file, or the folder of the temporary one

  std::string handle() const;  // a path that opens it anew while this lives
  // Reads past the page cache, or through it. False if the file system refuses (tried with a real read).
  bool set_direct(bool direct);
  const std::string& refusal() const { return refusal_; }

  // Drops what the page cache holds of this file; clean pages only, so nothing is lost.
  void drop_cache() const;

  // Fills the buffer from `offset`; buffer, size and offset are multiples of 4096 bytes. Thread-safe.
  Result<void> read(std::span<std::byte> buffer, uint64_t offset) const;

 private:
  StorageFile(int fd, uint64_t bytes, std::string path) : fd_(fd), bytes_(bytes), path_(std::move(path)) {}
  Result<void> fill(uint64_t bytes);

  int fd_ = -1;
  uint64_t bytes_ = 0;
  std::string path_, refusal_;
};

}  // namespace ridge
