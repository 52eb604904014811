// The roofs of an OpenCL device (a GPU, or a CPU by PoCL): how fast small kernels read, copy and multiply-add, as a
// machine profile of its own.
//
// Not for: running models there; Ridge computes on the CPU. Nor for hosts without a driver: the library is opened when
// it is asked for, never linked.
//
//   for (const std::string& name : RIDGE_TRY(opencl_devices())) …        // "NVIDIA CUDA: RTX 3090"
//   MachineProfile gpu = RIDGE_TRY(probe_opencl({.device = 0, .quick = true}));
//   RIDGE_TRY(save_profile(gpu, "gpu.toml"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/profile.h"

namespace ridge {

struct OpenClOptions {
  size_t device = 0;  // index into opencl_devices()
  bool quick = false;
  uint64_t most_bytes = 0;  // largest footprint; 0: up to 1 GiB. Never more than the device allows
};

// What the drivers have, GPUs first, by the names of platform and device. I/O error if this ridge was built without
// OpenCL, or no library, driver or device is there.
Result<std::vector<std::string>> opencl_devices();

// Reads and copies by footprint, and the f32 and (where there are halves) f16 peaks, of the whole device: a "thread" is
// all of it, and `isa` is "opencl". Times are the device's own. Usage error for a device that is not there.
Result<MachineProfile> probe_opencl(const OpenClOptions& options);

}  // namespace ridge
