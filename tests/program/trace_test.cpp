#include "program/trace.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace ridge {
namespace {

TraceEvent event(uint64_t number) {
  return {.lane = Lane::compute, .block = 1, .begin = {}, .end = {}, .bytes = number};
}

class Keeper : public TraceSink {
 public:
  void take(std::span<const TraceEvent> events) override {
    for (const TraceEvent& e : events) numbers.push_back(e.bytes);
    largest = std::max(largest, events.size());
  }
  std::vector<uint64_t> numbers;
  size_t largest = 0;
};

TEST(Trace, KeepsUpToItsCapacityAndCountsTheRest) {
  Trace trace({.capacity = 3});
  for (uint64_t i = 0; i < 5; ++i) trace.add(event(i));
  EXPECT_EQ(trace.dropped(), 2u);
  EXPECT_EQ(trace.memory_bytes(), 3 * sizeof(TraceEvent));
  const std::vector<TraceEvent> kept = trace.take();
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2].bytes, 2u);
  trace.add(event(9));
  EXPECT_EQ(trace.take().size(), 1u);
}

TEST(Trace, ASinkGetsEveryEventInOrderAndNeverMoreThanTheCapacity) {
  Keeper keeper;
  Trace trace({.capacity = 4, .sink_bytes = 100});
  EXPECT_EQ(trace.memory_bytes(), 4 * sizeof(TraceEvent) + 100);
  trace.add(event(0));  // before anybody listens
  trace.attach(&keeper);
  for (uint64_t i = 1; i < 10; ++i) trace.add(event(i));
  trace.flush();
  EXPECT_EQ(trace.dropped(), 0u);
  EXPECT_LE(keeper.largest, 4u);
  ASSERT_EQ(keeper.numbers.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(keeper.numbers[i], i);
}

TEST(Trace, MakesRoomOnlyWhenHalfFull) {
  Keeper keeper;
  Trace trace({.capacity = 4});
  trace.attach(&keeper);
  trace.add(event(0));
  trace.make_room();
  EXPECT_TRUE(keeper.numbers.empty());
  trace.add(event(1));
  trace.make_room();
  EXPECT_EQ(keeper.numbers.size(), 2u);
}

TEST(Trace, ThreadsMayAddAtOnce) {
  Keeper keeper;
  Trace trace({.capacity = 16});
  trace.attach(&keeper);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&trace, t] {
      for (uint64_t i = 0; i < 1000; ++i) trace.add(event(t));
    });
  }
  for (std::thread& t : threads) t.join();
  trace.flush();
  EXPECT_EQ(keeper.numbers.size(), 4000u);
}

}  // namespace
}  // namespace ridge
