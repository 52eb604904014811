// Measures this machine's read roof (by footprint, threads and page size) and its storage (by request size and depth).
//
//   MachineProfile machine = RIDGE_TRY(probe_machine({.storage_file = "model.gguf", .quick = true}));
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "machine/profile.h"

namespace ridge {

struct ProbeOptions {
  // A file to read, any large one. Empty: a temporary one is written in storage_folder.
  std::string storage_file = {};
  std::string storage_folder = {};  // where the temporary file goes, default: the cache folder
  int threads = 0;                  // most threads to try, 0: all usable CPUs
  bool quick = false;               // about 10 seconds instead of a minute
  bool memory = true, storage = true;
  // Reads the file of this path as the engine does, which lies in a layer above (analyze/engine_reads.h): the point
  // replaces that of its shape. Asked where O_DIRECT works and the file is large enough.
  std::function<Result<StoragePoint>(const std::string& path)> engine_reads = nullptr;
  uint64_t engine_reads_bytes = 0;  // that such a file has at least
};

Result<MachineProfile> probe_machine(const ProbeOptions& options);

}  // namespace ridge
