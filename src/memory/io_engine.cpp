#include "memory/io_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"
#include "memory/io_backends.h"

namespace ridge {
namespace {

struct KindName {
  IoKind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {{IoKind::automatic, "auto"},
                               {IoKind::uring, "uring"},
                               {IoKind::threads, "threads"},
                               {IoKind::buffered, "buffered"}};

}  // namespace

Result<IoKind> parse_io_kind(std::string_view name) {
  for (const KindName& k : kKinds) {
    if (k.name == name) return k.kind;
  }
  return usage_error(fmt::format("'{}' is no way of reading: write auto, uring, threads or buffered", name));
}

std::string_view name_of(IoKind kind) {
  for (const KindName& k : kKinds) {
    if (k.kind == kind) return k.name;
  }
  return "auto";
}

std::string describe(std::string what, const std::vector<std::string>& reasons) {
  for (const std::string& r : reasons) what += "; " + r;
  return what;
}

Result<std::unique_ptr<IoEngine>> make_io_engine(const IoOptions& options) {
  BackendOptions backend;
  backend.buffers = options.buffers;
  backend.depth = std::max(1u, options.depth);
  backend.request_bytes = options.request_bytes;
  backend.syscalls = options.syscalls != nullptr ? options.syscalls : &real_syscalls();
  bool direct = true;
  for (const std::string& path : options.files) {
    backend.files.push_back(
        RIDGE_TRY(DataFile::open(path, {.direct = options.kind != IoKind::buffered, .syscalls = backend.syscalls})));
    const DataFile& file = backend.files.back();
    direct = direct && file.direct();
    if (file.fallback_reason().empty()) continue;
    // One sentence is enough for the parts of a split model that lie on one file system.
    if (backend.reasons.empty()) {
      backend.reasons.push_back(
          fmt::format("{}: reading {} instead, with copies", file.fallback_reason(), file.mode_name()));
      note_once("o_direct", backend.reasons.back());
    }
  }
  if (direct && (options.kind == IoKind::automatic || options.kind == IoKind::uring)) {
    if (auto engine = make_uring_engine(backend)) return engine;
    note_once("io_uring", backend.reasons.back());
  }
  return make_thread_engine(std::move(backend));
}

uint64_t io_engine_memory(uint64_t buffer_bytes) {
  // io_uring: rings of 32 entries, its context and requests, one bio_vec of 16 bytes per 4 KiB page of a buffer.
  const uint64_t uring = 192 * kKiB + buffer_bytes / 256;
  // A thread's stack, its kernel stack and structures, what its first allocation makes, its page tables.
  const uint64_t threads = kReadThreads * (kReadThreadStack + 64 * kKiB);
  const uint64_t cached = kReadThreads * kBufferedRequest;
  return std::max(uring, threads + cached);
}

}  // namespace ridge
