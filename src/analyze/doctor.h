// What on this machine helps or hinders a run: each fact with a verdict and what to do about it. The judging is apart
// from the reading, so that every case can be tried with made-up facts.
//
// Not for: measuring roofs (`ridge probe`), or anything that changes the machine.
//
//   DoctorFacts facts;
//   facts.system = system_facts();
//   for (const Finding& f : examine(facts)) print(f);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "machine/cpu.h"
#include "machine/memory_limits.h"
#include "machine/memory_state.h"
#include "machine/profile.h"
#include "machine/system_facts.h"
#include "memory/io_facts.h"

namespace ridge {

enum class Severity : uint8_t { ok, note, problem };

struct Finding {
  std::string topic;  // "memory", "io_uring", …
  std::string fact;
  Severity verdict = Severity::ok;
  std::string advice;  // what to do; empty where there is nothing to do
};

// What a run of the model would settle on, or how it would fail.
struct ModelFacts {
  std::string path;
  std::optional<Engine::Preview> preview;
  std::optional<Error> error;
};

struct DoctorFacts {
  SystemFacts system;
  MemoryLimits limits;
  MemoryState memory;
  CpuInfo cpu;
  uint32_t usable_cpus = 1;
  double cpu_quota = 0;  // CPUs of the cgroup, 0: no limit
  std::optional<IoFacts> io;
  std::string io_error;                    // why there are none
  std::optional<MachineProfile> profile;   // kept by `ridge probe`
  std::optional<double> storage_gb_per_s;  // measured just now, where no profile is kept
  std::optional<KernelChoice> kernels;
  std::optional<ModelFacts> model;
};

// In the order in which they should be read: memory, CPU, storage, system, choice.
std::vector<Finding> examine(const DoctorFacts& facts);

// The error that a run would end with, if something makes it impossible.
std::optional<Error> impossible(const DoctorFacts& facts);

}  // namespace ridge
