// A device whose blocks are contexts: each is loaded, initialised, run and released, and takes more memory than its
// weights. Read from a profile (TOML); profiles/rk3588-anima.toml is one, docs/simulator.md explains the keys.
//
//   ContextDevice device = RIDGE_TRY(load_context_device("profiles/rk3588-anima.toml"));
//   Program program = device.program();            // one block and one visit for each context
//   device.contexts[0].load_s
//
// Not for: machines that run kernels over weights in memory (machine/profile.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/program.h"

namespace ridge::sim {

struct Context {
  std::string name;  // "blk.3.self"
  uint32_t kind = 0;
  double weight_mib = 0;
  double load_s = 0, init_s = 0, release_s = 0;
  double run_s = 0;   // on the accelerator, one visit
  double host_s = 0;  // of the CPU before the next context may run
  double lifecycle_s() const { return load_s + init_s + release_s; }
};

struct LadderPoint {
  uint32_t contexts = 0;                                // the first so many, in order
  double added_mib = 0;                                 // PSS beyond the process without contexts
  double pss_mib = 0, available_mib = 0, swap_mib = 0;  // 0 for pools
};

// What the document that the profile was taken from concludes; nothing where it says nothing.
struct Published {
  std::optional<double> lifecycles, lru_hits, lifecycle_s, pass_lifecycle_s, resident_saving_s, image_s,
      resident_image_s, pinned_contexts, pinned_saving_s, pinned_mib, mapping_gib, added_pss_gib;
};

struct ContextDevice {
  std::string name;
  std::vector<std::string> kinds;
  std::vector<Context> contexts;  // in the order of a pass
  uint32_t steps = 0;             // of an image, unless others are asked for
  double other_s = 0;             // of an image, beside its passes
  double total_mib = 0;           // of the board
  std::vector<LadderPoint> ladder, pools;
  double mapping_mib = 0;  // device mappings of the first mapping_contexts
  uint32_t mapping_contexts = 0;
  double hold_swap_mib = 0;  // swap that grew while hold_contexts were kept
  uint32_t hold_contexts = 0;
  double gate_available_mib = 0, gate_swap_mib = 0;
  std::optional<double> fixed_lifecycle_s;  // of a context, whatever its size; nothing: fitted over the kinds
  Published published;

  Program program() const;    // sizes are the weights'
  double pass_run_s() const;  // of all contexts
  double pass_host_s() const;
  double pass_lifecycle_s() const;
  double fixed_s() const;  // of a context's lifecycle, by the profile or by fit over the kinds, at least 0
};

// Bad input with file, line and key: what is missing, unknown, of the wrong type or out of range.
Result<ContextDevice> load_context_device(const std::string& path);

// Neighbours fused: each context of the result is up to `k` of the given. Weights, execution and host time are sums;
// of the lifecycle the fixed part is paid once instead of k times.
ContextDevice merged(const ContextDevice& device, uint32_t k);

// The same device with every context as dear as the mean: how the document reckons.
ContextDevice averaged(const ContextDevice& device);

}  // namespace ridge::sim
