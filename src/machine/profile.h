// A machine as numbers: memory tiers, storage, compute peaks. `ridge probe` writes one for this host (TOML, cached);
// profiles/ holds devices.
//
//   MachineProfile machine = RIDGE_TRY(load_profile(path));
//   double roof = machine.read_gb_per_s(footprint_bytes, threads);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ridge {

// One measurement with its spread: median of `runs`, and the quartiles.
struct Measured {
  double value = 0, low = 0, high = 0;
  int runs = 0;
};

struct ReadPoint {  // read-only stream
  uint64_t footprint_bytes = 0;
  int threads = 1;
  bool huge_pages = false;
  Measured gb_per_s;  // 1e9 bytes per second, all threads together
};

struct StoragePoint {
  uint64_t request_bytes = 0;
  int depth = 1;
  bool direct = true;
  Measured gb_per_s;
};

struct MachineProfile {
  std::string name;         // CPU model or device
  std::string measured_at;  // ISO date, empty for published profiles
  bool contended = false;   // spread too wide to trust, or others were using the CPU
  std::string contention;   // why
  std::vector<ReadPoint> reads;
  std::vector<StoragePoint> storage;
  std::string storage_path;  // the file or folder that was probed
  // Peaks of one core, 1e9 operations per second (a multiply-add is two); 0: not known.
  double int8_gops_per_core = 0, float_gops_per_core = 0;

  // Best read rate at a footprint and thread count: interpolated in log footprint between measured points (nullopt if
  // none).
  std::optional<double> read_gb_per_s(uint64_t footprint_bytes, int threads) const;
  std::optional<double> storage_gb_per_s()
      const;                 // best direct point; where O_DIRECT is refused, the best buffered one
  int most_threads() const;  // that its reads were measured with; 1 if there are none
};

Result<MachineProfile> load_profile(const std::string& path);
Result<void> save_profile(const MachineProfile& profile, const std::string& path);
std::string default_profile_path();  // machine.toml in cache_folder(); empty if there is none

}  // namespace ridge
