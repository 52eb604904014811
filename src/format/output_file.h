// Writing a file so that it is either whole or not there: a file without a name (O_TMPFILE), which the kernel forgets
// however the process ends, and which gets its name on commit(). Where the file system has no such files, it is written
// beside as `path.partial-<pid>` and removed unless committed. Every write's error is reported, with path and offset.
//
// Not for pipes and devices, and not buffered: hand it pieces of some size. What is written leaves the page cache as it
// goes, since a memory budget counts that as well.
//
//   OutputFile out = RIDGE_TRY(OutputFile::create("logits.npy"));
//   RIDGE_TRY(out.preallocate(bytes));         // a full disk is found before the work, not after it
//   RIDGE_TRY(out.write(header));
//   RIDGE_TRY(out.write_at(4096, block));
//   RIDGE_TRY(out.commit());
//
// write_at() may be called by several threads at once; everything else by one.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/unique_fd.h"

namespace ridge {

class OutputFile {
 public:
  // All errors are io errors. An existing file at `path` is replaced by commit(), and left alone if that never comes.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  const std::string& path() const { return path_; }
  // A name under which this process may read what was written, as long as the object lives.
  std::string readable_path() const;
  uint64_t position() const { return position_; }  // where the next write() goes

  // Claims room for a file of `bytes` bytes. The file has that size at once.
  Result<void> preallocate(uint64_t bytes);
  Result<void> write(std::span<const uint8_t> bytes);
  Result<void> write(std::string_view text);
  // What was written before, [offset, offset + size).
  Result<void> read_at(uint64_t offset, std::span<uint8_t> bytes) const;
  // Does not move position(); a gap reads as zeros.
  Result<void> write_at(uint64_t offset, std::span<const uint8_t> bytes);

  // Flushes to the device and renames. The object is spent afterwards, whatever the outcome.
  Result<void> commit();

 private:
  enum class Name : uint8_t { none, partial };
  OutputFile(UniqueFd fd, const std::string& path, std::string partial, Name name);
  bool give_name();
  void discard();
  void drop_written(uint64_t bytes);

  UniqueFd fd_;
  std::string path_, partial_;
  uint64_t position_ = 0;
  std::atomic<uint64_t> dirty_{0};  // bytes written since the page cache was last emptied
  Name name_ = Name::partial;       // whether the file stands as partial_ already
};

}  // namespace ridge
