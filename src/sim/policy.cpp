#include "sim/policy.h"

#include <algorithm>
#include <array>
#include <string>

namespace ridge::sim {
namespace {

constexpr std::array kPolicies = {
    PolicyInfo{"none", "load, run, release", make_none},
    PolicyInfo{"lru", "evict what was used longest ago", make_lru},
    PolicyInfo{"fifo", "evict what came first", make_fifo},
    PolicyInfo{"clock", "FIFO with a second chance", make_clock},
    PolicyInfo{"sieve", "a hand that spares what was used", make_sieve},
    PolicyInfo{"lfu", "evict what was used least often", make_lfu},
    PolicyInfo{"slru", "two LRU lists: seen once, seen again", make_slru},
    PolicyInfo{"arc", "LRU and LFU lists in a balance that adapts", make_arc},
    PolicyInfo{"s3-fifo", "a small FIFO before a large one", make_s3_fifo},
    PolicyInfo{"random", "evict anything", make_random},
    PolicyInfo{"belady", "evict what is used last, or keep nothing new", make_belady, Foresight::none, false,
               PolicyKind::ideal},
    PolicyInfo{"pin-leading", "keep the first blocks of the pass", make_pin_leading, Foresight::order_known},
    PolicyInfo{"pin-strided", "keep blocks evenly spread over the pass", make_pin_strided, Foresight::order_known},
    PolicyInfo{"pin-worth", "keep what saves most per byte", make_pin_worth, Foresight::order_known},
    PolicyInfo{"miss-cost", "evict what costs least to miss, by its importance", make_miss_cost, Foresight::none, false,
               PolicyKind::learned},
    PolicyInfo{"importance", "pins, and what is likeliest to be used for each byte", make_importance, Foresight::none,
               false, PolicyKind::learned},
    PolicyInfo{"importance-ahead", "the same, and reads what other blocks foretell", make_importance_ahead,
               Foresight::none, false, PolicyKind::learned},
    PolicyInfo{"stream", "keep nothing, read ahead", make_none, Foresight::order_known, true},
    PolicyInfo{"pin-leading+stream", "leading pins, read ahead", make_pin_leading, Foresight::order_known, true},
    PolicyInfo{"pin-strided+stream", "strided pins, read ahead", make_pin_strided, Foresight::order_known, true},
    PolicyInfo{"pin-worth+stream", "pins by worth per byte, read ahead", make_pin_worth, Foresight::order_known, true},
};

}  // namespace

std::span<const PolicyInfo> policies() { return kPolicies; }

const PolicyInfo* find_policy(std::string_view name) {
  auto found = std::find_if(kPolicies.begin(), kPolicies.end(), [&](const PolicyInfo& p) { return p.name == name; });
  return found == kPolicies.end() ? nullptr : &*found;
}

std::string policy_names() {
  std::string names;
  for (const PolicyInfo& p : kPolicies) names += (names.empty() ? "" : ", ") + std::string(p.name);
  return names;
}

ReplayStats replay(Policy& policy, const AccessTrace& trace) {
  ReplayStats stats;
  for (const Access& a : trace.accesses) {
    const Outcome outcome = policy.access(a);
    stats.ahead_size += outcome.ahead_size;
    ++stats.accesses;
    stats.size += a.size;
    if (!outcome.hit) continue;
    ++stats.hits;
    stats.hit_size += a.size;
  }
  return stats;
}

}  // namespace ridge::sim
