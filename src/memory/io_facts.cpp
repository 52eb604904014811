#include "memory/io_facts.h"

#include <algorithm>

#include "memory/data_file.h"
#include "memory/io_engine.h"
#include "memory/slab.h"

namespace ridge {
namespace {

// Passes every call on and remembers what became of the ring.
class Watch final : public Syscalls {
 public:
  explicit Watch(Syscalls& inner) : inner_(inner) {}

  int open(const char* path, int flags) override { return inner_.open(path, flags); }
  int close(int fd) override { return inner_.close(fd); }
  int identify(int fd, FileIdentity& out) override { return inner_.identify(fd, out); }
  int identify_path(const char* path, FileIdentity& out) override { return inner_.identify_path(path, out); }
  DirectAlignment direct_alignment(int fd) override { return inner_.direct_alignment(fd); }
  int64_t read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor) override {
    return inner_.read(fd, into, bytes, offset, flavor);
  }
  int advise(int fd, uint64_t offset, uint64_t bytes, int advice) override {
    return inner_.advise(fd, offset, bytes, advice);
  }
  int uring_setup(unsigned entries, io_uring* ring) override {
    const int result = inner_.uring_setup(entries, ring);
    tried = true;
    error = std::max(0, -result);
    return result;
  }
  int uring_register_buffers(io_uring* ring, const iovec* buffers, unsigned count) override {
    return inner_.uring_register_buffers(ring, buffers, count);
  }
  int uring_register_files(io_uring* ring, const int* fds, unsigned count) override {
    return inner_.uring_register_files(ring, fds, count);
  }
  int uring_submit(io_uring* ring) override { return inner_.uring_submit(ring); }
  int uring_result(int result) override { return inner_.uring_result(result); }

  bool tried = false;
  int error = 0;

 private:
  Syscalls& inner_;
};

}  // namespace

Result<IoFacts> io_facts(const std::string& path, Syscalls* syscalls) {
  Watch watch(syscalls != nullptr ? *syscalls : real_syscalls());
  IoFacts facts{.path = path};
  uint64_t bytes = 0;
  {
    DataFile file = RIDGE_TRY(DataFile::open(path, {.direct = true, .syscalls = &watch}));
    facts.direct = file.direct();
    facts.refusal = file.fallback_reason();
    facts.mode = file.mode_name();
    facts.alignment = watch.direct_alignment(file.fd());
    bytes = std::min<uint64_t>(file.bytes(), kIoAlign);
  }
  Slab buffer = RIDGE_TRY(Slab::allocate(kHugePage, {.what = "a buffer to try a read with", .huge_pages = false}));
  auto engine = RIDGE_TRY(make_io_engine({.files = {path}, .buffers = {buffer.span()}, .syscalls = &watch}));
  facts.uring_tried = watch.tried;
  facts.uring_error = watch.error;
  auto read = [&]() -> Result<void> {
    RIDGE_TRY(engine->submit({.file = 0, .offset = 0, .bytes = bytes, .into = buffer.data(), .tag = 0}));
    return engine->wait(0);
  }();
  facts.read_works = read.ok();
  if (!read.ok()) facts.read_error = read.error().message;
  facts.engine = engine->description();
  return facts;
}

}  // namespace ridge
