// Packs whose neurons lie in another order: the bytes are those of a source that was permuted beforehand, and an order
// that is none is refused.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "format/ridge_pack.h"
#include "format/ridge_pack_format.h"
#include "tests/format/gguf_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::Bytes;

constexpr uint32_t kOrderNeurons = 128, kOrderWidth = 64;

Bytes numbered(size_t bytes, uint32_t seed) {
  Bytes out(bytes);
  for (uint8_t& b : out) b = static_cast<uint8_t>(seed = seed * 1103515245 + 12345, seed >> 16);
  return out;
}

// Rows of `stride` bytes in the order's.
Bytes permuted_rows(const Bytes& rows, size_t stride, const NeuronOrder& order) {
  Bytes out(rows.size());
  for (uint32_t n = 0; n < kOrderNeurons; ++n)
    std::memcpy(out.data() + n * stride, rows.data() + order.neuron(n) * stride, stride);
  return out;
}

class OrderedPack : public ::testing::TestWithParam<Type> {
 protected:
  void SetUp() override {
    order_.unit = order_unit(GetParam());
    const uint32_t units = kOrderNeurons / order_.unit;
    for (uint32_t u = 0; u < units; ++u) order_.units.push_back((u * 5 + 3) % units);
    order_.touched = {900'000, 100'000};
    test::write_file(folder_ / "model.gguf", source({.unit = 1, .units = identity()}));
    test::write_file(folder_ / "permuted.gguf", source(order_));
    pack("model.gguf", "ordered.ridge", {order_});
    pack("permuted.gguf", "permuted.ridge", {});
  }
  static std::vector<uint32_t> identity() {
    std::vector<uint32_t> out(kOrderNeurons);
    for (uint32_t n = 0; n < kOrderNeurons; ++n) out[n] = n;
    return out;
  }
  Bytes source(const NeuronOrder& order) const {
    test::GgufBuilder gguf;
    gguf.string("general.architecture", "reglu-llama");
    const size_t row = 2 * kOrderWidth, unit = row_bytes(GetParam(), order_.unit),
                 down = row_bytes(GetParam(), kOrderNeurons);
    Bytes columns = numbered(kOrderWidth * down, 3), moved = columns;
    for (size_t r = 0; r < kOrderWidth; ++r) {
      for (size_t i = 0; i < kOrderNeurons / order_.unit; ++i) {
        const size_t from = order.neuron(i * order_.unit) / order_.unit;
        std::memcpy(moved.data() + r * down + i * unit, columns.data() + r * down + from * unit, unit);
      }
    }
    auto add = [&](const char* name, uint64_t width, Type type, Bytes data) {
      gguf.tensor(
          {.name = std::string("blk.0.ffn_") + name, .shape = {width, kOrderNeurons}, .type = type, .data = data});
    };
    gguf.tensor(
        {.name = "blk.0.ffn_down.weight", .shape = {kOrderNeurons, kOrderWidth}, .type = GetParam(), .data = moved});
    gguf.tensor({.name = "blk.0.ffn_gate.bias",
                 .shape = {kOrderNeurons},
                 .data = permuted_rows(numbered(4 * kOrderNeurons, 4), 4, order)});
    add("gate.weight", kOrderWidth, Type::F16, permuted_rows(numbered(kOrderNeurons * row, 1), row, order));
    add("up.weight", kOrderWidth, Type::F16, permuted_rows(numbered(kOrderNeurons * row, 2), row, order));
    gguf.tensor({.name = "blk.0.ffn_down.bias", .shape = {kOrderWidth}, .data = numbered(4 * kOrderWidth, 5)});
    return gguf.build();
  }
  void pack(const char* from, const char* to, std::vector<NeuronOrder> orders) {
    RidgePackOptions options{.pool = &pool_, .bundle_neurons = kOrderNeurons / 2};
    options.orders = std::move(orders);
    auto written = write_ridge_pack(Gguf::open(folder_ / from).value(), folder_ / to, options);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }

  test::TempFolder folder_;
  ThreadPool pool_{{.threads = 2}};
  NeuronOrder order_;
};

