// A small trace with every kind of event, as a producer emits it: two pinned and two streamed blocks, three passes.
//
// A pass of 10 ms from t: 0–2 block 0 (pinned), 2–3 wait for 1, 3–5 block 1, 5–6 attention, 6–8 block 2 (pinned),
// 8–10 block 3. Block 1 is read from −1 to 3 (4 MB), block 3 from 1 to 7 (4 MB): the device works on it from 3 on.
// Each streamed block has a slot, and is given up when it is read again.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "report/chrome_trace.h"
#include "tests/temp_folder.h"

namespace ridge::test {

inline TraceClock::time_point ms(double t) {
  return TraceClock::time_point{} + std::chrono::microseconds(static_cast<int64_t>(t * 1000));
}

struct TraceFixture {
  Program program;
  Placement placement;
  TraceInfo info;

  TraceFixture() {
    for (const char* name : {"blk.0.attn/0", "blk.0.ffn/0", "blk.1.\"<attn>\"/0", "output/0"}) {
      program.blocks.push_back({.name = name, .pieces = {}, .storage_bytes = 4'000'000, .memory_bytes = 4'100'000});
      program.visits.push_back({.block = static_cast<BlockId>(program.blocks.size() - 1), .cost = {}});
    }
    placement.pinned = {1, 0, 1, 0};
    info.producer = "test";
    info.title = "a <model> & \"more\"";
    info.facts = {{"threads", "2"}, {"nasty", "</main><script>alert(1)</script>"}};
    info.program = &program;
    info.placement = &placement;
    info.start = ms(0);
    info.budget_bytes = 64 << 20;
    info.account = {{"KV cache", 10 << 20}, {"pinned weights", 30 << 20}};
    info.bound_pass = "decode";
    info.bounds = {{"storage", 0.008}, {"memory", 0.002}};
    info.rates = "assumed";
    info.storage_roof_bytes_per_s = 1.2e9;
  }

  static TraceEvent on(Lane lane, BlockId block, double begin, double end, uint64_t bytes = 0) {
    return {.lane = lane, .block = block, .begin = ms(begin), .end = ms(end), .bytes = bytes};
  }

  void pass(Trace& trace, double t, const char* name, uint32_t tokens) const {
    trace.add(on(Lane::release, 1, t - 1, t - 1));
    trace.add(on(Lane::compute, 0, t, t + 2));
    trace.add(on(Lane::release, 3, t + 1, t + 1));
    trace.add(on(Lane::read, 1, t - 1, t + 3, 4'000'000));
    trace.add(on(Lane::wait, 1, t + 2, t + 3));
    trace.add(on(Lane::compute, 1, t + 3, t + 5));
    trace.add({.lane = Lane::compute, .block = kNoBlock, .begin = ms(t + 5), .end = ms(t + 6), .name = "attention"});
    trace.add(on(Lane::compute, 2, t + 6, t + 8));
    trace.add(on(Lane::read, 3, t + 1, t + 7, 4'000'000));
    trace.add(on(Lane::compute, 3, t + 8, t + 10));
    trace.add(
        {.lane = Lane::pass, .block = kNoBlock, .begin = ms(t), .end = ms(t + 10), .tokens = tokens, .name = name});
    trace.add({.lane = Lane::memory, .block = kNoBlock, .begin = ms(t + 10), .end = ms(t + 10), .bytes = 50 << 20});
    trace.make_room();
  }

  // Passes begin at 10, 21 and 32 ms.
  void fill(Trace& trace, int decodes = 2) const {
    trace.add(
        {.lane = Lane::init, .block = kNoBlock, .begin = ms(1), .end = ms(8), .bytes = 8'000'000, .name = "pins"});
    pass(trace, 10, "prefill", 5);
    for (int i = 0; i < decodes; ++i) pass(trace, 21 + 11 * i, "decode", 1);
  }

  // The file with these events.
  std::string write(const std::string& path, int decodes = 2) const {
    auto writer = ChromeTraceWriter::create(path);
    EXPECT_TRUE(writer.ok());
    Trace trace(ChromeTraceWriter::trace_options());
    trace.attach(writer.value().get());
    fill(trace, decodes);
    trace.flush();
    EXPECT_TRUE(writer.value()->finish(info).ok());
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
};

}  // namespace ridge::test
