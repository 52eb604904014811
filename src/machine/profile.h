// A machine as numbers: memory tiers, storage, compute peaks. `ridge probe` writes one for this host (TOML, cached);
// profiles/ holds devices.
//
//   MachineProfile machine = RIDGE_TRY(load_profile(path));
//   double roof = machine.read_gb_per_s(footprint_bytes, threads);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Beside reading: STREAM's copy and triad, and a copy with stores past the caches. Bytes are those that the program
// reads and writes; a cache that reads a line in order to overwrite it moves more.
enum class StreamKind : uint8_t { copy, triad, streaming_copy };
std::string_view name_of(StreamKind kind);
struct StreamPoint {
  StreamKind kind = StreamKind::copy;
  uint64_t footprint_bytes = 0;
  int threads = 1;
  Measured gb_per_s;
};

struct LatencyPoint {  // one load after the other, each at an address that the one before it names
  uint64_t footprint_bytes = 0;
  Measured ns;
};

// A stretch of footprints that are read equally fast: a level of memory, found and not looked up.
struct MemoryLevel {
  uint64_t from_bytes = 0, to_bytes = 0;
  double gb_per_s = 0;
  int threads = 1;
};

// Multiply-adds on registers, all threads together; 1e9 operations per second.
struct PeakPoint {
  std::string type;  // "f32", "f16", "bf16", "int8"
  std::string isa;   // "scalar", "avx512-vnni", "amx-int8", …; empty in profiles of before: the widest without tiles
  int threads = 1;
  Measured gops;
};

// How fast one core unpacks and multiplies weights of a type that lie in its cache: 1e9 bytes of panels per second.
struct FormatPoint {
  std::string type;  // "Q4_K"
  Measured gb_per_s;
};

// One number from elsewhere: a data sheet, somebody's measurement, a guess. For devices that nobody probed here.
enum class FigureStatus : uint8_t { published, measured, assumed };
struct Figure {
  std::string what;  // one of figure_names()
  double value = 0;  // above 0, in the unit of its name
  FigureStatus status = FigureStatus::assumed;
  std::string source;
};
// "memory_gb_per_s", "int8_gops", …; docs/probe.md says what each means.
std::span<const std::string_view> figure_names();
std::string_view name_of(FigureStatus status);

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

  std::vector<StreamPoint> streams;
  std::vector<LatencyPoint> latencies;
  std::vector<MemoryLevel> levels;  // ascending
  std::vector<PeakPoint> peaks;
  std::vector<FormatPoint> formats;
  double clock_ghz_before = 0, clock_ghz_after = 0;  // by a chain of dependent additions; 0: not known
  std::vector<Figure> figures;

  // The figure of this name that bounds it best: published ones before measured and assumed ones; nullptr if there is
  // none.
  const Figure* figure(std::string_view what) const;
  // Best read rate at a footprint and thread count: interpolated in log footprint between measured points; without
  // any the figure memory_gb_per_s.
  std::optional<double> read_gb_per_s(uint64_t footprint_bytes, int threads) const;
  // Best direct point; where O_DIRECT is refused, the best buffered one; without any the figure storage_gb_per_s.
  std::optional<double> storage_gb_per_s() const;
  // The highest peak of a type, 1e9 operations per second of that many threads together: of the measured counts the
  // nearest, by the number of threads. None where it was not measured.
  std::optional<double> peak_gops(std::string_view type, int threads) const;
  int most_threads() const;  // that its reads were measured with; 1 if there are none
};

Result<MachineProfile> load_profile(const std::string& path);
Result<void> save_profile(const MachineProfile& profile, const std::string& path);
std::string default_profile_path();  // machine.toml in cache_folder(); empty if there is none

}  // namespace ridge
