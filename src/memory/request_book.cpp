#include "memory/request_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include "base/units.h"

namespace ridge {
namespace {

constexpr uint8_t kIoRetries = 2;
constexpr uint8_t kStalls = 3;
// EINTR and EAGAIN mean "ask again"; a kernel that says so a thousand times in a row means something else.
constexpr uint16_t kRepeats = 1000;

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

RequestBook::RequestBook(std::span<const DataFile> files, uint64_t request_bytes)
    : files_(files), request_bytes_(round_up(std::max(request_bytes, kIoAlign), kIoAlign)) {
  RIDGE_CHECK(request_bytes_ <= kGiB, "a request is far below the 2 GiB that one read can give");
}

RequestBook::Tag* RequestBook::find(uint32_t tag) {
  auto found = std::find_if(tags_.begin(), tags_.end(), [&](const Tag& t) { return t.tag == tag; });
  return found == tags_.end() ? nullptr : &*found;
}

RequestBook::Tag& RequestBook::tag_of(uint32_t tag) {
  if (Tag* known = find(tag)) return *known;
  tags_.push_back({.tag = tag, .pending = 0, .error = std::nullopt, .files = {}});
  return tags_.back();
}

Result<void> RequestBook::add(const ReadWish& wish) {
  RIDGE_CHECK(wish.file < files_.size(), "a wish names a file of this engine");
  RIDGE_CHECK(std::bit_cast<uintptr_t>(wish.into) % kIoAlign == 0, "reads land at multiples of 4,096");
  const DataFile& file = files_[wish.file];
  if (wish.offset > file.bytes() || wish.bytes > file.bytes() - wish.offset) {
    return bad_input(
        fmt::format("{}: {} bytes of weights at {} end past the end of the file ({}): the file is cut short; "
                    "fetch it again",
                    file.path(), format_count(wish.bytes), format_count(wish.offset), format_count(file.bytes())),
        wish.offset);
  }
  if (wish.bytes == 0) return {};

  Tag& tag = tag_of(wish.tag);
  if (std::find(tag.files.begin(), tag.files.end(), wish.file) == tag.files.end()) tag.files.push_back(wish.file);
  const uint64_t begin = wish.offset - read_lead(wish.offset);
  const uint64_t wanted_end = wish.offset + wish.bytes;
  const uint64_t span = read_span(wish.offset, wish.bytes);
  // Urgent requests go before the others, in order among themselves.
  auto place = queue_.begin();
  while (wish.urgent && place != queue_.end() && requests_[*place].urgent) ++place;
  for (uint64_t at = 0; at < span; at += request_bytes_) {
    Request request;
    request.file = wish.file;
    request.tag = wish.tag;
    request.offset = begin + at;
    request.bytes = static_cast<uint32_t>(std::min(request_bytes_, span - at));
    request.needed = static_cast<uint32_t>(std::min<uint64_t>(request.bytes, wanted_end - request.offset));
    request.into = wish.into + at;
    request.urgent = wish.urgent;
    uint32_t id = static_cast<uint32_t>(requests_.size());
    if (free_.empty()) {
      requests_.push_back(request);
    } else {
      id = free_.back();
      free_.pop_back();
      requests_[id] = request;
    }
    if (wish.urgent) {
      place = std::next(queue_.insert(place, id));
    } else {
      queue_.push_back(id);
    }
    ++tag.pending;
    bytes_asked_ += request.bytes;
  }
  return {};
}

uint32_t RequestBook::take_next() {
  RIDGE_CHECK(!queue_.empty(), "take_next() without a waiting request");
  uint32_t id = queue_.front();
  queue_.pop_front();
  return id;
}

void RequestBook::over(uint32_t id) {
  Tag* tag = find(requests_[id].tag);
  RIDGE_CHECK(tag != nullptr && tag->pending > 0, "every request belongs to a tag that waits for it");
  --tag->pending;
  free_.push_back(id);
}

void RequestBook::fail(uint32_t id, Error error) {
  Tag& tag = tag_of(requests_[id].tag);
  if (!tag.error) tag.error = std::move(error);
  over(id);
}

bool RequestBook::finish(uint32_t id, int64_t result) {
  Request& request = requests_[id];
  if (result < 0) return repeat_or_fail(id, static_cast<int>(-result));
  if (result == 0) return end_of_file(id, request.next_offset());

  const uint64_t arrived = request.done + static_cast<uint64_t>(result);
  RIDGE_CHECK(arrived <= request.bytes, "a read gives no more than was asked for");
  request.repeats = 0;
  if (arrived >= request.needed) {
    over(id);
    return true;
  }
  // O_DIRECT continues at whole blocks only: what came of the last one is read again.
  const uint64_t block = files_[request.file].direct() ? kIoAlign : 1;
  const uint64_t kept = arrived / block * block;
  if (kept > request.done) {
    request.done = static_cast<uint32_t>(kept);
    request.stalls = 0;
    return false;
  }
  return ++request.stalls >= kStalls && end_of_file(id, request.offset + arrived);
}

bool RequestBook::repeat_or_fail(uint32_t id, int error) {
  Request& request = requests_[id];
  if ((error == EINTR || error == EAGAIN) && ++request.repeats < kRepeats) return false;
  if (error == EIO && ++request.io_failures <= kIoRetries) return false;
  fail(id, io_error(fmt::format(
                        "{}: reading {} bytes at {} failed: {}{}; check the device, or copy the file to another",
                        file(request).path(), format_count(request.next_bytes()), format_count(request.next_offset()),
                        reason(error), error == EIO ? fmt::format(" ({} attempts)", kIoRetries + 1) : ""),
                    request.next_offset()));
  return true;
}

bool RequestBook::end_of_file(uint32_t id, uint64_t end) {
  const Request& request = requests_[id];
  fail(id, bad_input(fmt::format("{}: shrank while running: it ends at {}, but {} bytes were there when it was opened; "
                                 "restore the file and start again",
                                 file(request).path(), format_count(end), format_count(file(request).bytes())),
                     end));
  return true;
}

bool RequestBook::pending(uint32_t tag) const {
  return std::any_of(tags_.begin(), tags_.end(), [&](const Tag& t) { return t.tag == tag && t.pending > 0; });
}

Result<void> RequestBook::settle(uint32_t tag) {
  auto found = std::find_if(tags_.begin(), tags_.end(), [&](const Tag& t) { return t.tag == tag; });
  if (found == tags_.end()) return {};
  RIDGE_CHECK(found->pending == 0, "settle() comes after the last request of a tag");
  Tag settled = std::move(*found);
  tags_.erase(found);
  if (settled.error) return std::move(*settled.error);
  for (uint32_t f : settled.files) RIDGE_TRY(files_[f].verify_unchanged());
  return {};
}

}  // namespace ridge
