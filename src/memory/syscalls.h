// What the I/O engines ask of the kernel, behind one seam, so that tests can make a disk fail.
//
// Not for: files that are written, or headers (format/ has its own streams).
//
//   struct Failing : Syscalls {
//     int64_t read(int, void*, size_t, uint64_t, ReadFlavor) override { return -EIO; }
//   } failing;
//   make_io_engine({.files = paths, .syscalls = &failing});
//
// Every call returns −errno on failure. Called by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>

struct io_uring;
struct iovec;

namespace ridge {

// What tells one state of a file from another.
struct FileIdentity {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0;
  bool regular = false;
};

// Alignment that O_DIRECT wants, as the file system says; `known` is false where it cannot say (before Linux 6.1).
struct DirectAlignment {
  bool known = false;
  uint32_t memory = 0, offset = 0;  // 0: no O_DIRECT for this file
};

enum class ReadFlavor : uint8_t { plain, dont_cache };

class Syscalls {
 public:
  virtual ~Syscalls() = default;

  virtual int open(const char* path, int flags);
  virtual int close(int fd);
  virtual int identify(int fd, FileIdentity& out);                 // fstat
  virtual int identify_path(const char* path, FileIdentity& out);  // stat
  virtual DirectAlignment direct_alignment(int fd);
  virtual int64_t read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor);  // pread, preadv2
  virtual int advise(int fd, uint64_t offset, uint64_t bytes, int advice);                     // posix_fadvise

  // -ENOSYS where Ridge was built without liburing.
  virtual int uring_setup(unsigned entries, io_uring* ring);
  virtual int uring_register_buffers(io_uring* ring, const iovec* buffers, unsigned count);
  virtual int uring_register_files(io_uring* ring, const int* fds, unsigned count);
  virtual int uring_submit(io_uring* ring);
  // What a completion said: bytes or −errno. Tests replace it.
  virtual int uring_result(int result) { return result; }
};

Syscalls& real_syscalls();

}  // namespace ridge
