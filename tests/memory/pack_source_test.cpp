// A model as GGUF and as the `.ridge` pack made from it: the same panels, the same gathered rows, pinned or streamed.
#include <gtest/gtest.h>

#include "format/gguf.h"
#include "format/ridge_pack.h"
#include "memory/streaming_source.h"
#include "tests/format/gguf_builder.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

using ridge::test::GgufBuilder;

// Matrices are cut into blocks of 48 rows; the embedding is gathered.
Program program_of(const Gguf& gguf, const std::vector<PackedTensor>& packed) {
  Program p;
  for (const GgufFile& f : gguf.files()) p.files.push_back(f.path);
  for (size_t i = 0; i < gguf.tensors().size(); ++i) {
    const GgufTensor& t = gguf.tensors()[i];
    p.tensors.push_back({.name = t.name,
                         .type = t.type,
                         .rows = static_cast<uint32_t>(t.rows()),
                         .cols = static_cast<uint32_t>(t.cols()),
                         .file = t.file,
                         .offset = t.offset,
                         .layout = !packed.empty() && packed[i].panels ? Layout::panels : Layout::rows});
    if (t.name == "token_embd.weight") continue;
    for (uint32_t row = 0; row < t.rows(); row += 48) {
      Block b{.name = t.name,
              .pieces = {{static_cast<TensorId>(i), row, std::min(row + 48, static_cast<uint32_t>(t.rows()))}}};
      b.storage_bytes = p.tensors.back().stored_bytes(row, b.pieces[0].row_end);
      p.visits.push_back({.block = static_cast<BlockId>(p.blocks.size()), .cost = {}});
      p.blocks.push_back(std::move(b));
    }
  }
  return p;
}

TEST(PackSource, GivesTheBytesOfItsSource) {
  test::TempFolder folder;
  GgufBuilder builder;
  auto random = [&](const std::string& name, Type type, uint64_t cols, uint64_t rows) {
    std::vector<uint8_t> data = test::random_bytes(rows * row_bytes(type, cols), static_cast<uint32_t>(rows));
    builder.tensor({.name = name, .shape = {cols, rows}, .type = type, .data = data});
  };
  random("token_embd.weight", Type::Q8_0, 64, 90);
  random("output.weight", Type::Q4_0, 64, 91);
  random("blk.0.attn_q.weight", Type::F16, 64, 250);
  random("blk.0.ffn_up.weight", Type::Q4_1, 96, 333);
  test::write_clean_file(folder / "m.gguf", builder.build());

  ThreadPool pool({.threads = 2});
  Gguf gguf = Gguf::open(folder / "m.gguf").value();
  ASSERT_TRUE(write_ridge_pack(gguf, folder / "m.ridge", {.pool = &pool}).ok());
  RidgePack pack = open_ridge_pack(folder / "m.ridge").value();
  Program from_gguf = program_of(gguf, {}), from_pack = program_of(pack.gguf, pack.tensors);
  ASSERT_EQ(from_pack.tensors[1].layout, Layout::panels);
  ASSERT_EQ(from_pack.tensors[0].layout, Layout::rows);

  std::vector<std::vector<uint8_t>> blocks;
  std::vector<float> rows;
  for (const Program* program : {&from_gguf, &from_pack}) {
    for (int pinned : {0, 1, 2}) {
      StreamingSourceOptions o;
      o.program = program;
      o.placement = test::placement_of(*program, [&](BlockId b) { return pinned == 1 || (pinned == 2 && b % 3 == 0); });
      o.pool = &pool;
      o.gathered = {0};
      auto source = StreamingSource::create(o);
      ASSERT_TRUE(source.ok()) << source.error().message;
      ASSERT_TRUE(source.value()->begin_pass({}).ok());
      std::vector<std::vector<uint8_t>> got;
      for (BlockId b = 0; b < program->blocks.size(); ++b) {
        Lease lease = source.value()->acquire(b).value();
        got.push_back(test::block_bytes(*program, b, lease));
      }
      std::vector<uint32_t> wanted = {3, 89, 3, 0};
      std::vector<float> floats(wanted.size() * 64);
      ASSERT_TRUE(source.value()->gather(0, wanted, Matrix<float>(floats.data(), wanted.size(), 64)).ok());
      if (blocks.empty()) {
        blocks = got;
        rows = floats;
      }
      EXPECT_TRUE(got == blocks) << pinned;
      EXPECT_EQ(std::memcmp(floats.data(), rows.data(), rows.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace ridge
