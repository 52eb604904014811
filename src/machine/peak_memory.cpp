#include "machine/peak_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

#include "machine/memory_limits.h"

namespace ridge {

bool reset_peak_memory() {
  // "5" sets VmHWM to the present VmRSS (proc(5)).
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

uint64_t peak_memory() {
  ProcessMemory memory = process_memory();
  return memory.peak_resident + memory.page_tables;
}

uint64_t resident_memory() {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  const ssize_t n = ::read(fd, text, sizeof text);
  ::close(fd);
  // "size resident shared …", in pages.
  const char* end = text + (n > 0 ? n : 0);
  uint64_t pages = 0;
  auto size = std::from_chars(text, end, pages);
  if (size.ec != std::errc() || size.ptr == end) return 0;
  if (std::from_chars(size.ptr + 1, end, pages).ec != std::errc()) return 0;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace ridge
