// Learns which blocks foretell which: the next-block table of the importance policy, and previous-token prediction with
// it (a block may foretell itself).
//
// Each block gets the few foretellers that tell most about it by correlation, from its own pass and from the one
// before; their weights are those of a logistic regression, by stochastic gradient with AdaGrad's steps (Duchi and
// others, 2011) in the order of the trace.
//
//   learn_links({.blocks = blocks, .pass = pass, .used_in = used_in, .last = 400}, model);   // fills the table of
//   `model`
//
// Deterministic. Memory: one count for each two blocks, up to kMostLinked of them (128 MiB); beyond that nothing is
// learned.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/importance.h"

namespace ridge::sim {

inline constexpr size_t kMostLinked = 4096;

struct LinkSamples {
  std::span<const uint32_t> blocks;                // accesses, in order
  std::span<const uint64_t> pass;                  // of each, from 1
  std::span<const std::vector<uint32_t>> used_in;  // by block: passes, ascending
  uint64_t last = 0;                               // pass that is learned from
};

// model.position is read; same_pass, next_pass and the log odds are written.
void learn_links(const LinkSamples& samples, ImportanceModel& model);

}  // namespace ridge::sim
