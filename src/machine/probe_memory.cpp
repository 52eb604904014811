#include "machine/probe_memory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace ridge {
namespace {

constexpr uint64_t kSmallPage = 4 * kKiB, kHugePage = 2 * kMiB;

}  // namespace

ProbeMemory::ProbeMemory(uint64_t bytes) : usable_(round_up(bytes, kHugePage)), bytes_(usable_ + kHugePage) {}

ProbeMemory::~ProbeMemory() {
  if (mapping_ != MAP_FAILED) ::munmap(mapping_, bytes_);
}

Result<void> ProbeMemory::map(PageSize pages) {
  mapping_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    return does_not_fit(fmt::format("probe: no {} of memory for the read roof ({}); free some memory and try again",
                                    format_bytes(bytes_), std::strerror(errno)));
  }
  // Refused where transparent huge pages are not built in; has_huge_pages() sees the outcome.
  (void)::madvise(mapping_, bytes_, pages == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  uintptr_t address = reinterpret_cast<uintptr_t>(mapping_);
  begin_ = static_cast<std::byte*>(mapping_) + (round_up(address, kHugePage) - address);
  return {};
}

uint64_t* ProbeMemory::part(int worker, int workers) const {
  uint64_t distance = usable_ / static_cast<uint64_t>(workers) / kSmallPage * kSmallPage;
  return static_cast<uint64_t*>(static_cast<void*>(begin_ + distance * static_cast<uint64_t>(worker)));
}

bool ProbeMemory::has_huge_pages() const {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  uint64_t resident_kib = 0, huge_kib = 0;
  uintptr_t begin = reinterpret_cast<uintptr_t>(begin_);
  while (std::getline(maps, line)) {
    unsigned long long from = 0, to = 0, kib = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2) inside = from < begin + usable_ && to > begin;
    if (!inside) continue;
    if (std::sscanf(line.c_str(), "Rss: %llu", &kib) == 1) resident_kib += kib;
    if (std::sscanf(line.c_str(), "AnonHugePages: %llu", &kib) == 1) huge_kib += kib;
  }
  return huge_kib > resident_kib / 2;
}

}  // namespace ridge
