#include "machine/storage_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/units.h"

namespace ridge {
namespace {

constexpr uint64_t kBlock = 4096;  // what every O_DIRECT device accepts
constexpr uint64_t kSmallestFile = kMiB;

// A file without a name where the file system has O_TMPFILE; else one whose name is taken away at once.
int open_nameless(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = folder + "/ridge-probe-XXXXXX";
  fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) (void)::unlink(name.c_str());
  return fd;
}

// xorshift64: data that a compressing file system or disk cannot shrink.
void fill_random(std::span<uint64_t> words, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (uint64_t& word : words) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state;
  }
}

}  // namespace

Result<StorageFile> StorageFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NONBLOCK: a FIFO must not hang us
  if (fd < 0) return bad_input(fmt::format("{}: cannot open it to measure storage ({})", path, std::strerror(errno)));
  StorageFile file(fd, 0, path);
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return io_error(fmt::format("{}: {}", path, std::strerror(errno)));
  if (!S_ISREG(facts.st_mode))
    return bad_input(fmt::format("{}: not a regular file; name a large file, such as a model", path));
  file.bytes_ = static_cast<uint64_t>(facts.st_size) / kBlock * kBlock;
  if (file.bytes_ < kSmallestFile) {
    return bad_input(fmt::format("{}: {} are too few to measure storage with; name a file of at least {}", path,
                                 format_bytes(static_cast<uint64_t>(facts.st_size)), format_bytes(kSmallestFile)));
  }
  return file;
}

Result<StorageFile> StorageFile::temporary(const std::string& folder, uint64_t bytes) {
  int fd = open_nameless(folder);
  if (fd < 0) {
    return io_error(
        fmt::format("{}: cannot write a temporary file to measure storage with ({}); name another folder, "
                    "or a large file",
                    folder, std::strerror(errno)));
  }
  StorageFile file(fd, bytes, folder);
  RIDGE_TRY(file.fill(bytes));
  return file;
}

StorageFile::StorageFile(StorageFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      path_(std::move(other.path_)),
      refusal_(std::move(other.refusal_)) {}

StorageFile::~StorageFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> StorageFile::fill(uint64_t bytes) {
  std::vector<uint64_t> words(kMiB / sizeof(uint64_t));
  auto failed = [&](int error) {
    return io_error(
        fmt::format("{}: cannot write a temporary file of {} to measure storage with ({}); name another "
                    "folder, or a large file",
                    path_, format_bytes(bytes), std::strerror(error)));
  };
  for (uint64_t offset = 0; offset < bytes; offset += kMiB) {
    fill_random(words, offset / kMiB + 1);
    const char* data = reinterpret_cast<const char*>(words.data());
    for (uint64_t done = 0; done < kMiB;) {
      ssize_t n = ::pwrite(fd_, data + done, kMiB - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed(n < 0 ? errno : ENOSPC);
      done += static_cast<uint64_t>(n);
    }
  }
  if (::fdatasync(fd_) != 0) return failed(errno);
  return {};
}

bool StorageFile::set_direct(bool direct) {
  int flags = ::fcntl(fd_, F_GETFL);
  int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) {
    refusal_ = std::strerror(errno);
    return false;
  }
  if (!direct) return true;
  // Some file systems take the flag and refuse the read.
  alignas(kBlock) std::array<std::byte, kBlock> block;
  if (::pread(fd_, block.data(), block.size(), 0) == static_cast<ssize_t>(block.size())) return true;
  refusal_ = std::strerror(errno);
  (void)::fcntl(fd_, F_SETFL, flags & ~O_DIRECT);
  return false;
}

std::string StorageFile::handle() const { return fmt::format("/proc/self/fd/{}", fd_); }

void StorageFile::drop_cache() const { (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }

Result<void> StorageFile::read(std::span<std::byte> buffer, uint64_t offset) const {
  while (!buffer.empty()) {
    ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(fmt::format("{}: reading failed ({})", path_, std::strerror(errno)), offset);
    if (n == 0)
      return io_error(fmt::format("{}: ended while it was read; did another program cut it short?", path_), offset);
    buffer = buffer.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace ridge
