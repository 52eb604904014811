#include "memory/data_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "memory/io_engine.h"

namespace ridge {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

Error cannot_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) return bad_input(fmt::format("{}: no such file; check the path", path));
  if (error == EACCES || error == EPERM) {
    return bad_input(fmt::format("{}: permission denied; make the file readable (chmod +r)", path));
  }
  return io_error(fmt::format("{}: cannot be opened: {}", path, reason(error)));
}

}  // namespace

Result<DataFile> DataFile::open(const std::string& path, const DataFileOptions& options) {
  DataFile file(path, options.syscalls != nullptr ? options.syscalls : &real_syscalls());
  if (options.direct) {
    RIDGE_TRY(file.open_direct());
  } else {
    RIDGE_TRY(file.open_buffered());
  }
  return file;
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)),
      calls_(other.calls_),
      fd_(std::exchange(other.fd_, -1)),
      mode_(other.mode_),
      identity_(other.identity_),
      fallback_reason_(std::move(other.fallback_reason_)) {}

DataFile::~DataFile() {
  if (fd_ >= 0) calls_->close(fd_);
}

int DataFile::reopen(int flags) {
  if (fd_ >= 0) calls_->close(fd_);
  // O_NONBLOCK: opening a pipe would otherwise wait for its writer. It means nothing for a regular file.
  int fd = calls_->open(path_.c_str(), flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  fd_ = fd >= 0 ? fd : -1;
  return fd >= 0 ? 0 : -fd;
}

Result<void> DataFile::examine() {
  int error = calls_->identify(fd_, identity_);
  if (error != 0) return io_error(fmt::format("{}: cannot be examined: {}", path_, reason(-error)));
  if (identity_.regular) return {};
  return bad_input(fmt::format("{}: is not a regular file; give the path of a model file", path_));
}

Result<void> DataFile::open_direct() {
  mode_ = Mode::direct;
  int error = reopen(O_DIRECT);
  if (error == EINVAL || error == EOPNOTSUPP) {
    refuse_direct(fmt::format("{} when opened", reason(error)));
    return open_buffered();
  }
  if (error != 0) return cannot_open(path_, error);
  RIDGE_TRY(examine());
  if (!probe_direct()) return open_buffered();
  return {};
}

// Some file systems accept the flag and fail at the first read (overlayfs on squashfs, FUSE), others want larger
// blocks.
bool DataFile::probe_direct() {
  DirectAlignment wanted = calls_->direct_alignment(fd_);
  if (wanted.known && wanted.offset == 0) {
    refuse_direct("the file system offers none for this file");
    return false;
  }
  if (wanted.known && (wanted.offset > kIoAlign || wanted.memory > kIoAlign)) {
    refuse_direct(fmt::format("it wants blocks of {} bytes, more than 4,096", format_count(wanted.offset)));
    return false;
  }
  alignas(kIoAlign) uint8_t block[kIoAlign];
  int64_t got = -EAGAIN;
  for (int attempt = 0; attempt < 100 && (got == -EINTR || got == -EAGAIN); ++attempt) {
    got = calls_->read(fd_, block, sizeof block, 0, ReadFlavor::plain);
  }
  if (got >= 0) return true;
  refuse_direct(fmt::format("{} at the first read", reason(static_cast<int>(-got))));
  return false;
}

void DataFile::refuse_direct(std::string why) {
  fallback_reason_ = fmt::format("O_DIRECT is refused for {} ({})", path_, why);
}

Result<void> DataFile::open_buffered() {
  if (int error = reopen(0); error != 0) return cannot_open(path_, error);
  RIDGE_TRY(examine());
  // Read-ahead would bring in pages that nobody then drops.
  (void)calls_->advise(fd_, 0, 0, POSIX_FADV_RANDOM);
  alignas(kIoAlign) uint8_t block[kIoAlign];
  int64_t got = calls_->read(fd_, block, sizeof block, 0, ReadFlavor::dont_cache);
  mode_ = got >= 0 ? Mode::dont_cache : Mode::drop_after;
  return {};
}

int64_t DataFile::read(void* into, size_t bytes, uint64_t offset) const {
  if (mode_ == Mode::direct) return calls_->read(fd_, into, bytes, offset, ReadFlavor::plain);
  if (mode_ == Mode::dont_cache) return calls_->read(fd_, into, bytes, offset, ReadFlavor::dont_cache);
  int64_t got = calls_->read(fd_, into, bytes, offset, ReadFlavor::plain);
  if (got > 0) {
    // Whole pages alone are dropped: the range is rounded up so that the last one of the file is, too.
    (void)calls_->advise(fd_, offset, round_up(static_cast<uint64_t>(got), kIoAlign), POSIX_FADV_DONTNEED);
  }
  return got;
}

Result<void> DataFile::verify_unchanged() const {
  FileIdentity now;
  int error = calls_->identify(fd_, now);
  if (error != 0) return io_error(fmt::format("{}: cannot be examined: {}", path_, reason(-error)));
  if (now.bytes < identity_.bytes) {
    return bad_input(
        fmt::format("{}: shrank from {} to {} bytes while running: its weights are gone; restore the file and "
                    "start again",
                    path_, format_count(identity_.bytes), format_count(now.bytes)));
  }
  if (now.bytes != identity_.bytes || now.modified_ns != identity_.modified_ns) {
    return bad_input(fmt::format("{}: was written to while running: its weights may be mixed; start again", path_));
  }
  error = calls_->identify_path(path_.c_str(), now);
  // A file that was removed is still whole for whoever has it open.
  if (error == -ENOENT) return {};
  if (error != 0) return io_error(fmt::format("{}: cannot be examined: {}", path_, reason(-error)));
  if (now.device != identity_.device || now.inode != identity_.inode) {
    return bad_input(fmt::format("{}: was replaced by another file while running; start again", path_));
  }
  return {};
}

const char* DataFile::mode_name() const {
  switch (mode_) {
    case Mode::direct:
      return "O_DIRECT";
    case Mode::dont_cache:
      return "buffered with RWF_DONTCACHE";
    case Mode::drop_after:
      break;
  }
  return "buffered, pages dropped after each read";
}

}  // namespace ridge
