// The speed of the matrix kernels on this CPU, beside the roofs of the same moments: one thread, in CPU time, so that
// it means something on a shared machine.
//
// Not for: whole models (bench.h), or the other operations, which no profile shows (bench --profile).
//
//   KernelReport report = RIDGE_TRY(bench_kernels({.quick = true}));
//   for (const KernelRow& row : report.rows) row.decode_gb_per_s, row.reason;
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/choose.h"
#include "machine/profile.h"

namespace ridge {

// Which kernels are measured: those that run here by choice, or all that can run here.
enum class KernelScope : uint8_t { chosen, all };

struct KernelBenchOptions {
  KernelScope scope = KernelScope::chosen;
  std::optional<Isa> isa;  // as for choose_kernels
  bool quick = false;      // a small footprint and one repetition
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(uint64_t total)> progress = nullptr;  // after each of `total` kernels
};

// One entry of the list of kernels.
struct KernelRow {
  Op op = Op::matmul_q8;
  Type type = Type::F32;
  Isa isa = Isa::scalar;
  std::string name;
  CpuFeatures needs;
  bool chosen = false, runs_here = false;
  std::string refusals;  // of a chosen one: why nothing better runs, empty if it is the best there is
  // Of measured ones. Decode: one token, weights from beyond the caches, by bytes of panels. Prefill: 128 tokens; a
  // multiply-add is two operations. The shares are of the roofs measured in the same repetition, the peak being that of
  // the units that the kernel uses; best of the repetitions.
  bool measured = false;
  double decode_gb_per_s = 0, decode_share = 0;
  double prefill_gop_per_s = 0, prefill_share = 0;
};

struct KernelReport {
  std::string cpu;
  std::vector<std::string> features;
  uint64_t footprint_bytes = 0;
  double read_roof_gb_per_s = 0, int8_peak_gop_per_s = 0, float_peak_gop_per_s = 0;  // the best that was seen; 0: none
  std::vector<KernelRow> rows;                                                       // the whole list, in its order
  bool interrupted = false;
};

Result<KernelReport> bench_kernels(const KernelBenchOptions& options);

// How fast one core unpacks and multiplies each type by the kernel that runs here by choice, with weights that stay in
// its second cache: the fourth roof of a roofline, beside memory, caches and the integer peak.
Result<std::vector<FormatPoint>> measure_formats(bool quick);

// The list with what is chosen and why, nothing measured.
Result<std::vector<KernelRow>> kernel_rows(const std::optional<Isa>& isa);

}  // namespace ridge
