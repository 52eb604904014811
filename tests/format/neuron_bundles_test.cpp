// Packs whose neurons lie in bundles: every byte in its place, and nothing damaged is taken for whole.
#include "format/neuron_bundles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "format/ridge_pack.h"
#include "tensor/panel.h"
#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::Bytes;

TEST(NeuronBundles, GranulesJoinWithoutPadding) {
  for (const TypeInfo& info : all_types()) {
    const uint32_t n = bundle_granule(info.type);
    EXPECT_EQ(n % kPanelRows, 0u) << info.name;
    EXPECT_EQ(n % info.block, 0u) << info.name;
    for (const uint32_t times : {2u, 3u, 7u}) {
      EXPECT_EQ(panel_bytes(info.type, size_t{n} * times), times * panel_bytes(info.type, n)) << info.name;
    }
  }
  EXPECT_EQ(bundle_granule(Type::F32), 16u);
  EXPECT_EQ(bundle_granule(Type::Q8_0), 64u) << "a unit of a panel holds two blocks";
  EXPECT_EQ(bundle_granule(Type::Q4_K), 256u);
}

class BundlePack : public ::testing::Test {
 protected:
  void SetUp() override {
    test::GgufBuilder gguf;
    gguf.string("general.architecture", "reglu-llama");
    for (int layer = 0; layer < 2; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".ffn_";
      gguf.tensor(
          {.name = block + "down.weight", .shape = {192, 96}, .type = Type::Q8_0, .data = random(96 * 192 / 32 * 34)});
      gguf.tensor({.name = block + "gate.weight", .shape = {96, 192}, .type = Type::Q4_0});
      gguf.tensor({.name = block + "up.weight", .shape = {96, 192}, .type = Type::F16, .data = random(96 * 192 * 2)});
    }
    gguf.tensor({.name = "blk.2.ffn_down.weight", .shape = {96, 96}, .type = Type::Q8_0});  // 96 is no multiple of 64
    gguf.tensor({.name = "blk.2.ffn_gate.weight", .shape = {96, 96}, .type = Type::F16});
    gguf.tensor({.name = "blk.2.ffn_up.weight", .shape = {96, 96}, .type = Type::F16});
    test::write_file(source(), gguf.build());
    pack(source(), "plain.ridge", 0);
    pack(source(), "bundled.ridge", 64);
  }
  std::string source() const { return folder_ / "model.gguf"; }
  std::string bundled() const { return folder_ / "bundled.ridge"; }
  Bytes random(size_t bytes) {
    Bytes out(bytes);
    for (uint8_t& b : out) b = static_cast<uint8_t>(state_ = state_ * 1103515245 + 12345, state_ >> 16);
    return out;
  }
  void pack(const std::string& from, const char* to, uint32_t neurons) {
    const Gguf gguf = Gguf::open(from).value();
    auto written = write_ridge_pack(gguf, folder_ / to, {.pool = &pool_, .bundle_neurons = neurons});
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void expect_damaged(size_t at, uint8_t mask, const char* word) {
    Bytes bytes = test::read_file(bundled());
    bytes[at] ^= mask;
    test::write_file(folder_ / "damaged.ridge", bytes);
    auto opened = open_ridge_pack(folder_ / "damaged.ridge");
    ASSERT_FALSE(opened.ok()) << at;
    EXPECT_NE(opened.error().message.find(word), std::string::npos) << opened.error().message;
  }

  test::TempFolder folder_;
  ThreadPool pool_{{.threads = 2}};
  uint32_t state_ = 1;
};

TEST_F(BundlePack, BytesAreThoseOfThePlainPanels) {
  const RidgePack plain = open_ridge_pack(folder_ / "plain.ridge").value();
  const RidgePack in_bundles = open_ridge_pack(bundled()).value();
  EXPECT_EQ(plain.bundles.neurons, 0u);
  ASSERT_EQ(in_bundles.bundles.neurons, 64u);
  EXPECT_TRUE(in_bundles.bundles.holds("blk.1.ffn_up.weight"));
  EXPECT_FALSE(in_bundles.bundles.holds("blk.1.ffn_gate.weight"));
  EXPECT_FALSE(in_bundles.bundles.holds("blk.2.ffn_down.weight"));
  EXPECT_TRUE(verify_ridge_pack(bundled()).ok());
  const Bytes before = test::read_file(folder_ / "plain.ridge"), after = test::read_file(bundled());
  for (uint32_t layer = 0; layer < 2; ++layer) {
    const BundledMatrices flat = matrices_of_layer(plain.gguf, layer), m = matrices_of_layer(in_bundles.gguf, layer);
    const BundleShape shape = bundle_shape(m, 64).value();
    EXPECT_EQ(shape.groups, 3u);
    EXPECT_EQ(m.up->offset, m.down->offset);
    EXPECT_EQ(shape.stride % kPackAlign, 0u);
    const size_t part = panel_bytes(Type::Q8_0, 64), panel = panel_bytes(Type::Q8_0, 192);
    for (uint32_t g = 0; g < shape.groups; ++g) {
      const uint8_t* bundle = after.data() + m.down->offset + g * shape.stride;
      EXPECT_EQ(std::memcmp(bundle, before.data() + flat.up->offset + g * shape.up_bytes, shape.up_bytes), 0);
      for (size_t p = 0; p < 6; ++p) {
        EXPECT_EQ(std::memcmp(bundle + shape.up_bytes + p * part,
                              before.data() + flat.down->offset + p * panel + g * part, part),
                  0)
            << "layer " << layer << ", bundle " << g << ", panel " << p;
      }
    }
  }
}

TEST_F(BundlePack, DamageIsFound) {
  expect_damaged(8, 4, "pack format");
  expect_damaged(48, 1, "checksum");  // neurons of a bundle
  Bytes bytes = test::read_file(bundled());
  const RidgePack whole = open_ridge_pack(bundled()).value();
  bytes[whole.gguf.find("blk.0.ffn_down.weight")->offset + 5] ^= 1;
  test::write_file(bundled(), bytes);
  auto verified = verify_ridge_pack(bundled());
  ASSERT_FALSE(verified.ok());
  EXPECT_NE(verified.error().message.find("blk.0.ffn_down.weight"), std::string::npos) << verified.error().message;
}

TEST_F(BundlePack, WhatCannotBeCut) {
  const Gguf gguf = Gguf::open(source()).value();
  const BundledMatrices m = matrices_of_layer(gguf, 0);
  EXPECT_TRUE(bundle_shape(m, 192));
  for (const uint32_t neurons : {0u, 16u, 63u, 128u, 256u}) EXPECT_FALSE(bundle_shape(m, neurons)) << neurons;
  EXPECT_EQ(choose_bundle(m, 1), 64u);
  EXPECT_EQ(choose_bundle(m, 1 << 30), 0u);
}

}  // namespace
}  // namespace ridge
