// A machine whose memory is a hierarchy that software manages: registers, local SRAM beside the multipliers, shared
// SRAM, DRAM; an array of multipliers; DMA engines. Read from the keys `npu` and `tiers` of a machine profile;
// docs/npu.md explains them and says where the figures of profiles/ come from.
//
//   if (RIDGE_TRY(has_tiers(path))) {
//     NpuMachine machine = RIDGE_TRY(load_npu_machine(path));
//     machine.inner().read_bytes_per_s;           // what the multipliers read from
//   }
//
// Not for: machines with caches that a CPU fills by itself (machine/profile.h), or what a pass takes (npu_run.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/profile.h"

namespace ridge::sim {

enum class TierKind : uint8_t { registers, local_sram, shared_sram, dram };
inline constexpr size_t kTiers = 4;
std::string_view name_of(TierKind kind);  // "registers", …: as profiles spell them

// Seconds, bytes, joules, watts.
struct Tier {
  std::string name;
  uint64_t bytes = 0;
  double read_bytes_per_s = 0, write_bytes_per_s = 0;
  double latency_s = 0;  // of a request, before its first byte
  uint64_t burst_bytes = 1;
  double read_j_per_byte = 0, write_j_per_byte = 0;
  // Of a row that is opened. No rows: row_bytes is 0.
  uint64_t row_bytes = 0;
  double activate_j = 0, row_s = 0;
  double leakage_w = 0;  // and refresh, and whatever else is drawn without an access

  // What a contiguous run of bytes moves and opens; it begins at a burst and at a row.
  uint64_t moved(uint64_t run) const { return (run + burst_bytes - 1) / burst_bytes * burst_bytes; }
  uint64_t rows(uint64_t run) const { return row_bytes == 0 ? 0 : (run + row_bytes - 1) / row_bytes; }
};

struct NpuFigure {
  std::string where;  // "npu", or the kind of the tier
  std::string what;
  double value = 0;  // in the unit of its name, as the profile has it
  FigureStatus status = FigureStatus::assumed;
  std::string source;
};

struct NpuMachine {
  std::string name;
  std::optional<Tier> registers, local, shared;
  Tier dram;
  // Multiply-adds per second of the whole array, and the share of them that a product of a matrix and a vector reaches.
  double macs_per_s = 0, float_macs_per_s = 0, utilisation = 1;
  double mac_j = 0, float_mac_j = 0;
  double leakage_w = 0;  // of the array and its control
  // DMA: requests under way, buffers that they fill (1: none is filled while another is computed on), their bytes
  // together, and how many blocks ahead they may be (0: reads begin when the block before is done).
  uint32_t engines = 1, buffers = 2, prefetch = 1;
  uint64_t staging_bytes = 0;
  uint64_t reserved_bytes = 0;     // of the inner SRAM: activations, scales, tables
  std::vector<NpuFigure> figures;  // all of them, in the order of the file

  // The SRAM that the multipliers read from: local if there is one.
  const Tier& inner() const { return local ? *local : *shared; }
  // SRAM that may keep something, less what DMA and activations need.
  uint64_t inner_room() const { return inner().bytes - staging_bytes - reserved_bytes; }
  uint64_t outer_room() const { return local && shared ? shared->bytes : 0; }
  uint64_t room() const { return inner_room() + outer_room(); }
  double all_leakage_w() const;
};

// Whether the profile has tiers. Bad input if it is no TOML file.
Result<bool> has_tiers(const std::string& path);
// Bad input, in one line: an unknown key or figure, a missing one, a number that cannot be (negative, NaN, a burst of
// 0, SRAM larger than DRAM, DMA buffers larger than their SRAM, …).
Result<NpuMachine> load_npu_machine(const std::string& path);

}  // namespace ridge::sim
