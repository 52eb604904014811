// What an event simulation did, as the engine's trace tells it: lanes, blocks, waits, passes, and memory.
//
//   HostRun run = run_host(program, placement, host, {});
//   write_trace(run.sim, run.result, {.ends = run.pass_ends, .name = "decode", .tokens = 1}, trace);
//
// Times count from TraceClock's zero. Where the compute lane stands still there is a wait for the block that comes
// next; where an operation gives back a slot or memory outside the release lane, its block is released at its end. Not
// for: files (report/chrome_trace.h).
#pragma once

#include <cstdint>
#include <span>

#include "program/trace.h"
#include "sim/event_sim.h"

namespace ridge::sim {

struct SimPasses {
  std::span<const double> ends = {};  // seconds; each pass begins where the one before it ended
  const char* name = "pass";          // a string literal
  uint32_t tokens = 0;                // of each
  uint64_t base_bytes = 0;            // memory that is there without what operations claim
};

// Events in the order of their ends. Memory is told where operations claim bytes.
void write_trace(const EventSim& sim, const SimResult& result, const SimPasses& passes, Trace& trace);

}  // namespace ridge::sim
