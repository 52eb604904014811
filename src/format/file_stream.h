// Reading a file from front to back, in chunks that do not stay in the page cache: a memory budget counts that cache.
//
// `ByteStream` is what parsers read from; `FileStream` is a file, `SpanStream` bytes in memory (tests, fuzzing).
// Not for weights: those are read at random by memory/. Never maps a file.
//
//   FileStream in = RIDGE_TRY(FileStream::open("model.gguf"));
//   uint32_t magic = RIDGE_TRY(in.read_as<uint32_t>());
//   RIDGE_TRY(in.skip(16));
//   if (in.remaining() < bytes) return bad_input("…", in.position());
//
// A stream belongs to one thread at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "format/unique_fd.h"

namespace ridge {

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  uint64_t position() const { return window_end_ - static_cast<uint64_t>(end_ - next_); }
  uint64_t remaining() const { return size_ - position(); }

  // Exactly `bytes` bytes. Reading past the end is a bad_input error; callers with more to say check remaining() first.
  Result<void> read(void* out, size_t bytes) {
    if (static_cast<size_t>(end_ - next_) < bytes) return read_slowly(static_cast<uint8_t*>(out), bytes);
    if (bytes != 0) std::memcpy(out, next_, bytes);
    next_ += bytes;
    return {};
  }

  // A little-endian number.
  template <class T>
  Result<T> read_as() {
    static_assert(std::is_trivially_copyable_v<T> && std::endian::native == std::endian::little);
    T value;
    RIDGE_TRY(read(&value, sizeof value));
    return value;
  }

  Result<void> skip(uint64_t bytes);

 protected:
  ByteStream(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  ByteStream(ByteStream&&) = default;
  ByteStream& operator=(ByteStream&&) = default;

  // Makes at least one byte from `position` on available. Called only when the window is empty and position < size.
  virtual Result<void> refill(uint64_t position) = 0;
  Error past_the_end(uint64_t bytes) const;
  // The window is now `bytes`, which begin at `offset` in the file.
  void set_window(std::span<const uint8_t> bytes, uint64_t offset) {
    next_ = bytes.data();
    end_ = next_ + bytes.size();
    window_end_ = offset + bytes.size();
  }

 private:
  Result<void> read_slowly(uint8_t* out, size_t bytes);

  std::string name_;
  uint64_t size_;
  const uint8_t* next_ = nullptr;  // the window: bytes that were read and not yet handed out
  const uint8_t* end_ = nullptr;
  uint64_t window_end_ = 0;  // offset of end_ in the file
};

class SpanStream final : public ByteStream {
 public:
  SpanStream(std::span<const uint8_t> bytes, std::string name) : ByteStream(std::move(name), bytes.size()) {
    set_window(bytes, 0);
  }

 protected:
  Result<void> refill(uint64_t position) override;
};

struct FileStreamOptions {
  size_t chunk_bytes = 256 * 1024;  // rounded up to 4 KiB: what one read asks for, and all the memory a stream uses
  bool try_direct = true;           // false: through the page cache, dropping what was read (for tests)
};

class FileStream final : public ByteStream {
 public:
  // Regular files only. A path that cannot be opened is bad_input, a failing device io.
  static Result<FileStream> open(const std::string& path, const FileStreamOptions& options = {});

  // Whether reads bypass the page cache (O_DIRECT). Otherwise each chunk is dropped from the cache after it was read.
  bool direct() const { return direct_; }

 protected:
  Result<void> refill(uint64_t position) override;

 private:
  FileStream(UniqueFd fd, const std::string& path, uint64_t size, bool direct, size_t chunk_bytes);

  Result<size_t> read_chunk(uint64_t offset, size_t at_least);
  void leave_direct(int error);

  UniqueFd fd_;
  bool direct_;
  size_t chunk_bytes_;
  std::vector<uint8_t> storage_;
  uint8_t* chunk_;  // inside storage_, aligned for O_DIRECT
};

}  // namespace ridge
