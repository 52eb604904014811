#include "format/spool_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace ridge {
namespace {

Error failed(const std::string& folder, std::string_view what, int error) {
  const std::string_view advice = error == ENOSPC || error == EDQUOT ? "; free some space or write elsewhere" : "";
  return io_error(fmt::format("{}: {} a temporary file failed: {}{}", folder, what,
                              std::generic_category().message(error), advice));
}

}  // namespace

Result<SpoolFile> SpoolFile::create(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) {
    // A file system without such files: a name for a moment.
    std::string name = folder + "/.ridge-XXXXXX";
    fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd) return failed(folder, "making", errno);
    ::unlink(name.c_str());
  }
  return SpoolFile(std::move(fd), folder);
}

std::string SpoolFile::path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

Result<void> SpoolFile::append(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(folder_, "writing", n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  // What the append before this one began is over by now, as a rule; only then can its pages go.
  const auto range = [&](uint64_t begin, uint64_t end, unsigned flags) {
    (void)::sync_file_range(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(end - begin), flags);
  };
  if (started_ > settled_) {
    range(settled_, started_, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    (void)::posix_fadvise(fd_.get(), static_cast<off_t>(settled_), static_cast<off_t>(started_ - settled_),
                          POSIX_FADV_DONTNEED);
    settled_ = started_;
  }
  if (size_ > started_) range(started_, size_, SYNC_FILE_RANGE_WRITE);
  started_ = size_;
  return {};
}

Result<void> SpoolFile::read(uint64_t offset, std::span<uint8_t> into) const {
  RIDGE_CHECK(offset <= size_ && into.size() <= size_ - offset, "only what was appended is read");
  const uint64_t begin = offset;
  while (!into.empty()) {
    const ssize_t n = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(folder_, "reading", n < 0 ? errno : EIO);
    into = into.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  (void)::posix_fadvise(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(offset - begin), POSIX_FADV_DONTNEED);
  return {};
}

}  // namespace ridge