TEST_P(OrderedPack, BytesAreThoseOfAPermutedSource) {
  EXPECT_TRUE(verify_ridge_pack(folder_ / "ordered.ridge").ok());
  const RidgePack a = open_ridge_pack(folder_ / "ordered.ridge").value();
  const RidgePack b = open_ridge_pack(folder_ / "permuted.ridge").value();
  const Bytes ours = test::read_file(folder_ / "ordered.ridge"), want = test::read_file(folder_ / "permuted.ridge");
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    ASSERT_EQ(a.tensors[i].bytes, b.tensors[i].bytes);
    EXPECT_EQ(std::memcmp(ours.data() + a.tensors[i].offset, want.data() + b.tensors[i].offset, a.tensors[i].bytes), 0)
        << a.gguf.tensors()[i].name;
  }
  ASSERT_NE(a.bundles.order(0), nullptr);
  EXPECT_EQ(a.bundles.order(0)->units, order_.units);
  EXPECT_EQ(a.bundles.order(0)->touched, order_.touched);
  EXPECT_EQ(a.bundles.order(1), nullptr);
  EXPECT_TRUE(b.bundles.orders.empty());
  EXPECT_EQ(ours[8], kRidgePackVersion);
  EXPECT_EQ(want[8], kBundlePackVersion) << "what older versions of Ridge can read is written for them";
}

// The last words before the tensors are the order: a checksum that fits does not make it one.
TEST_P(OrderedPack, AnOrderThatIsNoneIsRefused) {
  const Bytes whole = test::read_file(folder_ / "ordered.ridge");
  PackHeader header;
  std::memcpy(&header, whole.data(), sizeof header);
  const size_t words = order_.units.size() + order_.touched.size() + 4, at = header.meta_bytes - 4 * words;
  const std::vector<std::pair<size_t, uint32_t>> changes = {{0, 7}, {1, 0}, {1, 1000},       {2, 0xffffffff},
                                                            {3, 1}, {4, 1}, {4, 0xffffffff}, {words - 1, 1'000'001}};
  for (const auto& [word, value] : changes) {
    Bytes bytes = whole;
    std::memcpy(bytes.data() + at + 4 * word, &value, sizeof value);
    Hasher hasher;
    hasher.add(std::span(bytes).first(offsetof(PackHeader, checksum)));
    hasher.add(std::span(bytes).subspan(sizeof header, header.meta_bytes - sizeof header));
    const uint64_t checksum = hasher.value();
    std::memcpy(bytes.data() + offsetof(PackHeader, checksum), &checksum, sizeof checksum);
    test::write_file(folder_ / "damaged.ridge", bytes);
    auto opened = open_ridge_pack(folder_ / "damaged.ridge");
    ASSERT_FALSE(opened.ok()) << "word " << word << " = " << value;
    EXPECT_NE(opened.error().message.find("order"), std::string::npos) << opened.error().message;
  }
}

TEST_P(OrderedPack, TensorsAndBundlesBeginWhereADeviceWantsThem) {
  RidgePackOptions options{.pool = &pool_, .bundle_neurons = kOrderNeurons / 2};
  options.align = 12288;
  ASSERT_TRUE(write_ridge_pack(Gguf::open(folder_ / "model.gguf").value(), folder_ / "aligned.ridge", options).ok());
  ASSERT_TRUE(verify_ridge_pack(folder_ / "aligned.ridge").ok());
  const RidgePack pack = open_ridge_pack(folder_ / "aligned.ridge").value();
  EXPECT_EQ(pack.bundles.align, 12288u);
  for (const PackedTensor& t : pack.tensors) EXPECT_EQ(t.offset % 12288, 0u);
  EXPECT_EQ(pack.gguf.find("blk.0.ffn_down.weight")->bytes % (2 * 12288), 0u);
}

TEST_P(OrderedPack, VectorsOfAnotherLengthAreRefused) {
  test::GgufBuilder gguf;
  gguf.string("general.architecture", "reglu-llama");
  const size_t down = row_bytes(GetParam(), kOrderNeurons);
  gguf.tensor({.name = "blk.0.ffn_down.weight",
               .shape = {kOrderNeurons, kOrderWidth},
               .type = GetParam(),
               .data = Bytes(kOrderWidth * down)});
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"})
    gguf.tensor({.name = name,
                 .shape = {kOrderWidth, kOrderNeurons},
                 .type = Type::F16,
                 .data = Bytes(2 * kOrderWidth * kOrderNeurons)});
  gguf.tensor({.name = "blk.0.ffn_up.bias", .shape = {kOrderNeurons - 1}, .data = Bytes(4 * (kOrderNeurons - 1))});
  test::write_file(folder_ / "odd.gguf", gguf.build());
  RidgePackOptions options{.pool = &pool_, .bundle_neurons = kOrderNeurons / 2};
  options.orders = {order_};
  auto written = write_ridge_pack(Gguf::open(folder_ / "odd.gguf").value(), folder_ / "odd.ridge", options);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::bad_input);
  EXPECT_NE(written.error().message.find("blk.0.ffn_up.bias"), std::string::npos) << written.error().message;
}

INSTANTIATE_TEST_SUITE_P(, OrderedPack, testing::Values(Type::F16, Type::Q8_0),
                         [](const auto& test) { return std::string(type_info(test.param).name); });

}  // namespace
}  // namespace ridge
