// Replacement policies: what a cache of blocks keeps, judged by the order of accesses alone.
//
// A policy sees each access and says whether it hit, whether the block was kept, and which blocks left. Time is another
// matter (schedule.h turns these answers into loads, runs and releases). One file for each family, one row in
// policies().
//
//   auto lru = find_policy("lru")->make({.capacity = 42, .trace = &trace});
//   for (const Access& a : trace.accesses) hits += lru->access(a).hit;
//   replay(*lru, trace).hit_ratio();
//
// Sizes and capacity have one unit (bytes, or objects where every size is 1). One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/access_trace.h"

namespace ridge::sim {

struct Outcome {
  bool hit = false;
  bool kept = false;                 // in the cache after the access; false: used and dropped (bypass)
  std::vector<ObjectId> left = {};   // blocks that made room for it
  std::vector<ObjectId> ahead = {};  // read now, before they are asked for
  uint64_t ahead_size = 0;           // of these
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Outcome access(const Access& access) = 0;
};

struct PolicySetup {
  uint64_t capacity = 0;               // in the unit of the sizes
  const AccessTrace* trace = nullptr;  // what will be replayed: pins are chosen from it unless there is another
  const AccessTrace* train = nullptr;  // another one, of the same blocks: pins and parameters are chosen from it
  uint64_t seed = 1;                   // for random choices
  std::span<const double> worth = {};  // seconds that a hit saves, by object; empty: its size
};

// How blocks that are not kept are read where a schedule may read ahead: in a fixed order of misses that is known.
enum class Foresight : uint8_t { none, order_known };

// What a policy is compared as: one that others publish, one that learns from another trace, or one that knows the
// future.
enum class PolicyKind : uint8_t { classic, learned, ideal };

struct PolicyInfo {
  std::string_view name, about;
  std::unique_ptr<Policy> (*make)(const PolicySetup& setup);
  Foresight foresight = Foresight::none;
  bool reads_ahead = false;  // through stream slots, while something else is computed
  PolicyKind kind = PolicyKind::classic;
};

// All of them, in the order in which tables show them.
std::span<const PolicyInfo> policies();
const PolicyInfo* find_policy(std::string_view name);  // nullptr if there is none
std::string policy_names();                            // "none, lru, …" for messages

struct ReplayStats {
  uint64_t accesses = 0, hits = 0;
  uint64_t size = 0, hit_size = 0;  // sums of the sizes
  uint64_t ahead_size = 0;          // read before it was asked for; hits that are due to it save no reading
  double hit_ratio() const { return accesses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(accesses); }
  // What hits spared of reading: those of blocks that were read ahead spare nothing.
  double saved_size() const { return static_cast<double>(hit_size) - static_cast<double>(ahead_size); }
  double hit_size_ratio() const { return size == 0 ? 0 : static_cast<double>(hit_size) / static_cast<double>(size); }
};
ReplayStats replay(Policy& policy, const AccessTrace& trace);

// The rows, one maker for each (policy_*.cpp).
using MakePolicy = std::unique_ptr<Policy>(const PolicySetup& setup);
MakePolicy make_none, make_fifo, make_lru, make_clock, make_sieve, make_lfu, make_slru, make_arc, make_s3_fifo,
    make_random, make_belady, make_pin_leading, make_pin_strided, make_pin_worth, make_importance,
    make_importance_ahead, make_miss_cost;

}  // namespace ridge::sim
