#include "memory/syscalls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#if RIDGE_HAVE_URING
#include <liburing.h>
#endif

// Read through the page cache and dropped at once (Linux 6.14); older headers lack the name.
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif

namespace ridge {
namespace {

FileIdentity identity_of(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns = static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec,
          .regular = S_ISREG(info.st_mode)};
}

}  // namespace

int Syscalls::open(const char* path, int flags) {
  int fd = ::open(path, flags);
  return fd >= 0 ? fd : -errno;
}

int Syscalls::close(int fd) { return ::close(fd) == 0 ? 0 : -errno; }

int Syscalls::identify(int fd, FileIdentity& out) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return -errno;
  out = identity_of(info);
  return 0;
}

int Syscalls::identify_path(const char* path, FileIdentity& out) {
  struct stat info {};
  if (::stat(path, &info) != 0) return -errno;
  out = identity_of(info);
  return 0;
}

DirectAlignment Syscalls::direct_alignment([[maybe_unused]] int fd) {
#ifdef STATX_DIOALIGN
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) != 0) {
    return {.known = true, .memory = info.stx_dio_mem_align, .offset = info.stx_dio_offset_align};
  }
#endif
  return {};
}

int64_t Syscalls::read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor) {
  ssize_t got;
  if (flavor == ReadFlavor::dont_cache) {
    iovec part{into, bytes};
    got = ::preadv2(fd, &part, 1, static_cast<off_t>(offset), RWF_DONTCACHE);
  } else {
    got = ::pread(fd, into, bytes, static_cast<off_t>(offset));
  }
  return got >= 0 ? got : -errno;
}

int Syscalls::advise(int fd, uint64_t offset, uint64_t bytes, int advice) {
  return -::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), advice);
}

#if RIDGE_HAVE_URING

int Syscalls::uring_setup(unsigned entries, io_uring* ring) {
  // Completions are handed over when this thread next enters the kernel, not by interrupting a compute thread; kernels
  // before 5.19 do not know the flags.
  int result = ::io_uring_queue_init(entries, ring, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
  if (result == -EINVAL) result = ::io_uring_queue_init(entries, ring, 0);
  return result;
}

int Syscalls::uring_register_buffers(io_uring* ring, const iovec* buffers, unsigned count) {
  return ::io_uring_register_buffers(ring, buffers, count);
}

int Syscalls::uring_register_files(io_uring* ring, const int* fds, unsigned count) {
  return ::io_uring_register_files(ring, fds, count);
}

int Syscalls::uring_submit(io_uring* ring) { return ::io_uring_submit(ring); }

#else

int Syscalls::uring_setup(unsigned, io_uring*) { return -ENOSYS; }
int Syscalls::uring_register_buffers(io_uring*, const iovec*, unsigned) { return -ENOSYS; }
int Syscalls::uring_register_files(io_uring*, const int*, unsigned) { return -ENOSYS; }
int Syscalls::uring_submit(io_uring*) { return -ENOSYS; }

#endif

Syscalls& real_syscalls() {
  static Syscalls calls;
  return calls;
}

}  // namespace ridge
