// Which experts a run's router chose, in bytes: what a roofline counts instead of what would be read if all experts
// were chosen alike.
//
//   engine.recording()->clear();
//   … evaluate …
//   uint64_t bytes = chosen_expert_bytes(*engine.recording());
#pragma once

#include <cstdint>

#include "memory/recording_source.h"

namespace ridge {

// Whether a router chooses some of its blocks.
bool has_experts(const Program& program);

// Bytes of panels of the blocks on demand, each once for every pass that asked for it.
uint64_t chosen_expert_bytes(const RecordingSource& recording);

}  // namespace ridge
