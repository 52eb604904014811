// What a pass of the engine takes on a host: the program and its placement as operations of the event simulator. Sees
// the probe's profile of the machine and the program, nothing else; a few constants stand for what the probe does not
// measure.
//
//   HostMachine host = host_machine(profile, {.threads = 2, .footprint_bytes = plan.program.memory_bytes()});
//   HostRun run = run_host(plan.program, plan.placement, host, {.passes = 12});
//   run.pass_s, run.waited_s, run.read_bytes          // of one pass, once all passes are alike
//
// Decode passes: one token each. Of prompts the probe says too little (it measures no rate of computing).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "machine/profile.h"
#include "memory/io_engine.h"
#include "program/program.h"
#include "sim/event_sim.h"
#include "sim/policy.h"

namespace ridge::sim {

// Seconds and bytes per second, of all compute threads together.
struct HostMachine {
  double panel_bytes_per_s = 10e9;  // pinned weights: panels read and multiplied
  double row_bytes_per_s = 6e9;     // streamed weights: rows of the file rearranged and multiplied
  double other_bytes_per_s = 10e9;  // key/value cache and activations
  double visit_s = 0;               // of each linear slice: cutting it up, gathering the threads
  double streamed_visit_s = 0;      // more of a streamed block: submitting its reads, noticing their end
  double pass_s = 0;                // of each pass: norms, sampling, text
  StorageQueue storage;
};

// The constants that one model calibrated (docs/simulator.md: which, how, and what others then showed).
struct HostConstants {
  double kernel_share_one = 0.88;   // of the read roof that decode reaches with one thread
  double kernel_share_more = 0.77;  // with several: they do not follow the memory's two-thread rate
  double rows_per_thread = 6.3e9;   // bytes per second packed and multiplied, slot in memory
  double visit_s = 3e-6;
  double streamed_visit_s = 40e-6;
  double pass_s = 300e-6;
  uint64_t request_bytes = IoOptions{}.request_bytes;  // of the engine's reads
  uint32_t depth = IoOptions{}.depth;
};

struct HostOptions {
  int threads = 1;
  uint64_t footprint_bytes = 0;  // of the weights that a pass reads
  HostConstants constants;
};

// Bad input if the profile has no memory figures, or none of storage that fit a device: direct reads of several sizes.
Result<HostMachine> host_machine(const MachineProfile& profile, const HostOptions& options);

// The storage of a profile as a queue, by least squares over its direct points of up to 1 MiB: per request and per byte
// from the deepest ones, latency from those with one request at a time. Where the size of the engine's requests was
// measured, the rate is that one.
Result<StorageQueue> storage_queue(const MachineProfile& profile, const HostConstants& constants);

struct HostRunOptions {
  uint32_t passes = 8;           // simulated; the figures are means of the second half
  uint64_t seed = 1;             // of the experts that routers choose, all alike
  std::string_view policy = {};  // by name; empty: the placement, as the engine does it
  uint64_t capacity = 0;         // of a policy, in bytes of memory
};

struct HostRun {
  EventSim sim;
  SimResult result;
  std::vector<double> pass_ends;
  double pass_s = 0, waited_s = 0;           // of one pass
  double read_bytes = 0, visited_bytes = 0;  // of one pass, as stored and as visited in memory
  double hit_ratio = 0;                      // of visited bytes, found in memory
};
HostRun run_host(const Program& program, const Placement& placement, const HostMachine& host,
                 const HostRunOptions& options);

}  // namespace ridge::sim
