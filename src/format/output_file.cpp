#include "format/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace ridge {
namespace {

Error failed(const std::string& path, std::string_view what, int error, std::optional<uint64_t> offset = {}) {
  std::string_view advice;
  if (error == ENOSPC || error == EDQUOT) advice = "; free some space or write elsewhere";
  if (error == EACCES || error == EPERM || error == EROFS) advice = "; write to a folder that is yours";
  if (error == ENOENT || error == ENOTDIR) advice = "; create the folder first";
  if (error == EFBIG) advice = "; write to a file system that holds larger files";
  return io_error(fmt::format("{}: {}: {}{}", path, what, std::generic_category().message(error), advice), offset);
}

Result<void> check_free_space(int fd, const std::string& path, uint64_t bytes) {
  struct statvfs info {};
  if (::fstatvfs(fd, &info) != 0) return {};  // no answer: the writes will tell
  uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (free_bytes >= bytes) return {};
  return io_error(fmt::format("{}: needs {} bytes, but the disk has {} free; free some space or write elsewhere", path,
                              format_count(bytes), format_count(free_bytes)));
}

}  // namespace

OutputFile::OutputFile(UniqueFd fd, const std::string& path, std::string partial, Name name)
    : fd_(std::move(fd)), path_(path), partial_(std::move(partial)), name_(name) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, {})),
      position_(other.position_),
      dirty_(other.dirty_.load()),
      name_(other.name_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  fd_ = std::move(other.fd_);
  path_ = std::move(other.path_);
  partial_ = std::exchange(other.partial_, {});
  position_ = other.position_;
  dirty_ = other.dirty_.load();
  name_ = other.name_;
  return *this;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (!fd_) return;
  fd_.reset();
  if (name_ == Name::partial) ::unlink(partial_.c_str());
}

std::string OutputFile::readable_path() const {
  return name_ == Name::partial ? partial_ : fmt::format("/proc/self/fd/{}", fd_.get());
}

// A file without a name becomes partial_. Through /proc: the other way needs a capability.
bool OutputFile::give_name() {
  if (name_ == Name::partial) return true;
  std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
  auto link = [&] { return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, partial_.c_str(), AT_SYMLINK_FOLLOW) == 0; };
  // A leftover of a dead process with our number is removed.
  if (!link() && !(errno == EEXIST && ::unlink(partial_.c_str()) == 0 && link())) return false;
  name_ = Name::partial;
  return true;
}

Result<OutputFile> OutputFile::create(const std::string& name) {
  if (name.empty()) return io_error("an output file's name is empty; give a path");
  // A link stays a link: what it leads to is written. (/dev/stdout is one, and renaming onto it would replace it.)
  std::error_code broken;
  std::filesystem::path target =
      std::filesystem::is_symlink(name, broken) ? std::filesystem::canonical(name, broken) : "";
  const std::string path = target.empty() ? name : target.string();
  struct stat info {};
  // Renaming onto /dev/null would replace the device.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return io_error(fmt::format("{}: is {}; give the path of a file", path,
                                S_ISDIR(info.st_mode) ? "a folder" : "a pipe or device, not a regular file"));
  }
  std::string partial = fmt::format("{}.partial-{}", path, ::getpid());
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  UniqueFd unnamed(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (unnamed && ::access("/proc/self/fd", X_OK) == 0) {
    return OutputFile(std::move(unnamed), path, std::move(partial), Name::none);
  }
  // O_EXCL: never follow a link that somebody laid there. A leftover of a dead process with our number is removed.
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  UniqueFd fd(::open(partial.c_str(), flags, 0666));
  if (!fd && errno == EEXIST && ::unlink(partial.c_str()) == 0) fd = UniqueFd(::open(partial.c_str(), flags, 0666));
  if (!fd) return failed(path, "cannot be created", errno);
  return OutputFile(std::move(fd), path, std::move(partial), Name::partial);
}

Result<void> OutputFile::preallocate(uint64_t bytes) {
  RIDGE_CHECK(fd_, "preallocate() after commit()");
  if (bytes == 0) return {};
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return failed(path_, "cannot be that large", EFBIG);
  // Asked first: fallocate() would fill the disk up to the last block before it gives up.
  RIDGE_TRY(check_free_space(fd_.get(), path_, bytes));
  // Not posix_fallocate(): where the file system cannot do it, glibc would write a byte into every block.
  int outcome = 0;
  do {
    outcome = ::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes));
  } while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    return failed(path_, fmt::format("no room for {} bytes", format_count(bytes)), errno);
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) return failed(path_, "cannot be extended", errno);
  return {};
}

Result<void> OutputFile::write(std::span<const uint8_t> bytes) {
  RIDGE_TRY(write_at(position_, bytes));
  position_ += bytes.size();
  return {};
}

Result<void> OutputFile::write(std::string_view text) {
  return write(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Result<void> OutputFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  RIDGE_CHECK(fd_, "a write after commit()");
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_, fmt::format("writing at {} failed", format_count(offset)), errno, offset);
    if (n == 0) return failed(path_, fmt::format("writing at {} failed", format_count(offset)), EIO, offset);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
    drop_written(static_cast<uint64_t>(n));
  }
  return {};
}

Result<void> OutputFile::read_at(uint64_t offset, std::span<uint8_t> bytes) const {
  RIDGE_CHECK(fd_, "a read after commit()");
  while (!bytes.empty()) {
    const ssize_t n = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return failed(path_, fmt::format("reading back at {} failed", format_count(offset)), n < 0 ? errno : EIO, offset);
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

// Pages can only be dropped once they are on the device, so the writer waits for it every few hundred KiB: a disk takes
// longer for the data itself.
void OutputFile::drop_written(uint64_t bytes) {
  constexpr uint64_t kStep = 512 * kKiB;
  if (dirty_.fetch_add(bytes) + bytes < kStep) return;
  dirty_ = 0;
  (void)::sync_file_range(fd_.get(), 0, 0,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
}

Result<void> OutputFile::commit() {
  RIDGE_CHECK(fd_, "commit() twice");
  // Errors that the file system put off (a full network disk, a dying device) come out here at the latest.
  if (::fdatasync(fd_.get()) != 0) {
    Error error = failed(path_, "writing to the device failed", errno);
    discard();
    return error;
  }
  if (!give_name()) {
    Error error = failed(path_, "cannot be put in place", errno);
    discard();
    return error;
  }
  int closed = ::close(fd_.release());
  if (closed != 0 || ::rename(partial_.c_str(), path_.c_str()) != 0) {
    Error error = failed(path_, closed != 0 ? "closing failed" : "cannot be put in place", errno);
    ::unlink(partial_.c_str());
    return error;
  }
  return {};
}

}  // namespace ridge
