#include "format/file_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/log.h"
#include "base/units.h"

namespace ridge {
namespace {

// What O_DIRECT wants of offsets, lengths and addresses: the device's logical block, at most 4 KiB where Linux runs
// today. A file system that wants more answers EINVAL, and we read through the cache instead.
constexpr size_t kDirectAlignment = 4096;

std::string reason(int error) { return std::generic_category().message(error); }

Error cannot_open(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
      return bad_input(fmt::format("{}: no such file; check the path", path));
    case EACCES:
    case EPERM:
      return bad_input(fmt::format("{}: permission denied; make the file readable (chmod +r)", path));
    case EISDIR:
      return bad_input(fmt::format("{}: is a folder; give the path of a file in it", path));
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return bad_input(fmt::format("{}: {}; check the path", path, reason(error)));
    default:
      return io_error(fmt::format("{}: cannot be opened: {}", path, reason(error)));
  }
}

void say_buffered(const std::string& path, int error) {
  detail(
      fmt::format("{}: O_DIRECT is refused here ({}): reading through the page cache and dropping each chunk after it",
                  path, reason(error)));
}

}  // namespace

Result<void> ByteStream::skip(uint64_t bytes) {
  if (bytes > remaining()) return past_the_end(bytes);
  auto buffered = static_cast<uint64_t>(end_ - next_);
  if (bytes <= buffered) {
    next_ += bytes;
    return {};
  }
  // The next read fills the window from here.
  set_window({}, position() + bytes);
  return {};
}

Result<void> ByteStream::read_slowly(uint8_t* out, size_t bytes) {
  if (bytes > remaining()) return past_the_end(bytes);
  while (bytes > 0) {
    if (next_ == end_) RIDGE_TRY(refill(position()));
    size_t n = std::min(bytes, static_cast<size_t>(end_ - next_));
    std::memcpy(out, next_, n);
    next_ += n;
    out += n;
    bytes -= n;
  }
  return {};
}

Error ByteStream::past_the_end(uint64_t bytes) const {
  return bad_input(
      fmt::format("{}: {} bytes were expected at {}, but the file ends at {}: it is cut short; fetch it again", name_,
                  format_count(bytes), format_count(position()), format_count(size_)),
      position());
}

Result<void> SpanStream::refill(uint64_t position) {
  RIDGE_CHECK(position >= size(), "the window of a span is the whole of it");
  return past_the_end(1);
}

FileStream::FileStream(UniqueFd fd, const std::string& path, uint64_t size, bool direct, size_t chunk_bytes)
    : ByteStream(path, size),
      fd_(std::move(fd)),
      direct_(direct),
      chunk_bytes_(round_up(std::max(chunk_bytes, kDirectAlignment), kDirectAlignment)),
      storage_(chunk_bytes_ + kDirectAlignment) {
  auto address = std::bit_cast<uintptr_t>(storage_.data());
  chunk_ = storage_.data() + (round_up(address, kDirectAlignment) - address);
}

Result<FileStream> FileStream::open(const std::string& path, const FileStreamOptions& options) {
  if (path.empty()) return bad_input("a file name is empty; give the path of a file");
  // O_NONBLOCK: opening a pipe would otherwise wait for its writer. It means nothing for a regular file.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  UniqueFd fd;
  bool direct = options.try_direct;
  if (direct) fd = UniqueFd(::open(path.c_str(), flags | O_DIRECT));
  if (!fd) {
    if (direct && errno == EINVAL) say_buffered(path, errno);
    direct = false;
    fd = UniqueFd(::open(path.c_str(), flags));
  }
  if (!fd) return cannot_open(path, errno);

  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return io_error(fmt::format("{}: cannot be examined: {}", path, reason(errno)));
  if (S_ISDIR(info.st_mode)) return cannot_open(path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return bad_input(fmt::format("{}: is a pipe or device, not a regular file; copy it into a file first", path));
  }
  // Read-ahead would bring in pages that we then do not know to drop.
  if (!direct) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  return FileStream(std::move(fd), path, static_cast<uint64_t>(info.st_size), direct, options.chunk_bytes);
}

Result<void> FileStream::refill(uint64_t position) {
  uint64_t begin = position / kDirectAlignment * kDirectAlignment;
  auto skipped = static_cast<size_t>(position - begin);
  size_t got = RIDGE_TRY(read_chunk(begin, skipped + 1));
  // A file that grew while we read is no concern of ours: size() was promised.
  got = static_cast<size_t>(std::min<uint64_t>(got, size() - begin));
  set_window({chunk_ + skipped, got - skipped}, position);
  return {};
}

// Reads up to a chunk from `offset` (aligned); returns how many bytes came, at least `at_least`.
Result<size_t> FileStream::read_chunk(uint64_t offset, size_t at_least) {
  size_t got = 0;
  while (got < at_least) {
    ssize_t n = ::pread(fd_.get(), chunk_ + got, chunk_bytes_ - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && direct_) {
      leave_direct(errno);
      continue;
    }
    if (n < 0) {
      return io_error(fmt::format("{}: reading at {} failed: {}; check the disk and try again", name(),
                                  format_count(offset + got), reason(errno)),
                      offset + got);
    }
    if (n == 0) {
      return io_error(fmt::format("{}: the file became shorter while it was read (it had {} bytes, now {}); "
                                  "let the other program finish and try again",
                                  name(), format_count(size()), format_count(offset + got)),
                      offset + got);
    }
    got += static_cast<size_t>(n);
  }
  if (!direct_) {
    ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(round_up(got, kDirectAlignment)),
                    POSIX_FADV_DONTNEED);
  }
  return got;
}

void FileStream::leave_direct(int error) {
  say_buffered(name(), error);
  int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags >= 0) ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT);
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);
  direct_ = false;
}

}  // namespace ridge
