// Safetensors: what is read, what is refused and how, cuts and flips, and files written and read again.
#include <gtest/gtest.h>

#include <random>

#include "format/safetensors.h"
#include "tests/format/allocation_count.h"
#include "tests/format/safetensors_builder.h"
#include "tests/format/safetensors_invariants.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::AllocationPeak;
using test::SafetensorsBuilder;
using test::TempFolder;
using test::write_file;
using Bytes = std::vector<uint8_t>;

SafetensorsBuilder varied() {
  SafetensorsBuilder b;
  b.raw(R"("__metadata__": {"format": "pt", "a\"b\u00e9\u20ac": "x\\y\n"})");
  b.tensor("net.blocks.0.self_attn.q_proj.weight", "BF16", "[4, 3]", 24);
  b.tensor("scalar", "F32", "[]", 4).tensor("empty", "F16", "[0, 7]", 0).tensor("conv", "F32", "[2, 1, 1, 3, 3]", 72);
  b.tensor("ids", "I32", "[3]", 12).tensor("code", "F8_E4M3", "[5]", 5).tensor("wide", "I64", "[1,2]", 16);
  return b;
}

TEST(Safetensors, ReadsWhatIsThere) {
  const Bytes bytes = varied().build();
  auto file = parse_safetensors(bytes, "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().tensors().size(), 7u);
  const SafeTensor* q = file.value().find("net.blocks.0.self_attn.q_proj.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->type, SafeType::BF16);
  EXPECT_EQ((std::vector<uint64_t>(q->dimensions().begin(), q->dimensions().end())), (std::vector<uint64_t>{4, 3}));
  EXPECT_EQ(q->bytes, 24u);
  EXPECT_EQ(file.value().find("conv")->dims, 5);
  EXPECT_EQ(file.value().find("scalar")->elements(), 1u);
  EXPECT_EQ(file.value().find("empty")->elements(), 0u);
  EXPECT_EQ(file.value().find("nothing"), nullptr);
  EXPECT_EQ(test::broken_invariant(file.value(), bytes.size()), "");
}

TEST(Safetensors, NamesMayHaveEscapes) {
  SafetensorsBuilder b;
  b.tensor(R"(a\"\\\/\u0041\u00e9\u20ac)", "U8", "[1]", 1);
  auto file = parse_safetensors(b.build(), "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_NE(file.value().find("a\"\\/A\xc3\xa9\xe2\x82\xac"), nullptr);
}

struct Wrong {
  const char* what;
  SafetensorsBuilder builder;
  const char* words;  // in the message
};

TEST(Safetensors, RefusesWhatIsWrong) {
  const std::string entry = R"("a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]})";
  const Wrong cases[] = {
      {"overlap", SafetensorsBuilder().entry("a", "U8", "[4]", 0, 4).entry("b", "U8", "[4]", 2, 6).data(6),
       "tensor 'b' begins at"},
      {"a hole", SafetensorsBuilder().entry("a", "U8", "[4]", 0, 4).entry("b", "U8", "[4]", 5, 9).data(9),
       "leaves a hole"},
      {"a hole first", SafetensorsBuilder().entry("a", "U8", "[4]", 2, 6).data(6), "leaves a hole"},
      {"more data", SafetensorsBuilder().entry("a", "U8", "[4]", 0, 4).data(9), "the tensors end at"},
      {"past the end", SafetensorsBuilder().entry("a", "U8", "[4]", 0, 4).data(3), "it is cut short"},
      {"backwards", SafetensorsBuilder().entry("a", "U8", "[4]", 4, 0).data(4), "before its beginning"},
      {"wrong size", SafetensorsBuilder().entry("a", "F32", "[4]", 0, 4).data(4), "has 4 bytes, expected 16"},
      {"overflow", SafetensorsBuilder().entry("a", "F32", "[4294967296, 4294967296]", 0, 0), "product overflows"},
      {"overflow of 2^63", SafetensorsBuilder().entry("a", "U8", "[9223372036854775808]", 0, 0), "product overflows"},
      {"beyond 64 bits", SafetensorsBuilder().entry("a", "U8", "[99999999999999999999]", 0, 0), "beyond 64 bits"},
      {"huge offsets", SafetensorsBuilder().entry("a", "U8", "[1]", 18446744073709551614u, 18446744073709551615u),
       "it is cut short"},
      {"unknown type", SafetensorsBuilder().entry("a", "Q4_0", "[1]", 0, 1).data(1), "has the type 'Q4_0'"},
      {"negative", SafetensorsBuilder().entry("a", "U8", "[-1]", 0, 1).data(1), "no whole number"},
      {"a fraction", SafetensorsBuilder().entry("a", "U8", "[1.0]", 0, 1).data(1), "where ']' was expected"},
      {"leading zero", SafetensorsBuilder().entry("a", "U8", "[01]", 0, 1).data(1), "leading zero"},
      {"seven dimensions", SafetensorsBuilder().entry("a", "U8", "[1,1,1,1,1,1,1]", 0, 1).data(1), "dimensions"},
      {"twice", SafetensorsBuilder().tensor("a", "U8", "[1]", 1).tensor("a", "U8", "[1]", 1), "two tensors"},
      {"no name", SafetensorsBuilder().tensor("", "U8", "[1]", 1), "without a name"},
      {"a foreign key", SafetensorsBuilder().raw(R"("a": {"type": "U8"})"), "has the key 'type'"},
      {"a key twice", SafetensorsBuilder().raw(R"("a": {"dtype": "U8", "dtype": "U8"})"), "has 'dtype' twice"},
      {"a key too few", SafetensorsBuilder().raw(R"("a": {"dtype": "U8", "shape": []})"), "lacks one of"},
      {"metadata twice", SafetensorsBuilder().raw(R"("__metadata__": {}, "__metadata__": {})"), "occurs twice"},
      {"nested metadata", SafetensorsBuilder().raw(R"("__metadata__": {"a": {}})"), "where '\"' was expected"},
      {"a bad escape", SafetensorsBuilder().tensor(R"(\x)", "U8", "[1]", 1), "an escape that JSON has not"},
      {"a comma too many", SafetensorsBuilder().raw(entry + ",").data(1), "where '\"' was expected"},
      {"text behind", SafetensorsBuilder().raw(entry + "} x {").data(1), "goes on after its closing brace"},
      {"a long name", SafetensorsBuilder().tensor(std::string(1025, 'a'), "U8", "[1]", 1), "more than 1,024 bytes"},
  };
  for (const Wrong& c : cases) {
    auto file = parse_safetensors(c.builder.build(), "m.safetensors");
    ASSERT_FALSE(file.ok()) << c.what;
    EXPECT_EQ(file.error().code, ErrorCode::bad_input) << c.what;
    EXPECT_NE(file.error().message.find(c.words), std::string::npos) << c.what << ": " << file.error().message;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos) << c.what;
    EXPECT_EQ(file.error().message.rfind("m.safetensors: ", 0), 0u) << c.what;
  }
}

