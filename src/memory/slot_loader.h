// A slot that a block is read into, and the reading: what stream slots and the cache of experts do alike.
//
// Not for: which slot takes which block (stream_slots.h, expert_cache.h).
//
//   loader.submit(slot, block);                              // its reads are under way
//   RIDGE_TRY(loader.arrive(slot, {.since = begin}));        // waits for them, and counts the waiting
//
// One thread.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "memory/io_engine.h"
#include "memory/source_layout.h"
#include "memory/weight_source.h"
#include "program/trace.h"

namespace ridge {

struct StreamSlotsOptions {
  const Program* program = nullptr;
  const Placement* placement = nullptr;
  const SourceLayout* layout = nullptr;
  IoEngine* io = nullptr;
  Trace* trace = nullptr;
};

enum class SlotContent : uint8_t { nothing, loading, ready, failed };

struct LoadSlot {
  SlotContent content = SlotContent::nothing;
  BlockId block = 0;
  uint32_t leases = 0;
  uint32_t tag = 0;
  uint8_t* memory = nullptr;
  std::vector<PieceView> pieces;
  std::optional<Error> error;
  TraceClock::time_point submitted;
};

struct SlotLoaderOptions {
  uint32_t first_tag = 0, last_tag = 0;  // of its reads, apart from all others of the engine
  bool urgent = false;                   // they go before what is read ahead
};

class SlotLoader {
 public:
  SlotLoader(const StreamSlotsOptions& source, const SlotLoaderOptions& options)
      : source_(source), options_(options), next_tag_(options.first_tag) {}

  // What the slot holds is given up: after it, nothing. Not while it is being read into.
  void forget(LoadSlot& slot);
  // Begins to read the block into the slot, which forgets what it held. What goes wrong is told when the load is
  // finished.
  void submit(LoadSlot& slot, BlockId block);
  // Takes what the device said about a slot's bytes; waits for it if need be. After an error the slot holds nothing.
  Result<void> finish(LoadSlot& slot);
  // The same for who needs the bytes now, and began to wait for them at `since`.
  struct Wait {
    TraceClock::time_point since;
    bool unforeseen = false;  // the read began only now
  };
  Result<void> arrive(LoadSlot& slot, const Wait& wait);

  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  StreamSlotsOptions source_;
  SlotLoaderOptions options_;
  uint32_t next_tag_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace ridge
