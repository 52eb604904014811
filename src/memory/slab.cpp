#include "memory/slab.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <limits>

#include "base/units.h"

// In headers since Linux 5.14; an older kernel answers EINVAL and the pages are touched one by one.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ridge {
namespace {

uint64_t page_of(uint64_t bytes) { return bytes >= kHugePage ? kHugePage : kSmallPage; }

Error no_room(const char* what, uint64_t bytes) {
  return does_not_fit(
      fmt::format("{} of {} bytes ({}) cannot be allocated: the system has no room for it; give a smaller "
                  "--memory, or end other programs",
                  what, format_count(bytes), format_bytes(bytes)));
}

// Makes every page present, so that no later access can fail. False: there is no room.
bool touch(uint8_t* data, uint64_t bytes) {
  int result;
  do {
    result = ::madvise(data, bytes, MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) return true;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return false;
  for (uint64_t at = 0; at < bytes; at += kSmallPage) *const_cast<volatile uint8_t*>(data + at) = 0;
  return true;
}

}  // namespace

uint64_t Slab::charge(uint64_t bytes) {
  if (bytes == 0) return 0;
  uint64_t mapped = round_up(bytes, page_of(bytes));
  // One page of page-table entries per 2 MiB where huge pages were not granted, and two for the levels above.
  return mapped + (mapped / kHugePage + 3) * kSmallPage;
}

Result<Slab> Slab::allocate(uint64_t bytes, const SlabOptions& options) {
  if (bytes == 0) return Slab();
  if (bytes > std::numeric_limits<int64_t>::max()) return no_room(options.what, bytes);
  const uint64_t page = page_of(bytes);
  const uint64_t mapped = round_up(bytes, page);
  // The kernel aligns to 4 KiB; a large slab is cut out of a mapping that is one huge page longer.
  const uint64_t reserve = page == kHugePage ? mapped + kHugePage : mapped;
  void* address = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return no_room(options.what, bytes);

  auto* begin = static_cast<uint8_t*>(address);
  auto number = std::bit_cast<uintptr_t>(begin);
  uint64_t lead = round_up(number, page) - number;
  if (lead > 0) ::munmap(begin, lead);
  if (reserve - lead > mapped) ::munmap(begin + lead + mapped, reserve - lead - mapped);
  Slab slab(begin + lead, mapped);

  // A refusal costs speed, not correctness: the slab then has small pages.
  if (page == kHugePage && options.huge_pages) (void)::madvise(slab.data_, mapped, MADV_HUGEPAGE);
  if (options.touch && !touch(slab.data_, mapped)) return no_room(options.what, bytes);
  return slab;
}

Slab& Slab::operator=(Slab&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Slab::discard(uint64_t offset, uint64_t bytes) const {
  RIDGE_CHECK(offset % kSmallPage == 0 && bytes % kSmallPage == 0 && offset + bytes <= bytes_, "pages of this slab");
  // Fails only for locked pages, which then stay: nothing is lost.
  (void)::madvise(data_ + offset, bytes, MADV_DONTNEED);
}

void Slab::reset() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace ridge
