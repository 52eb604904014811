// Reading weights from storage past the page cache, several requests at a time.
//
// Engines: io_uring with registered buffers and files; threads with pread; buffered reads whose pages are dropped. The
// choice falls down this list with one sentence of reason (docs/streaming.md has the ladder).
// Not for: reading headers (format/), or deciding what to read (streaming_source.h).
//
//   auto io = RIDGE_TRY(make_io_engine({.files = paths, .buffers = {slab}}));
//   RIDGE_TRY(io->submit({.file = 0, .offset = o, .bytes = n, .into = slot, .tag = 7}));
//   RIDGE_TRY(io->wait(7));
//
// An engine belongs to the thread that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/syscalls.h"

namespace ridge {

enum class IoKind : uint8_t { automatic, uring, threads, buffered };

Result<IoKind> parse_io_kind(std::string_view name);  // "auto", "uring", "threads", "buffered"
std::string_view name_of(IoKind kind);

// One wish: `bytes` at `offset` of a file. The engine reads the aligned range around it into `into` and cuts it into
// requests of at most request_bytes. `into` has room for read_span(offset, bytes) bytes and is aligned to kIoAlign.
struct ReadWish {
  uint32_t file = 0;
  uint64_t offset = 0, bytes = 0;
  uint8_t* into = nullptr;
  uint32_t tag = 0;     // several wishes may share a tag: wait(tag) waits for all of them
  bool urgent = false;  // goes before what was submitted earlier and has not been started
};

inline constexpr uint64_t kIoAlign = 4096;

// Bytes that the aligned range around [offset, offset + bytes) covers, and where the wanted bytes start in it.
constexpr uint64_t read_lead(uint64_t offset) { return offset % kIoAlign; }
constexpr uint64_t read_span(uint64_t offset, uint64_t bytes) {
  uint64_t begin = offset / kIoAlign * kIoAlign;
  uint64_t end = (offset + bytes + kIoAlign - 1) / kIoAlign * kIoAlign;
  return end - begin;
}

struct IoOptions {
  std::vector<std::string> files;
  std::vector<std::span<uint8_t>> buffers;  // the slabs that reads land in (for registration)
  IoKind kind = IoKind::automatic;
  uint32_t depth = 32;  // requests in flight
  uint64_t request_bytes = 256 * 1024;
  Syscalls* syscalls = nullptr;  // nullptr: the real ones (tests make them fail)
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  // Bad input: the wish ends past the end of the file.
  virtual Result<void> submit(const ReadWish& wish) = 0;
  // Waits for every wish of this tag. Short reads are continued, EINTR and EAGAIN repeated, EIO retried twice; then an
  // I/O error with file, offset and cause. A file that was replaced or cut meanwhile is a bad-input error that says so.
  virtual Result<void> wait(uint32_t tag) = 0;
  virtual bool ready(uint32_t tag) = 0;     // without waiting; also starts requests that waited for a free place
  virtual uint64_t bytes_read() const = 0;  // as asked of the device, alignment included
  // "io_uring, O_DIRECT, registered buffers, 32 requests of 256 KiB", and why anything better was not used.
  virtual std::string description() const = 0;
};

Result<std::unique_ptr<IoEngine>> make_io_engine(const IoOptions& options);

// The most that an engine charges to the process, whichever kind it becomes: rings, page lists of registered buffers of
// `buffer_bytes`, stacks of reading threads, and pages that pass through the cache where O_DIRECT is refused.
uint64_t io_engine_memory(uint64_t buffer_bytes);

}  // namespace ridge
