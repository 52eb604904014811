#include "distill/gate_record.h"

#include <gtest/gtest.h>

#include "distill/importance_map.h"
#include "sim/recorded_trace.h"
#include "tests/distill/text_file.h"

namespace ridge::distill {
namespace {

StudentShape small_shape() {
  return {.vocabulary = 16,
          .layers = 1,
          .dim = 8,
          .heads = 2,
          .kv_heads = 2,
          .ffn = 8,
          .context = 8,
          .ffn_kind = FfnKind::reglu};
}

// Neurons 1 and 6 are on at every token, neuron 3 at every second one.
GateRecord sparse_record(uint64_t tokens) {
  GateRecord record(1, 8);
  for (uint64_t t = 0; t < tokens; ++t) {
    std::vector<uint8_t> on(8);
    on[1] = on[6] = 1;
    on[3] = t % 2 == 0;
    record.add(0, on);
  }
  return record;
}

TEST(GateRecord, CountsWhatIsTouched) {
  const GateRecord record = sparse_record(10);
  const StudentShape shape = small_shape();
  const NeuronOrder order = sort_neurons(record, shape);
  EXPECT_EQ(order.front(), (std::vector<uint32_t>{1, 6, 3, 0, 2, 4, 5, 7}));
  const TouchStats s = touch_stats(record, shape, order, 2);
  EXPECT_DOUBLE_EQ(s.sparsity, 1 - 25.0 / 80);
  EXPECT_DOUBLE_EQ(s.dead, 5.0 / 8);
  EXPECT_DOUBLE_EQ(s.busiest, 20.0 / 25);          // 26 % of 8 are two
  EXPECT_DOUBLE_EQ(s.stays_on, 18.0 / (18 + 5));   // neuron 3 never stays
  EXPECT_DOUBLE_EQ(s.touched_natural, 25.0 / 40);  // blocks {0,1}, {6,7}, half the time {2,3}
  EXPECT_DOUBLE_EQ(s.touched_sorted, 15.0 / 40);   // {1,6}, half the time {3,0}
}

TEST(GateRecord, RunsOfASharedLayerCountTogether) {
  StudentShape shape = small_shape();
  shape.shared = true;
  GateRecord record(2, 8);
  std::vector<uint8_t> first(8), second(8);
  first[5] = second[5] = second[2] = 1;
  record.add(0, first);
  record.add(1, second);
  const NeuronOrder order = sort_neurons(record, shape);
  ASSERT_EQ(order.size(), 1u);
  EXPECT_EQ(order[0][0], 5u);
  EXPECT_EQ(order[0][1], 2u);
}

TEST(GateRecord, WritesVisitsThatTheSimulatorReads) {
  test::TempFolder folder;
  const StudentShape shape = small_shape();
  const GateRecord record = sparse_record(4);
  const std::string path = folder.path() + "/visits.json";
  ASSERT_TRUE(write_visits(record, shape, sort_neurons(record, shape), 2, "student", path).ok());
  const sim::RecordedTrace trace = sim::read_recorded(path).value();
  ASSERT_EQ(trace.blocks.size(), 4u);
  EXPECT_EQ(trace.blocks[0].name, "blk.0.ffn.0");
  EXPECT_EQ(trace.blocks[0].memory_bytes, 2u * 2 * 8 * 4);  // two neurons, up row and down column, F32
  EXPECT_EQ(trace.trace.pass_begins.size(), 4u);
  std::vector<uint64_t> objects;
  for (const sim::Access& a : trace.trace.accesses) objects.push_back(a.object);
  EXPECT_EQ(objects, (std::vector<uint64_t>{0, 1, 0, 0, 1, 0}));
}

TEST(GateRecord, CutsWhatCachingCannot) {
  // The experiment's student: 0.279 million parameters; a third of the blocks touched saves 31 % of the bytes.
  StudentShape shape{
      .vocabulary = 256, .layers = 4, .dim = 64, .heads = 4, .kv_heads = 4, .ffn = 256, .ffn_kind = FfnKind::reglu};
  EXPECT_NEAR(dram_cut(shape, 0.337, 0), 0.312, 0.001);
  EXPECT_NEAR(dram_cut(shape, 0.337, 0.1), 0.412, 0.001);
  EXPECT_DOUBLE_EQ(dram_cut(shape, 1, 0), 0);
  shape.ffn_kind = FfnKind::swiglu;
  EXPECT_DOUBLE_EQ(dram_cut(shape, 0.337, 0), 0);  // nothing of it can be skipped
}

TEST(ImportanceMap, ScalesToAMeanOfOne) {
  test::TempFolder folder;
  StudentShape shape = small_shape();
  shape.layers = 2;
  const std::string path =
      test::text_file(folder, "map.json", R"({"format": "ridge-layer-weights", "version": 1, "layers": [1, 3],
    "neurons": [{"layer": 1, "first": 2, "count": 3, "weight": 8}]})");
  const auto read = read_importance_map(path, shape);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().layers, (std::vector<double>{0.5, 1.5}));
  EXPECT_TRUE(read.value().neurons[0].empty());
  EXPECT_EQ(read.value().neurons[1], (std::vector<float>{1.5, 1.5, 4, 4, 4, 1.5, 1.5, 1.5}));
}

TEST(ImportanceMap, RefusesOthers) {
  test::TempFolder folder;
  const StudentShape shape = small_shape();
  const std::string head = R"({"format": "ridge-layer-weights", "version": 1, )";
  const std::string cases[] = {
      "",
      "[]",
      R"({"layers": [1]})",
      R"({"format": "ridge-layer-weights", "version": 2, "layers": [1]})",
      head + R"("layers": [1, 1]})",
      head + R"("layers": [-1]})",
      head + R"("layers": [0]})",
      head + R"("layers": ["1"]})",
      head + R"("layers": [1], "neurons": {}})",
      head + R"("layers": [1], "neurons": [{"layer": 0, "first": 4, "count": 5, "weight": 1}]})",
      head + R"("layers": [1], "neurons": [{"layer": 1, "first": 0, "count": 1, "weight": 1}]})",
      head + R"("layers": [1], "neurons": [{"layer": 0, "first": 0, "count": 1}]})"};
  for (const std::string& text : cases) {
    const auto read = read_importance_map(test::text_file(folder, "map.json", text), shape);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
  }
}

}  // namespace
}  // namespace ridge::distill
