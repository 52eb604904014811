// Visits of a small student on the shape of a larger model: bytes, order, and what is refused.
#include "claims/scaled_work.h"

#include <gtest/gtest.h>

#include "analyze/shape_model.h"
#include "base/units.h"

namespace ridge::test {
namespace {

// Two layers of two groups; token 0 touches group 0 of each, token 1 both of layer 0, token 2 nothing.
sim::RecordedTrace student_visits() {
  sim::RecordedTrace t{.model = "student"};
  for (const char* name : {"blk.0.ffn.0", "blk.0.ffn.1", "blk.1.ffn.0", "blk.1.ffn.1"})
    t.blocks.push_back({name, 64, 64});
  t.trace.begin_pass();
  t.trace.add(0, 64);
  t.trace.add(2, 64);
  t.trace.begin_pass();
  t.trace.add(0, 64);
  t.trace.add(1, 64);
  t.trace.begin_pass();
  t.trace.link();
  return t;
}

Program four_layers() {
  const ModelShape shape{.name = "four",
                         .layers = 4,
                         .width = 64,
                         .ffn = 128,
                         .vocabulary = 256,
                         .heads = 4,
                         .kv_heads = 4,
                         .head_dim = 16,
                         .type = Type::Q8_0,
                         .head_type = Type::Q8_0};
  auto model = make_shape_model(shape);
  EXPECT_TRUE(model.ok());
  return model.value()->program({.tokens = 1, .outputs = 1, .position = 7, .role = TokenRole::generated}, {});
}

uint64_t visited(const sim::NpuWork& work, size_t pass) {
  uint64_t sum = 0;
  for (size_t i = work.pass_begins[pass]; i < work.pass_end(pass); ++i)
    sum += work.objects[work.visits[i].object].bytes;
  return sum;
}

TEST(ScaledWork, TokensReadWhatTheStudentTouched) {
  const Program program = four_layers();
  auto scaled = scaled_work(program, student_visits(), {});
  ASSERT_TRUE(scaled.ok()) << scaled.error().message;
  const sim::NpuWork& work = scaled.value();
  const sim::NpuWork dense = sim::npu_work(program, {.passes = 2});
  ASSERT_EQ(work.pass_begins.size(), 3u);
  EXPECT_EQ(work.bytes(sim::NpuObjectKind::weights), dense.bytes(sim::NpuObjectKind::weights));
  // Up and down of a layer: 2 · 64 · 128 weights of 34 bytes for 32.
  const uint64_t layer = 2 * 64 * 128 / 32 * 34;
  EXPECT_EQ(visited(work, 0), visited(dense, 0) - 4 * layer / 2);  // half of every layer
  EXPECT_EQ(visited(work, 1), visited(dense, 0) - 2 * layer);      // the student's layer 0 stands for two
  EXPECT_EQ(visited(work, 2), visited(dense, 0) - 4 * layer);
}

TEST(ScaledWork, OperationsGoWithTheBytes) {
  const Program program = four_layers();
  sim::RecordedTrace all = student_visits();
  all.trace = {};
  for (int token = 0; token < 2; ++token) {
    all.trace.begin_pass();
    for (uint64_t block = 0; block < 4; ++block) all.trace.add(block, 64);
  }
  auto scaled = scaled_work(program, all, {});
  ASSERT_TRUE(scaled.ok());
  const sim::NpuWork dense = sim::npu_work(program, {.passes = 2});
  auto macs = [](const sim::NpuWork& work) {
    double sum = 0;
    for (size_t i = 0; i < work.pass_end(0); ++i) sum += work.visits[i].macs + work.visits[i].float_macs;
    return sum;
  };
  EXPECT_NEAR(macs(scaled.value()), macs(dense), 1e-6 * macs(dense));
  EXPECT_EQ(visited(scaled.value(), 0), visited(dense, 0));
}

TEST(ScaledWork, RefusesOtherVisits) {
  const Program program = four_layers();
  sim::RecordedTrace other = student_visits();
  other.blocks[1].name = "blk.0.attn";
  EXPECT_EQ(scaled_work(program, other, {}).error().code, ErrorCode::bad_input);
  other = student_visits();
  other.blocks.pop_back();
  EXPECT_EQ(scaled_work(program, other, {}).error().code, ErrorCode::bad_input);
  other = student_visits();
  other.trace.pass_begins.resize(1);
  EXPECT_EQ(scaled_work(program, other, {}).error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace ridge::test
