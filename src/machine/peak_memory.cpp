#include "machine/peak_memory.h"

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

}  // namespace ridge
