// What a run says about itself: one line for people, a table with --stats, and the same as JSON.
//
//   note(run_summary(engine));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/engine.h"

namespace ridge {

// Figures of a run so far.
struct RunFigures {
  double prompt_tokens_per_s = 0, decode_tokens_per_s = 0;
  double load_s = 0;
  uint64_t prompt_tokens = 0, decode_tokens = 0;
  uint64_t decode_passes = 0, drafted_tokens = 0, accepted_tokens = 0;
  double draft_s = 0, draft_share = 0;  // spent on guessing, and as a share of prompt and decode
  uint64_t peak_bytes = 0, budget_bytes = 0;
  uint64_t bytes_read = 0, load_bytes = 0;
  double wait_share = 0;          // of the time of passes, spent waiting for storage
  double hit_ratio = 1;           // of block visits, found in memory
  uint64_t experts_asked = 0;     // visits to unpinned blocks of experts …
  double expert_hit_ratio = 0;    // … found in a slot …
  uint64_t experts_passed = 0;    // … or read past the cache of their layer
  double neuron_share = 0;        // of bundles of neurons that passes came by, those that were touched
  double bound_tokens_per_s = 0;  // of decoding, by the plan's rates
  double bound_share = 0;         // decode speed against it
  double read_roof_share = 0;     // memory rate of decoding against the probe's read roof
  double storage_gb_per_s = 0, storage_roof_share = 0;
  bool bound_contended = false;  // others used the machine while it was measured
  bool bound_measured = false;   // by `ridge probe`, else by assumed rates
  double memory_gb_per_s = 0;    // weights read from memory while decoding
};
RunFigures run_figures(const Engine& engine);

// "prompt 45 tokens at 812.0/s · 64 tokens at 98.0/s · peak 58.1 MiB of 64.0 MiB · loaded 27 MiB, then read 812 MiB ·
// …"
std::string run_summary(const Engine& engine);
std::string run_table(const Engine& engine);
nlohmann::ordered_json run_json(const Engine& engine);

// The plan's reasons, the account and the kernels: --explain.
std::string explanation(const Engine& engine);

}  // namespace ridge
