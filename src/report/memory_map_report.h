// The memory map of a program on a machine of tiers as text: `ridge pack --machine`.
//
//   print(memory_map_summary(report));         // what each tier holds and serves
//   write_text("map.txt", memory_map_text(report));   // the same, then every range by its address
#pragma once

#include <string>

#include "sim/memory_map.h"

namespace ridge {

struct MemoryMapReport {
  std::string input;
  const sim::NpuMachine* machine = nullptr;
  const sim::NpuWork* work = nullptr;
  const sim::MemoryMap* map = nullptr;
  uint64_t positions = 0;  // of the key/value cache
  uint64_t align = 0;      // of tensors and bundles
  std::string embedding;   // the tensor whose rows are looked up
  sim::MapExtent embedding_at;
};
std::string memory_map_summary(const MemoryMapReport& report);
std::string memory_map_text(const MemoryMapReport& report);

}  // namespace ridge
