// A cache of blocks that keeps what is worth most per byte: pins that were chosen beforehand, and a dynamic region
// where a block makes room only for one that is worth more (admission), each judged by its expected uses times what a
// reload costs.
//
// Reading ahead takes what other blocks foretell before its turn comes. A governor counts how many foretold blocks were
// used in fact and stops reading while that share is too low; it goes on counting, so that reading resumes when it pays
// again. Not for: bytes and their reads (expert_cache.h), or choosing pins and learning (sim/importance_training.h).
//
//   CacheManager cache(model, {.capacity = 64 << 20});
//   cache.begin_pass();
//   CacheAccess a = cache.access({.block = 7, .bytes = 4096, .reload = 4096});
//   a.hit, a.kept, a.change.left                            // what was there, stays, and made room
//
// Deterministic: among equals the lower number leaves, and a newcomer that is worth no more is not kept. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/importance.h"

namespace ridge {

struct CachedBlock {
  uint32_t block = 0;
  uint64_t bytes = 0;
  double reload = 0;  // what reading it costs, in any unit that is the same for all: bytes, seconds
};

struct ReadAheadOptions {
  double least_chance = 2;       // that a foretold turn is used, for it to be read; above 1: nothing is read ahead
  double least_precision = 0.5;  // of what was foretold lately, used in fact; below it the governor stops reading
};

struct CacheManagerOptions {
  uint64_t capacity = 0;             // bytes, pins included
  std::vector<uint8_t> pinned = {};  // by block; kept from their first use on, and their room is kept for them
  uint64_t pinned_bytes = 0;         // of these
  ReadAheadOptions read_ahead = {};
};

// A block in both lists was read and had to make room at once.
struct CacheChange {
  std::vector<uint32_t> left = {};   // made room for what came
  std::vector<uint32_t> ahead = {};  // read now, before their turn
};
struct CacheAccess {
  bool hit = false;
  bool kept = false;  // is in the cache afterwards
  CacheChange change = {};
};

class CacheManager {
 public:
  CacheManager(const ImportanceModel& model, CacheManagerOptions options);

  CacheChange begin_pass();
  CacheAccess access(const CachedBlock& asked);

  // Other pins from now on, by block. What was pinned stays as any other block does, as long as it is worth it. Those
  // that had to make room.
  std::vector<uint32_t> repin(std::vector<uint8_t> pinned, uint64_t pinned_bytes);
  bool holds(uint32_t block) const {
    return block < entries_.size() && (entries_[block].at >= 0 || entries_[block].pinned_here);
  }
  // A pinned block was read before its first use.
  void pin_came(const CachedBlock& block);

  // Foretold turns that were read ahead (or, while the governor stops, would have been), and those of them that were
  // used.
  struct Foretold {
    uint64_t read = 0, held_back = 0, used = 0, judged = 0;
  };
  const Foretold& foretold() const { return foretold_; }
  double precision() const { return precision_; }  // lately

  // What so many blocks take on the heap at most, without a table of what foretells what.
  static uint64_t heap_bytes(size_t blocks);

 private:
  struct Entry {
    uint64_t bytes = 0;
    double reload = 0;
    uint64_t foretold_for = 0;  // the pass of the turn that is waited for, 0: none
    int32_t at = -1;            // in cached_, or -1
    bool pinned_here = false;
  };
  Entry& entry(uint32_t block);
  double density(uint32_t block) const;
  void refresh();
  bool make_room(uint64_t bytes, double worth, std::vector<uint32_t>& left);
  void keep(uint32_t block, double worth);
  void drop(size_t at);
  void read_ahead(std::span<const ForetellingLink> links, CacheChange& out);
  void settle(uint32_t block, CacheAccess& out) const;
  void judge(Entry& e, bool used);

  const ImportanceModel& model_;
  CacheManagerOptions options_;
  Importance importance_;
  std::vector<Entry> entries_;      // by block
  std::vector<uint32_t> cached_;    // the dynamic region
  std::vector<double> worth_;       // density of each of cached_, as of the last refresh or use
  std::vector<uint32_t> used_now_;  // in this pass, where anything is foretold
  std::vector<uint32_t> waiting_;   // foretold, turn not over
  uint64_t used_ = 0;               // bytes of the dynamic region
  double refreshed_ = -1;
  double precision_ = 1;
  Foretold foretold_;
};

}  // namespace ridge
