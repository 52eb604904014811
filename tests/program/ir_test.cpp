// The IR comes back as it was written, and nothing else is taken for one.
#include "program/ir.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge {
namespace {

Ir machine_ir() {
  Ir ir{.model = "a \"model\"\n\\", .fingerprint = 0x00fedcba98765432, .files = {{"model.ridge", 1 << 20}}};
  ir.positions = 512;
  ir.machine = "An NPU";
  ir.tiers = {{"shared_sram", "SRAM", 65536, 64}, {"dram", "DRAM", 1 << 30, 128}};
  ir.blocks.push_back({.name = "blk.0.attn/0",
                       .op = Operator::qkv,
                       .order = {0},
                       .matrices = {{Type::Q8_0, 64, 64}, {Type::F32, 32, 64}},
                       .bytes = 12544,
                       .memory_bytes = 12800,
                       .align = 4096,
                       .moved_bytes = 12672,
                       .at = {{0, 8192, 4352}, {0, 16384, 8192}},
                       .home = IrHome::dram,
                       .kept = {{"shared_sram", 0x1000, 4096, 0}, {"shared_sram", 0x4000, 64, 8192}}});
  ir.blocks.push_back({.name = "blk.0.ffn.3/0",
                       .op = Operator::ffn,
                       .order = {1, 5},
                       .matrices = {{Type::F16, 16, 64}},
                       .bytes = 2048,
                       .memory_bytes = 2048,
                       .align = 64,
                       .moved_bytes = 2048,
                       .touch = 31'250,
                       .at = {{0, 32832, 2048}},
                       .home = IrHome::dram,
                       .kept = {{"shared_sram", 0x2000, 2048, 0}}});
  ir.kv.push_back({.name = "kv/0", .bytes = 4096, .home = IrHome::dram, .kept = {}});
  ir.row_bytes = 300;
  return ir;
}

Ir budget_ir() {
  Ir ir = machine_ir();
  ir.machine.reset();
  ir.tiers.clear();
  ir.budget = 300 << 20;
  ir.slots = 2;
  ir.slot_bytes = 1 << 20;
  ir.cache_slots = 5;
  ir.blocks[0].home = IrHome::slot;
  ir.blocks[1].home = IrHome::cache;
  ir.kv[0].home = IrHome::pin;
  for (IrBlock& b : ir.blocks) b.kept.clear();
  return ir;
}

TEST(IrText, ComesBackByteForByte) {
  for (const Ir& ir : {machine_ir(), budget_ir()}) {
    const std::string text = ir_text(ir);
    auto again = read_ir(text, "model.ir");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
    EXPECT_EQ(ir_text(again.value()), text);
    EXPECT_EQ(again.value().model, ir.model);
    EXPECT_EQ(again.value().blocks[0].at, ir.blocks[0].at);
    EXPECT_EQ(again.value().blocks[1].touch, 31'250u);
    EXPECT_EQ(again.value().blocks[1].line, ir.machine ? 8u : 6u);
  }
}

// Replaces a part of the text of machine_ir() and expects a refusal that names the line.
void refuse(const std::string& old, const std::string& with, const char* word) {
  std::string text = ir_text(machine_ir());
  const size_t at = text.find(old);
  ASSERT_NE(at, std::string::npos) << old;
  text.replace(at, old.size(), with);
  auto read = read_ir(text, "model.ir");
  ASSERT_FALSE(read.ok()) << text;
  EXPECT_EQ(read.error().code, ErrorCode::bad_input);
  EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
}

TEST(IrText, ErrorsNameTheLine) {
  refuse("ridge-ir 1", "ridge-ir 2", "line 1: column 10");
  refuse("fingerprint=00", "fingerprint=0", "line 2");
  refuse("positions=", "position=", "line 2: 'positions=' is missing");
  refuse("file name", "folder name", "line 3: no line 'machine'");
  refuse("bytes=65536 burst", "bytes=18446744073709551616 burst", "line 5: 'bytes' is no number");
  refuse("op=qkv", "op=magic", "line 7: 'op'");
  refuse("type=Q8_0+F32", "type=Q8_0", "line 7: as many types");
  refuse("type=Q8_0", "type=Q9_0", "line 7: 'type'");
  refuse("shape=64x64", "shape=64", "line 7: 'shape'");
  refuse("align=4096", "align=4095", "line 7: 'align'");
  refuse("align=4096", "align=16384", "line 7: 'at' does not begin at 'align'");
  refuse("moved=12672", "moved=12543", "line 7: 'moved'");
  refuse("touch=1.000000", "touch=1.000001", "line 7: 'touch'");
  refuse("touch=0.031250", "touch=0.03125", "line 8: 'touch'");
  refuse("0:8192+4352", "0:8192+4351", "line 7: 'at' has not");
  refuse("0:8192+4352", "1:8192+4352", "line 7: 'at' is outside");
  refuse("0:8192+4352", "0:18446744073709551615+4352", "line 7: 'at' is outside");
  refuse("0x4000+64@8192", "0x4000+64@4095", "line 7: 'place' holds bytes");
  refuse("0x4000+64@8192", "0xffff+64@8192", "line 7: 'place' is outside");
  refuse("shared_sram:0x4000", "local_sram:0x4000", "line 7: 'place' names a tier");
  refuse("@8192,dram", "@8192,pin", "line 7: 'place' is none");
  refuse("+2048@0\n", "+2048@0,dram\n", "line 8: column");
  refuse("bytes=4096 place", "bytes=04096 place", "line 9: column");
  refuse("blocks=2", "blocks=3", "line 10: column");
  refuse("rows=300\n", "rows=300\n\n", "line 11: text follows");
  refuse("order=0 ", "order=0  ", "line 7");
}

TEST(IrText, EveryTruncationIsRefused) {
  const std::string text = ir_text(machine_ir());
  for (size_t n = 0; n < text.size(); ++n) {
    auto read = read_ir(std::string_view(text).substr(0, n), "model.ir");
    ASSERT_FALSE(read.ok()) << n;
    EXPECT_NE(read.error().message.find("line "), std::string::npos);
  }
}

TEST(IrText, WhateverIsReadIsWhatWouldBeWritten) {
  std::mt19937 random(5);
  for (const Ir& ir : {machine_ir(), budget_ir()}) {
    const std::string whole = ir_text(ir);
    for (int i = 0; i < 4000; ++i) {
      std::string text = whole;
      for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
        text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
      auto read = read_ir(text, "model.ir");
      if (read.ok()) {
        EXPECT_EQ(ir_text(read.value()), text);
      }
    }
  }
}

}  // namespace
}  // namespace ridge
