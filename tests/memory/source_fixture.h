// A weight source over the small model of fixture.h, and what its bytes must be.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "memory/streaming_source.h"
#include "tests/memory/fixture.h"

namespace ridge::test {

class StreamingSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rows_ = ModelBuilder(Layout::rows).build(folder_ / "model", 5);
    panels_ = ModelBuilder(Layout::panels).build(folder_ / "model.ridge", 5);
    expected_.resize(blocks());
    for (BlockId b = 0; b < blocks(); ++b) {
      for (const Piece& piece : rows_.program.blocks[b].pieces) {
        const StoredTensor& t = rows_.program.tensors[piece.tensor];
        PieceView view{Layout::rows, rows_.bytes.data() + t.stored_offset(piece.row_begin)};
        std::vector<uint8_t> panels = panels_of(rows_.program, piece, view);
        expected_[b].insert(expected_[b].end(), panels.begin(), panels.end());
      }
    }
  }

  BlockId blocks() const { return static_cast<BlockId>(rows_.program.blocks.size()); }
  StreamingSourceOptions options(const Model& model, const std::function<bool(BlockId)>& pinned) {
    StreamingSourceOptions o;
    o.program = &model.program;
    o.placement = placement_of(model.program, pinned);
    o.pool = &pool_;
    o.gathered = {model.embedding, model.head};
    o.huge_pages = false;
    return o;
  }
  std::unique_ptr<StreamingSource> make(const StreamingSourceOptions& o) {
    auto source = StreamingSource::create(o);
    EXPECT_TRUE(source.ok()) << source.error().message;
    return std::move(source).value();
  }
  // One pass in the program's order; every block's bytes are compared.
  void pass(WeightSource& source) {
    ASSERT_TRUE(source.begin_pass({}).ok());
    for (BlockId b = 0; b < blocks(); ++b) check(source, b);
  }
  void check(WeightSource& source, BlockId b) {
    auto lease = source.acquire(b);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    EXPECT_TRUE(block_bytes(source.program(), b, lease.value()) == expected_[b]) << "block " << b;
  }
  // Rows of the embedding and of the tied head, with repetitions and neighbours, against the file's formula.
  void check_gather(WeightSource& source) {
    for (TensorId id : {rows_.embedding, rows_.head}) {
      const StoredTensor& t = rows_.program.tensors[id];
      std::vector<uint32_t> wanted = {7, 202, 0, 7, 8, 9, 79, 80, 81, 160, 159, 7, 202, 100};
      for (uint32_t i = 0; i < 203; i += 3) wanted.push_back((i * 37) % 203);
      std::vector<float> got(wanted.size() * t.cols), want(t.cols);
      auto result = source.gather(id, wanted, Matrix<float>(got.data(), wanted.size(), t.cols));
      ASSERT_TRUE(result.ok()) << result.error().message;
      for (size_t i = 0; i < wanted.size(); ++i) {
        const uint8_t* row = rows_.bytes.data() + t.offset + wanted[i] * row_bytes(t.type, t.cols);
        type_info(t.type).dequantize(row, want.data(), t.cols);
        ASSERT_EQ(std::memcmp(want.data(), got.data() + i * t.cols, t.cols * sizeof(float)), 0)
            << t.name << " row " << wanted[i];
      }
    }
  }

  TempFolder folder_;
  Model rows_, panels_;
  std::vector<std::vector<uint8_t>> expected_;
  ThreadPool pool_{{.threads = 2}};
};

inline const std::map<std::string, std::function<bool(BlockId)>> kPins = {
    {"all", [](BlockId) { return true; }},
    {"none", [](BlockId) { return false; }},
    {"every second", [](BlockId b) { return b % 2 == 0; }},
    {"all but one", [](BlockId b) { return b != 4; }},
    {"all but two", [](BlockId b) { return b != 4 && b != 9; }},
    {"a part of the head", [](BlockId b) { return b == 11; }},
};

}  // namespace ridge::test