TEST(Safetensors, RefusesWrongLengths) {
  for (uint64_t length : {uint64_t{3}, uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    Bytes bytes = SafetensorsBuilder::file("{}", 0);
    for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(length >> 8 * i);
    AllocationPeak peak;
    EXPECT_FALSE(parse_safetensors(bytes, "m.safetensors").ok()) << length;
    EXPECT_LE(peak.bytes(), 8192u);
  }
  EXPECT_TRUE(parse_safetensors(SafetensorsBuilder::file("{}", 0), "m").ok());
  EXPECT_TRUE(parse_safetensors(SafetensorsBuilder::file(" { } ", 0), "m").ok());
}

// Names, an entry for every 60 bytes, and some for one Safetensors.
size_t memory_bound(size_t file_bytes) { return 8 * file_bytes + 8192; }

TEST(SafetensorsProperty, EveryCutIsRefused) {
  const Bytes bytes = varied().build();
  for (size_t length = 0; length < bytes.size(); ++length) {
    AllocationPeak peak;
    auto file = parse_safetensors({bytes.data(), length}, "m.safetensors");
    ASSERT_FALSE(file.ok()) << "cut at " << length;
    ASSERT_LE(peak.bytes(), memory_bound(length)) << "cut at " << length;
  }
}

TEST(SafetensorsProperty, FlipsAreRefusedOrSound) {
  const Bytes original = varied().build();
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = original;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0x20 + random() % 0x60);
    }
    AllocationPeak peak;
    auto file = parse_safetensors(bytes, "m.safetensors");
    ASSERT_LE(peak.bytes(), memory_bound(bytes.size()));
    if (!file.ok()) {
      ASSERT_EQ(file.error().code, ErrorCode::bad_input);
      ASSERT_EQ(file.error().message.find('\n'), std::string::npos) << file.error().message;
      continue;
    }
    ++accepted;
    ASSERT_EQ(test::broken_invariant(file.value(), bytes.size()), "") << round;
  }
  EXPECT_GT(accepted, 100);  // those in names and data
}

