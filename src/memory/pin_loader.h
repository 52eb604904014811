// Fills the pins of a source once: reads a few MiB, rearranges them into panels with every core while the next few MiB
// arrive, so that memory never holds weights twice. Blocks of a .ridge file are panels already and land in place.
//
//   RIDGE_TRY(load_pins({.program = &program, .placement = &placement, .layout = &layout, .io = io, .pins =
//   pins.data(),
//                        .buffers = {a, b}, .pool = &pool, .pack = kernels.pack}));
#pragma once

#include <array>

#include "memory/io_engine.h"
#include "memory/source_layout.h"

namespace ridge {

struct PinLoaderOptions {
  const Program* program = nullptr;
  const Placement* placement = nullptr;
  const SourceLayout* layout = nullptr;
  IoEngine* io = nullptr;
  uint8_t* pins = nullptr;
  uint8_t* kept = nullptr;            // rows held for gathers; nullptr: leave them as they are
  std::array<uint8_t*, 2> buffers{};  // layout->load_chunk bytes each, and room for alignment
  ThreadPool* pool = nullptr;
  const PackFunction* pack = nullptr;  // by type; nullptr: the reference
};

Result<void> load_pins(const PinLoaderOptions& options);

}  // namespace ridge
