// One weight file, opened for reads past the page cache: O_DIRECT, proved by a real read. Where that is refused, reads
// go through the cache and leave nothing in it, because a memory budget counts the cache too.
//
// Not for: parsing (format/), scheduling or retrying (io_engine.h).
//
//   DataFile file = RIDGE_TRY(DataFile::open(path, {}));
//   int64_t got = file.read(buffer, 1 << 20, 0);      // bytes or −errno; offset, size and buffer 4 KiB aligned
//   RIDGE_TRY(file.verify_unchanged());
//
// read() and verify_unchanged() may be called by several threads at once.
#pragma once

#include <string>

#include "base/result.h"
#include "memory/syscalls.h"

namespace ridge {

struct DataFileOptions {
  bool direct = true;            // false: through the page cache, dropping what was read
  Syscalls* syscalls = nullptr;  // nullptr: the real ones
};

class DataFile {
 public:
  enum class Mode : uint8_t { direct, dont_cache, drop_after };

  // Bad input: no such file, not a regular one. A refused O_DIRECT is no error: see fallback_reason().
  static Result<DataFile> open(const std::string& path, const DataFileOptions& options);
  DataFile(DataFile&& other) noexcept;
  DataFile& operator=(DataFile&&) = delete;
  ~DataFile();

  // What one read call gives: bytes (fewer than asked at the end of the file, or whenever the kernel likes) or −errno.
  int64_t read(void* into, size_t bytes, uint64_t offset) const;

  // Bad input if the file was cut, changed, or replaced by another under the same name since it was opened.
  Result<void> verify_unchanged() const;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return identity_.bytes; }
  int fd() const { return fd_; }
  Mode mode() const { return mode_; }
  bool direct() const { return mode_ == Mode::direct; }
  // "O_DIRECT is refused here (EINVAL when opened)"; empty if it was not refused.
  const std::string& fallback_reason() const { return fallback_reason_; }
  const char* mode_name()
      const;  // "O_DIRECT", "buffered with RWF_DONTCACHE", "buffered, pages dropped after each read"

 private:
  DataFile(std::string path, Syscalls* calls) : path_(std::move(path)), calls_(calls) {}
  Result<void> open_direct();
  Result<void> open_buffered();
  int reopen(int flags);  // 0 or errno
  Result<void> examine();
  void refuse_direct(std::string reason);
  bool probe_direct();

  std::string path_;
  Syscalls* calls_;
  int fd_ = -1;
  Mode mode_ = Mode::direct;
  FileIdentity identity_;
  std::string fallback_reason_;
};

}  // namespace ridge
