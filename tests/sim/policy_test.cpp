// Policies against closed forms of cyclic orders, and against Belady on orders with locality.
#include "sim/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/random.h"

namespace ridge::sim {
namespace {

ReplayStats replayed(std::string_view name, uint64_t capacity, const AccessTrace& trace) {
  auto policy = find_policy(name)->make({.capacity = capacity, .trace = &trace});
  return replay(*policy, trace);
}

AccessTrace cyclic(size_t blocks, size_t passes) { return cyclic_trace(std::vector<uint64_t>(blocks, 1), passes); }

TEST(Policy, RecencyAndFrequencyNeverHitOnACyclicOrder) {
  const AccessTrace trace = cyclic(84, 13);
  for (const char* name : {"none", "lru", "fifo", "clock", "sieve", "lfu", "slru", "arc"}) {
    for (uint64_t capacity = 1; capacity < 84; ++capacity) {
      EXPECT_EQ(replayed(name, capacity, trace).hits, 0u) << name << " " << capacity;
    }
  }
  EXPECT_EQ(trace.accesses.size(), 1092u);
}

TEST(Policy, EverythingHitsOnceAllBlocksFit) {
  const AccessTrace trace = cyclic(84, 13);
  for (const PolicyInfo& info : policies()) {
    if (info.make == make_none) continue;
    EXPECT_EQ(replayed(info.name, 84, trace).hits, 84u * 12) << info.name;
  }
}

TEST(Policy, BypassAndPinsHitTheShareThatFits) {
  const AccessTrace trace = cyclic(84, 13);
  for (const char* name : {"belady", "pin-leading", "pin-strided", "pin-worth"}) {
    for (uint64_t capacity = 1; capacity <= 84; ++capacity) {
      EXPECT_EQ(replayed(name, capacity, trace).hits, capacity * 12) << name << " " << capacity;
    }
  }
}

// The hit ratio h of random eviction solves h = ((C − 1)/C)^(N (1 − h)): a block survives the N (1 − h) evictions
// between its uses. For N = 84: 0.20 with 42 slots, 0.42 with 56, 0.69 with 70.
TEST(Policy, RandomEvictionHitsWhatItsFixedPointSays) {
  const AccessTrace trace = cyclic(84, 400);
  for (uint64_t capacity : {42u, 56u, 70u, 80u}) {
    double h = 0.5;
    for (int i = 0; i < 10'000; ++i) {
      const double c = static_cast<double>(capacity);
      h += 0.1 * (std::pow((c - 1) / c, 84 * (1 - h)) - h);
    }
    EXPECT_NEAR(replayed("random", capacity, trace).hit_ratio(), h, 0.02) << capacity;
  }
}

AccessTrace skewed(double exponent, size_t objects, size_t accesses, uint64_t seed) {
  std::vector<double> upto;
  double sum = 0;
  for (size_t i = 0; i < objects; ++i) upto.push_back(sum += std::pow(static_cast<double>(i + 1), -exponent));
  Random random(seed);
  AccessTrace trace;
  trace.begin_pass();
  for (size_t i = 0; i < accesses; ++i) {
    const double u = random.uniform() * sum;
    trace.add(static_cast<ObjectId>(std::lower_bound(upto.begin(), upto.end(), u) - upto.begin()), 1);
  }
  trace.link();
  return trace;
}

TEST(Policy, BeladyBeatsEveryPolicy) {
  for (double exponent : {0.0, 0.6, 1.0, 1.4}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const AccessTrace trace = skewed(exponent, 200, 5000, seed);
      for (uint64_t capacity : {1u, 5u, 20u, 60u, 150u}) {
        const uint64_t best = replayed("belady", capacity, trace).hits;
        for (const PolicyInfo& info : policies()) {
          EXPECT_LE(replayed(info.name, capacity, trace).hits, best)
              << info.name << " capacity " << capacity << " exponent " << exponent;
        }
      }
    }
  }
}

// With locality the policies differ, and the clever ones gain: an implementation that forgot its list would not.
TEST(Policy, SkewRewardsThoseWhoRemember) {
  const AccessTrace trace = skewed(1.0, 1000, 100'000, 5);
  const double fifo = replayed("fifo", 100, trace).hit_ratio(), lru = replayed("lru", 100, trace).hit_ratio();
  const double random = replayed("random", 100, trace).hit_ratio();
  EXPECT_NEAR(fifo, random, 0.01);  // equal for independent references (King 1971, Gelenbe 1973)
  EXPECT_GT(lru, fifo + 0.01);
  for (const char* name : {"clock", "sieve", "lfu", "slru", "arc", "s3-fifo"}) {
    EXPECT_GT(replayed(name, 100, trace).hit_ratio(), fifo + 0.01) << name;
  }
  // King's closed form of static pins of the likeliest: the sum of their chances, no less than any cache that learns.
  EXPECT_GT(replayed("pin-worth", 100, trace).hit_ratio(), replayed("lfu", 100, trace).hit_ratio());
}

// Whatever the sizes: never more in the cache than fits, hits only of what is there, and evictions said.
TEST(Policy, NeverHoldsMoreThanItsCapacity) {
  Random random(3);
  AccessTrace trace;
  trace.begin_pass();
  std::vector<uint64_t> sizes;
  for (int i = 0; i < 100; ++i) sizes.push_back(1 + random.below(50));
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t object = random.below(10) < 7 ? random.below(20) : random.below(100);
    trace.add(object, sizes[object]);
  }
  trace.link();
  for (const PolicyInfo& info : policies()) {
    for (uint64_t capacity : {10u, 60u, 400u}) {
      auto policy = info.make({.capacity = capacity, .trace = &trace});
      std::vector<uint8_t> here(100, 0);
      uint64_t used = 0;
      for (const Access& a : trace.accesses) {
        const Outcome o = policy->access(a);
        ASSERT_EQ(o.hit, here[a.object] == 1) << info.name;
        for (ObjectId left : o.left) {
          ASSERT_EQ(here[left], 1) << info.name << ": evicts what is not there";
          here[left] = 0;
          used -= sizes[left];
        }
        if (o.kept && !o.hit) {
          here[a.object] = 1;
          used += a.size;
        }
        ASSERT_LE(used, capacity) << info.name;
      }
    }
  }
}

TEST(Policy, StridedPinsAreEvenlySpaced) {
  const AccessTrace trace = cyclic(84, 2);
  for (uint64_t capacity : {21u, 28u, 42u}) {
    auto policy = find_policy("pin-strided")->make({.capacity = capacity, .trace = &trace});
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < 84; ++i) {
      if (!policy->access(trace.accesses[i]).kept) continue;
      if (last != SIZE_MAX) {
        EXPECT_EQ(i - last, 84 / capacity) << capacity;
      }
      last = i;
    }
  }
}

TEST(Policy, WorthBySizePrefersTheDearestPerByte) {
  AccessTrace trace = cyclic_trace(std::vector<uint64_t>{32, 24, 64, 32, 24, 64}, 3);
  const std::vector<double> worth = {0.423, 0.2, 0.51, 0.423, 0.2, 0.51};
  auto policy = find_policy("pin-worth")->make({.capacity = 64, .trace = &trace, .worth = worth});
  std::vector<ObjectId> kept;
  for (size_t i = 0; i < 6; ++i) {
    if (policy->access(trace.accesses[i]).kept) kept.push_back(i);
  }
  EXPECT_EQ(kept, (std::vector<ObjectId>{0, 3}));
}

TEST(Policy, NamesAreFoundAndListed) {
  EXPECT_EQ(find_policy("mru"), nullptr);
  EXPECT_NE(policy_names().find("s3-fifo, random, belady"), std::string::npos);
}

}  // namespace
}  // namespace ridge::sim
