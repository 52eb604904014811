// The slots of blocks on demand (experts): a cache for each layer, and a few slots that all layers share for what
// passes by. Which experts are used next is known only when a router has chosen; neighbouring tokens choose alike, so
// what a layer used lately is worth keeping (streamed blocks of the program's order are the opposite: stream_slots.h).
//
// Nothing that the current choice of a layer uses makes room for more of the same choice: what does not fit goes
// through the shared slots (bypass). Otherwise a cache smaller than one token's demand, or than a prompt batch's, would
// be emptied before it is used again, and hit nothing.
//
// By importance one cache serves all layers: a manager (cache_manager.h) says what stays, each use is told to it, and
// what it does not keep goes through whatever slot holds nothing that it keeps.
//
// A cache that is trained (task_pins.h) also has pins, of a task. When the task changes, what is pinned from now on is
// read between passes, at most so many bytes for each pass.
//
//   ExpertCache cache(slot_options, {.memory = slab, .slot_bytes = bytes, .slots = 20});
//   cache.want(blocks);                              // a router chose: reads begin
//   auto pieces = RIDGE_TRY(cache.acquire(block));   // waits for the bytes
//   cache.release(block);
//
// One thread.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "memory/cache_manager.h"
#include "memory/stream_slots.h"
#include "memory/task_pins.h"

namespace ridge {

// What a cache is trained by.
struct ExpertTraining {
  const TaskTable* table = nullptr;  // nullptr: it is not; must outlive the cache
  TaskMode mode = TaskMode::mean;
  std::optional<size_t> task = {};    // of TaskMode::named
  uint64_t bytes_per_pass = 4 << 20;  // of pins that are read before a pass; one block at least
};

class ExpertCache {
 public:
  // placement.expert_cache of the slots belong to each expert group, the rest to all.
  // By importance alone there is training.
  ExpertCache(const StreamSlotsOptions& options, const SlotRegion& region, const ExpertTraining& training = {});

  // A pass of so many tokens begins: what was wanted and not used is forgotten, and pins of another task are read.
  void restart(uint32_t tokens);
  // A router chose these, all of one layer: reads begin as far as slots are free, the rest as they become free.
  void want(std::span<const BlockId> blocks);
  // The views live until release().
  Result<std::span<const PieceView>> acquire(BlockId block);
  void release(BlockId block);

  using State = StreamSlots::State;
  State state(BlockId block) const;  // as of the last poll()
  void poll();

  std::chrono::nanoseconds waited() const { return loader_.waited(); }
  // Blocks that were asked for; those that were in a slot; those of the others that went through a shared one.
  struct Counts {
    uint64_t asked = 0, hits = 0, passed = 0;
  };
  const Counts& counts() const { return counts_; }

  // Of a trained one: between passes. The user names a task (nothing: the mean of all), a turn begins.
  void name_task(std::optional<size_t> task);
  void begin_turn();
  // nullptr: it is not trained.
  const TaskStats* tasks() const { return pins_ ? &task_stats_ : nullptr; }

  // What the description of slots and blocks takes on the heap, for the account.
  static uint64_t heap_bytes(uint32_t slots, size_t blocks, ExpertPolicy policy);
  // And of a trained one on top, for so many tasks.
  static uint64_t training_bytes(size_t blocks, size_t tasks);

 private:
  using Content = SlotContent;
  struct Slot : LoadSlot {
    uint64_t used = 0;  // when it was last wanted or released, in order
  };
  struct Use {
    uint32_t group = 0;
    int32_t slot = -1;     // where it is, or -1
    uint32_t choice = 0;   // of its layer, that last wanted it
    bool waiting = false;  // in wanted_
    bool kept = false;     // by the manager
    float score = 0;       // uses, older ones counting less, as of `choice`
  };
  struct Group {
    uint32_t first_slot = 0, slots = 0;
    uint32_t choice = 1;  // counts choices of its router
  };

  void share_out(const SlotRegion& region);
  void note_use(BlockId block);
  void tell_manager(BlockId block);
  float score(const Use& use) const;
  bool idle(const Slot& slot) const;
  bool stays(const Slot& slot) const;
  bool better_victim(const Slot& a, const Slot& b) const;
  Slot* victim(uint32_t first, uint32_t count, bool of_cache);
  Slot* slot_for(BlockId block);
  Result<Slot*> slot_for_demand(BlockId block);
  void read_ahead();
  void submit(Slot& slot, BlockId block);
  void drop(Slot& slot);
  void note_over(Slot& slot);
  void set_up_training(const ExpertTraining& training);
  void repin(bool foretold);
  void read_pins();
  CachedBlock in_cache(BlockId block) const;

  StreamSlotsOptions options_;
  SlotLoader loader_;
  std::vector<Slot> slots_;  // those of group 0, of group 1, …, the shared ones
  std::vector<Group> groups_;
  std::vector<Use> uses_;  // by block
  ImportanceModel model_;  // of the manager
  std::optional<CacheManager> manager_;
  ExpertTraining training_;
  std::optional<TaskPins> pins_;
  std::vector<CachedBlock> own_;     // blocks that it may hold, where it is trained
  std::vector<uint32_t> used_now_;   // by the pass, each once, where it is trained
  std::vector<uint64_t> used_pass_;  // by block: the pass that it stands in used_now_ for
  std::deque<BlockId> to_pin_;       // pinned and not there, best first
  uint32_t tokens_ = 1;              // of the pass
  TaskStats task_stats_;
  std::chrono::steady_clock::time_point since_switch_;
  uint32_t first_shared_ = 0;  // slots from here on belong to all
  std::deque<BlockId> wanted_;
  std::vector<uint32_t> loading_;  // slots
  uint64_t clock_ = 0;
  Counts counts_;
};

}  // namespace ridge
