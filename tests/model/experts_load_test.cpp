// What a file of experts may get wrong, and what its program looks like.
#include <gtest/gtest.h>

#include <cmath>

#include "model/model.h"
#include "tests/format/gguf_builder.h"

namespace ridge {
namespace {

using test::GgufBuilder;

struct Defect {
  uint32_t experts = 6, used = 2, groups = 1, groups_used = 1, gating = 0;
  uint64_t stack = 6;  // matrices in the tensors
  bool down = true;
};

Result<std::unique_ptr<Model>> open(const Defect& d) {
  GgufBuilder g;
  g.string("general.architecture", "llama").number<uint32_t>("llama.block_count", 1);
  g.number<uint32_t>("llama.embedding_length", 32).number<uint32_t>("llama.context_length", 64);
  g.number<uint32_t>("llama.feed_forward_length", 24).number<uint32_t>("llama.attention.head_count", 2);
  g.number<uint32_t>("llama.expert_count", d.experts).number<uint32_t>("llama.expert_used_count", d.used);
  g.number<uint32_t>("llama.expert_group_count", d.groups);
  g.number<uint32_t>("llama.expert_group_used_count", d.groups_used);
  g.number<uint32_t>("llama.expert_gating_func", d.gating);
  g.tensor({.name = "token_embd.weight", .shape = {32, 48}}).tensor({.name = "output_norm.weight", .shape = {32}});
  for (const char* name : {"attn_norm", "ffn_norm"}) {
    g.tensor({.name = std::string("blk.0.") + name + ".weight", .shape = {32}});
  }
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    g.tensor({.name = std::string("blk.0.") + name + ".weight", .shape = {32, 32}});
  }
  g.tensor({.name = "blk.0.ffn_gate_inp.weight", .shape = {32, d.experts}});
  g.tensor({.name = "blk.0.ffn_gate_exps.weight", .shape = {32, 24, d.stack}});
  g.tensor({.name = "blk.0.ffn_up_exps.weight", .shape = {32, 24, d.stack}});
  if (d.down) g.tensor({.name = "blk.0.ffn_down_exps.weight", .shape = {24, 32, d.stack}});
  auto file = parse_gguf(g.build(), "test.gguf");
  EXPECT_TRUE(file.ok()) << file.error().message;
  return Model::from_gguf(std::move(file).value());
}

TEST(ExpertsLoad, EachExpertIsABlockOfItsOwn) {
  auto model = open({});
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (uint32_t tokens : {1u, 5u}) {
    Program p = model.value()->program({.tokens = tokens}, {});
    ASSERT_EQ(p.expert_groups.size(), 1u);
    EXPECT_EQ(p.expert_groups[0].experts, 6u);
    uint32_t experts = 0;
    double flops = 0;
    for (const Visit& v : p.visits) {
      const Block& b = p.blocks[v.block];
      if (!b.on_demand) {
        EXPECT_EQ(v.chance, 1);
        continue;
      }
      EXPECT_EQ(b.name, "blk.0.ffn." + std::to_string(experts) + "/0");
      EXPECT_EQ(b.pieces.size(), 3u);
      EXPECT_EQ(b.storage_bytes, 3u * 24 * 32 * 4);
      EXPECT_NEAR(v.chance, 1 - std::pow(1 - 2.0 / 6, tokens), 1e-12);
      EXPECT_NEAR(static_cast<double>(v.cost.storage_bytes), v.chance * static_cast<double>(b.storage_bytes), 2);
      flops += static_cast<double>(v.cost.flops);
      ++experts;
    }
    EXPECT_EQ(experts, 6u);
    // Two experts for each token, however many of them the pass visits.
    EXPECT_NEAR(flops, tokens * 2.0 * (3 * 24 * 32) * 2, 12);
    // Three matrices of expert 4: its slices lie where the file's tensor has them.
    const Block& block = p.blocks[p.steps[p.expert_groups[0].first_step + 8].front().block];
    const GgufTensor* gate = model.value()->file().find("blk.0.ffn_gate_exps.weight");
    EXPECT_EQ(p.tensors[block.pieces[0].tensor].offset, gate->offset + 4 * 24 * 32 * 4);
  }
}

TEST(ExpertsLoad, LargeExpertsAreCutAndStayTheirOwn) {
  auto model = open({});
  ASSERT_TRUE(model.ok());
  Program p = model.value()->program({}, {.slot_bytes = 4096});
  uint32_t blocks = 0;
  for (const Block& b : p.blocks) {
    if (!b.on_demand) continue;
    EXPECT_LE(b.storage_bytes, 4096u);
    ++blocks;
  }
  EXPECT_GT(blocks, 6u);
}

TEST(ExpertsLoad, WhatDoesNotGoTogetherIsNamed) {
  auto message = [](const Defect& d) {
    auto model = open(d);
    EXPECT_FALSE(model.ok());
    return model.ok() ? std::string() : model.error().message;
  };
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(message({.used = 7}), "expert_used_count"));
  EXPECT_TRUE(has(message({.groups = 4}), "expert_group_count"));
  EXPECT_TRUE(has(message({.used = 3, .groups = 3, .groups_used = 1}), "expert_group_used_count"));
  EXPECT_TRUE(has(message({.gating = 9}), "expert_gating_func"));
  EXPECT_TRUE(has(message({.stack = 5}), "ffn_gate_exps.weight"));
  EXPECT_TRUE(has(message({.down = false}), "ffn_down_exps.weight"));
  EXPECT_TRUE(has(message({.experts = 5000, .stack = 5000}), "expert_count"));
}

}  // namespace
}  // namespace ridge
