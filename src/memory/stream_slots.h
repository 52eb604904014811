// The stream slots of a source: which block each holds, and reading ahead in the program's order, from the last visit
// on to the first. Two slots are enough: while one is computed on, the other fills (docs/streaming.md has the figures).
//
// Not for: pinned blocks, where pieces lie (source_layout.h), or blocks on demand (expert_cache.h).
//
//   StreamSlots slots({.program = &program, .placement = &placement, .layout = &layout, .io = io}, region);
//   slots.restart();                                 // a pass begins: the first visits are being read
//   auto pieces = RIDGE_TRY(slots.acquire(block));   // waits for the bytes
//   slots.release(block);                            // its slot takes the next visit at once
//
// One thread.
#pragma once

#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "memory/slot_loader.h"

namespace ridge {

struct SlotRegion {
  uint8_t* memory = nullptr;  // slots × slot_bytes
  uint64_t slot_bytes = 0;
  uint32_t slots = 0;
};

class StreamSlots {
 public:
  StreamSlots(const StreamSlotsOptions& options, const SlotRegion& region);

  // What is pinned has changed: follows the placement as it is now. Between passes, with no block held.
  void replan();
  // Ends what is being read and forgets what is there, so that the slots' memory may be used for something else.
  void clear();
  // The next visit expected is the first of the program.
  void restart();
  // Any streamed block; the one of the next visit is being read already. The views live until release().
  Result<std::span<const PieceView>> acquire(BlockId block);
  void release(BlockId block);
  // These come before the program's order, as far as slots are free.
  void want(std::span<const BlockId> blocks);

  enum class State : uint8_t { absent, loading, ready };
  State state(BlockId block);
  // Lets waiting requests start and notes reads that are over; called often, costs little.
  void poll();

  std::chrono::nanoseconds waited() const { return loader_.waited(); }

 private:
  using Content = SlotContent;
  struct Slot : LoadSlot {
    uint64_t turn = 0;  // when its read was submitted, in order
    uint64_t used = 0;  // when it was last released, in order
  };

  Slot* find(BlockId block);
  BlockId upcoming(size_t ahead) const;
  size_t upcoming_count() const;
  bool claimed(const Slot& slot) const;
  Slot* free_slot();
  Result<Slot*> slot_for_demand();
  void read_ahead();
  void submit(Slot& slot, BlockId block);
  void note_visit(BlockId block);

  StreamSlotsOptions options_;
  SlotLoader loader_;
  std::vector<Slot> slots_;
  std::vector<const Slot*> claimed_;  // by visits that come sooner, while reading ahead
  std::vector<BlockId> order_;        // streamed visits of one pass
  size_t cursor_ = 0;                 // in order_: the next visit
  std::deque<BlockId> wanted_;        // before it
  uint64_t next_turn_ = 0, next_use_ = 0;
};

}  // namespace ridge
