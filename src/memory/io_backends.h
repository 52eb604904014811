// The engines behind make_io_engine(), and what they are given: open files and the ladder's reasons so far.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memory/data_file.h"
#include "memory/io_engine.h"

namespace ridge {

struct BackendOptions {
  std::vector<DataFile> files;
  std::vector<std::span<uint8_t>> buffers;
  uint32_t depth = 32;
  uint64_t request_bytes = 256 * 1024;
  Syscalls* syscalls = nullptr;
  std::vector<std::string> reasons;  // why something better is not used, for description()
};

// Needs O_DIRECT on every file. nullptr, with a reason added to `options`, where io_uring cannot be used; `options` is
// then as it was otherwise, and goes to the next engine.
std::unique_ptr<IoEngine> make_uring_engine(BackendOptions& options);
// A few threads with pread, direct or through the cache as each file was opened.
Result<std::unique_ptr<IoEngine>> make_thread_engine(BackendOptions options);

// Threads of the thread engine and the stack of each: they hold a few frames, not a program.
inline constexpr uint32_t kReadThreads = 4;
inline constexpr uint64_t kReadThreadStack = 256 * 1024;
// Requests through the page cache are this large: what passes through is charged to us while it does.
inline constexpr uint64_t kBufferedRequest = 256 * 1024;

// "reads: …" joined by "; ".
std::string describe(std::string what, const std::vector<std::string>& reasons);

}  // namespace ridge