TEST(SafetensorsProperty, ManyTensorsCostABoundedAmount) {
  std::string header = "{";
  constexpr int kCount = 65'537;
  for (int i = 0; i < kCount; ++i) {
    header += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  AllocationPeak peak;
  auto file = parse_safetensors(SafetensorsBuilder::file(header + "}", 0), "m.safetensors");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("more than 65,536 tensors"), std::string::npos);
  EXPECT_LE(peak.bytes(), 2 * header.size() + 24 * 1024 * 1024);  // the test holds the file itself
}

TEST(SafetensorsWriter, WritesWhatIsReadAgain) {
  TempFolder folder;
  const std::string path = folder / "out.safetensors";
  const std::vector<float> values = {1, -2.5f, 3e-9f, 4, 5, 6};
  const std::vector<int32_t> ids = {7, -8};
  {
    auto out = SafetensorsWriter::create(
        path, {{"none", SafeType::F32, {0}}, {"step.0", SafeType::F32, {2, 3}}, {"ids", SafeType::I32, {2}}});
    ASSERT_TRUE(out.ok()) << out.error().message;
    ASSERT_TRUE(out.value().append(std::span<const float>()).ok());
    ASSERT_TRUE(out.value().append(values).ok());
    ASSERT_TRUE(out.value().append(ids).ok());
    EXPECT_FALSE(is_safetensors(path));  // not there before it is finished
    ASSERT_TRUE(out.value().finish().ok());
  }
  EXPECT_TRUE(is_safetensors(path));
  auto file = Safetensors::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(read_floats(file.value(), *file.value().find("step.0"), 6).value(), values);
  EXPECT_EQ(read_integers(file.value(), *file.value().find("ids"), 2).value(), ids);
  EXPECT_FALSE(read_floats(file.value(), *file.value().find("step.0"), 5).ok());
  EXPECT_FALSE(read_floats(file.value(), *file.value().find("ids"), 5).ok());
  EXPECT_FALSE(read_integers(file.value(), *file.value().find("step.0"), 6).ok());
}

TEST(Safetensors, OpensAModelInParts) {
  TempFolder folder;
  SafetensorsBuilder first, second;
  first.tensor("a", "U8", "[3]", 3);
  second.tensor("b", "F32", "[1]", 4);
  write_file(folder / "m-1.safetensors", first.build());
  write_file(folder / "m-2.safetensors", second.build());
  auto index = [&](const std::string& text) {
    write_file(folder / "m.safetensors.index.json", Bytes(text.begin(), text.end()));
    return Safetensors::open(folder / "m.safetensors.index.json");
  };
  auto file = index(R"({"metadata": {"total_size": 7},
                        "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().files().size(), 2u);
  EXPECT_EQ(file.value().find("a")->file, 0u);
  EXPECT_EQ(file.value().find("b")->file, 1u);
  EXPECT_FALSE(index("{").ok());
  EXPECT_FALSE(index("{}").ok());
  EXPECT_FALSE(index(R"({"weight_map": {"a": "../m-1.safetensors"}})").ok());
  EXPECT_FALSE(index(R"({"weight_map": {"a": "m-3.safetensors"}})").ok());
  write_file(folder / "m-2.safetensors", first.build());
  auto twice = index(R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("two tensors are called 'a'"), std::string::npos) << twice.error().message;
}

}  // namespace
}  // namespace ridge
