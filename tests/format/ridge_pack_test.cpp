#include "format/ridge_pack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "base/units.h"
#include "format/safetensors_gguf.h"
#include "tests/format/allocation_count.h"
#include "tests/format/gguf_builder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

using test::AllocationPeak;
using test::Bytes;
using test::GgufBuilder;
using test::read_file;
using test::SafetensorsBuilder;
using test::TempFolder;
using test::write_file;

class RidgePackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GgufBuilder gguf;
    gguf.string("general.architecture", "llama");
    gguf.string("general.name", std::string(300'000, 'n'));  // a header that spans several pieces
    gguf.tensor({.name = "token_embd.weight", .shape = {64, 100}, .type = Type::Q8_0});
    gguf.tensor({.name = "output.weight", .shape = {64, 100}, .type = Type::Q4_0});
    gguf.tensor({.name = "blk.0.attn_norm.weight", .shape = {64}});
    gguf.tensor({.name = "blk.0.attn_q.weight", .shape = {64, 40}, .type = Type::F16});
    gguf.tensor({.name = "blk.0.ffn_up.weight", .shape = {96, 250}, .type = Type::Q4_1});
    gguf.tensor({.name = "blk.0.ffn_gate_inp.weight", .shape = {64, 8}});
    gguf.tensor({.name = "blk.0.ffn_up_exps.weight", .shape = {64, 32, 3}, .type = Type::Q8_0});
    gguf.tensor({.name = "blk.0.ffn_odd_exps.weight", .shape = {64, 20, 3}, .type = Type::Q8_0});
    source_bytes_ = gguf.build();
    write_file(source(), source_bytes_);
  }

  std::string source() const { return folder_ / "model.gguf"; }
  std::string pack() const { return folder_ / "model.ridge"; }
  std::string cache() const { return folder_ / "cache"; }

  void write_pack() {
    auto gguf = Gguf::open(source());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    auto written = write_ridge_pack(gguf.value(), pack(), {.pool = &pool_});
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void expect_refused(const std::string& word) {
    auto opened = open_ridge_pack(pack());
    ASSERT_FALSE(opened.ok()) << "expected: " << word;
    EXPECT_EQ(opened.error().code, ErrorCode::bad_input);
    EXPECT_NE(opened.error().message.find(word), std::string::npos) << opened.error().message;
    EXPECT_NE(opened.error().message.find(pack()), std::string::npos) << opened.error().message;
  }
  void change_byte(const std::string& path, size_t at, uint8_t mask = 0x10) {
    Bytes bytes = read_file(path);
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= mask;
    write_file(path, bytes);
  }
  // The bytes that the tensor must have in the pack.
  Bytes expected(const Bytes& file, const GgufTensor& t, bool panels) {
    const uint8_t* rows = file.data() + t.offset;
    if (!panels) return {rows, rows + t.bytes};
    Bytes out(panels_bytes(t.type, t.rows(), t.cols()));
    size_t stride = row_bytes(t.type, t.cols()), panel = panel_bytes(t.type, t.cols());
    Bytes storage(panel + 64);
    uint8_t* aligned = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    for (size_t r = 0; r < t.rows(); r += 16) {
      pack_panel({t.type, rows + r * stride, stride, std::min<size_t>(16, t.rows() - r), t.cols(), aligned});
      std::memcpy(out.data() + r / 16 * panel, aligned, panel);
    }
    return out;
  }
  void compare(const std::string& gguf_path) {
    auto gguf = Gguf::open(gguf_path);
    ASSERT_TRUE(gguf.ok());
    compare(gguf);
  }
  void compare(const Result<Gguf>& gguf) {
    auto opened = open_ridge_pack(pack());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const RidgePack& p = opened.value();
    Bytes bytes = read_file(pack());
    ASSERT_EQ(p.tensors.size(), gguf.value().tensors().size());
    EXPECT_EQ(p.gguf.metadata().entries().size(), gguf.value().metadata().entries().size());
    ASSERT_EQ(p.gguf.files().size(), 1u);
    EXPECT_EQ(p.gguf.files()[0].path, pack());
    EXPECT_EQ(p.gguf.files()[0].bytes, bytes.size());
    std::map<std::string, Bytes> sources;
    for (const GgufFile& f : gguf.value().files()) sources[f.path] = read_file(f.path);
    for (size_t i = 0; i < p.tensors.size(); ++i) {
      const GgufTensor& before = gguf.value().tensors()[i];
      const GgufTensor& after = p.gguf.tensors()[i];
      EXPECT_EQ(after.name, before.name);
      EXPECT_EQ(after.shape, before.shape);
      EXPECT_EQ(after.type, before.type);
      EXPECT_EQ(after.offset % kPackAlign, 0u);
      EXPECT_EQ(after.offset, p.tensors[i].offset);
      EXPECT_EQ(after.file, 0u);
      Bytes want = expected(sources[gguf.value().files()[before.file].path], before, p.tensors[i].panels);
      ASSERT_EQ(after.bytes, want.size()) << after.name;
      EXPECT_TRUE(std::equal(want.begin(), want.end(), bytes.begin() + static_cast<int64_t>(after.offset)))
          << after.name;
      EXPECT_EQ(p.gguf.find(after.name), &after);
    }
  }

  TempFolder folder_;
  Bytes source_bytes_;
  ThreadPool pool_{{.threads = 2}};
};

TEST_F(RidgePackTest, HoldsTheSameWeights) {
  write_pack();
  compare(source());
  EXPECT_TRUE(verify_ridge_pack(pack()).ok());
  EXPECT_TRUE(is_ridge_pack(pack()).value());
  EXPECT_FALSE(is_ridge_pack(source()).value());
  auto opened = open_ridge_pack(pack());
  EXPECT_EQ(opened.value().source, "model.gguf");
  EXPECT_EQ(opened.value().gguf.metadata().require_string("general.architecture").value(), "llama");
}

TEST_F(RidgePackTest, WhatBecomesPanels) {
  write_pack();
  RidgePack p = open_ridge_pack(pack()).value();
  std::map<std::string, bool> panels;
  for (size_t i = 0; i < p.tensors.size(); ++i) panels[p.gguf.tensors()[i].name] = p.tensors[i].panels;
  EXPECT_FALSE(panels["token_embd.weight"]) << "only looked up: there is a head of its own";
  EXPECT_TRUE(panels["output.weight"]);
  EXPECT_FALSE(panels["blk.0.attn_norm.weight"]);
  EXPECT_TRUE(panels["blk.0.attn_q.weight"]);
  EXPECT_TRUE(panels["blk.0.ffn_up.weight"]);
  EXPECT_FALSE(panels["blk.0.ffn_gate_inp.weight"]) << "a router";
  EXPECT_TRUE(panels["blk.0.ffn_up_exps.weight"]);
  EXPECT_FALSE(panels["blk.0.ffn_odd_exps.weight"]) << "20 rows an expert fill no panels";
}

TEST_F(RidgePackTest, ATiedEmbeddingIsTheHead) {
  GgufBuilder gguf;
  gguf.tensor({.name = "token_embd.weight", .shape = {64, 100}, .type = Type::Q8_0});
  write_file(source(), gguf.build());
  write_pack();
  EXPECT_TRUE(open_ridge_pack(pack()).value().tensors[0].panels);
  compare(source());
}

// In two parts, with a tensor of no elements and what is no weight, which no pack has.
TEST_F(RidgePackTest, OfSafetensors) {
  SafetensorsBuilder first, second;
  first.tensor("net.a.weight", "BF16", "[20, 24]", 960).tensor("net.none", "F32", "[0, 3]", 0);
  first.tensor("net.pos_embedder.seq", "I64", "[4]", 32).tensor("net.norm.weight", "F32", "[24]", 96);
  second.tensor("net.b.weight", "F32", "[3, 16, 5]", 960).tensor("net.table.weight", "F16", "[9, 8]", 144);
  write_file(folder_ / "a-00001.safetensors", first.build());
  write_file(folder_ / "a-00002.safetensors", second.build());
  const std::string index = R"({"weight_map": {"x": "a-00001.safetensors", "y": "a-00002.safetensors"}})";
  write_file(folder_ / "a.safetensors.index.json", Bytes(index.begin(), index.end()));

  const Result<Gguf> source = as_gguf(Safetensors::open(folder_ / "a.safetensors.index.json").value());
  ASSERT_TRUE(source.ok()) << source.error().message;
  auto chosen = [](const Gguf&, const GgufTensor& t) {
    return packs_as_panels_alone(t) && t.name != "net.table.weight";
  };
  auto written = write_ridge_pack(source.value(), pack(), {.pool = &pool_, .as_panels = chosen});
  ASSERT_TRUE(written.ok()) << written.error().message;
  compare(source);
  EXPECT_TRUE(verify_ridge_pack(pack()).ok());
  const RidgePack p = open_ridge_pack(pack()).value();
  ASSERT_EQ(p.tensors.size(), 4u);
  for (size_t i = 0; i < p.tensors.size(); ++i)
    EXPECT_EQ(p.tensors[i].panels, p.gguf.tensors()[i].name.size() == std::strlen("net.a.weight"));

  // The header of a source, damaged in any byte, is refused and crashes nothing.
  const Bytes whole = read_file(pack());
  uint64_t meta_bytes = 0;
  std::memcpy(&meta_bytes, whole.data() + 24, sizeof meta_bytes);
  for (size_t at = 0; at < meta_bytes; at += 7) {
    change_byte(pack(), at);
    EXPECT_FALSE(open_ridge_pack(pack()).ok()) << at;
    write_file(pack(), whole);
  }
  write_file(folder_ / "a-00002.safetensors", first.build());
  expect_refused("stale");
}

TEST_F(RidgePackTest, TheCallerMayChooseAndPack) {
  static std::atomic<int> calls;
  calls = 0;
  using Pack = void (*)(const PackArgs&);
  Pack table[64] = {};
  table[static_cast<size_t>(Type::F16)] = [](const PackArgs& a) {
    ++calls;
    pack_panel(a);
  };
  auto gguf = Gguf::open(source());
  auto only_q = [](const Gguf&, const GgufTensor& t) { return t.name == "blk.0.attn_q.weight"; };
  ASSERT_TRUE(write_ridge_pack(gguf.value(), pack(), {.pool = &pool_, .pack = table, .as_panels = only_q}).ok());
  EXPECT_EQ(calls, 3);
  compare(source());
  RidgePack p = open_ridge_pack(pack()).value();
  for (size_t i = 0; i < p.tensors.size(); ++i)
    EXPECT_EQ(p.tensors[i].panels, p.gguf.tensors()[i].name == "blk.0.attn_q.weight");
}

TEST_F(RidgePackTest, LargeTensorsGoPieceByPiece) {
  GgufBuilder gguf;
  gguf.string("general.name", std::string(20'000'000, 'n'));
  gguf.tensor({.name = "a.weight", .shape = {1024, 6001}});  // 24 MB: rows and panels of one piece are 8 MiB
  gguf.tensor({.name = "b.weight", .shape = {6'000'000}});   // 24 MB as a vector
  write_file(source(), gguf.build());
  auto opened = Gguf::open(source());
  ASSERT_TRUE(opened.ok());
  AllocationPeak peak;
  ASSERT_TRUE(write_ridge_pack(opened.value(), pack(), {.pool = &pool_}).ok());
  EXPECT_LT(peak.bytes(), 16 * kMiB);
  compare(source());
  EXPECT_TRUE(verify_ridge_pack(pack()).ok());
}

TEST_F(RidgePackTest, SplitModelsBecomeOnePack) {
  std::string parts[2];
  for (uint32_t i = 0; i < 2; ++i) {
    GgufBuilder part;
    part.number<uint16_t>("split.no", static_cast<uint16_t>(i)).number<uint16_t>("split.count", 2);
    part.number<int32_t>("split.tensors.count", 3);
    part.tensor({.name = "x" + std::to_string(i) + ".weight", .shape = {64, 30 + i}, .type = Type::Q8_0});
    if (i == 1) part.tensor({.name = "y.weight", .shape = {64}});
    parts[i] = folder_ / ("big-0000" + std::to_string(i + 1) + "-of-00002.gguf");
    write_file(parts[i], part.build());
  }
  auto gguf = Gguf::open(parts[0]);
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  ASSERT_TRUE(write_ridge_pack(gguf.value(), pack(), {.pool = &pool_}).ok());
  compare(parts[0]);
  EXPECT_EQ(open_ridge_pack(pack()).value().source, "big-00001-of-00002.gguf");
  change_byte(parts[1], 60, 1);
  expect_refused("stale");
}

TEST_F(RidgePackTest, NeedsNoSource) {
  write_pack();
  fs::remove(source());
  EXPECT_TRUE(open_ridge_pack(pack()).ok());
  EXPECT_TRUE(verify_ridge_pack(pack()).ok());
}

TEST_F(RidgePackTest, StaleWhenTheSourceChanged) {
  write_pack();
  ASSERT_TRUE(open_ridge_pack(pack()).ok());
  struct stat info {};
  ASSERT_EQ(::stat(source().c_str(), &info), 0);
  // The time alone.
  timespec later[2] = {info.st_atim, info.st_mtim};
  later[1].tv_sec += 1;
  ASSERT_EQ(::utimensat(AT_FDCWD, source().c_str(), later, 0), 0);
  expect_refused("stale: " + source());
  // The header alone.
  change_byte(source(), 100'000);
  timespec same[2] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, source().c_str(), same, 0), 0);
  expect_refused("header differs");
  // The size.
  Bytes longer = source_bytes_;
  longer.push_back(0);
  write_file(source(), longer);
  expect_refused("pack it again");
}

TEST_F(RidgePackTest, ForeignAndCutFilesAreRefused) {
  write_file(pack(), source_bytes_);
  expect_refused("not a Ridge pack");
  write_file(pack(), Bytes());
  expect_refused("not a Ridge pack");
  write_pack();
  Bytes whole = read_file(pack());
  for (size_t bytes : {whole.size() - 1, whole.size() / 2, size_t{200}, size_t{128}}) {
    write_file(pack(), Bytes(whole.begin(), whole.begin() + static_cast<int64_t>(bytes)));
    expect_refused("cut short");
  }
  auto missing = open_ridge_pack(folder_ / "missing");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
}

TEST_F(RidgePackTest, OtherVersionsAreRefused) {
  write_pack();
  change_byte(pack(), 8, 4);
  expect_refused("pack format 5");
  write_pack();
  change_byte(pack(), 12, 4);
  expect_refused("layout");
}

TEST_F(RidgePackTest, AnyChangedByteOfTheHeaderIsFound) {
  write_pack();
  const Bytes whole = read_file(pack());
  fs::remove(source());
  uint64_t meta = 0;
  std::memcpy(&meta, whole.data() + 24, sizeof meta);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    Bytes damaged = whole;
    // Every byte of the fixed header, then anywhere before the data.
    size_t at = i < 128 ? static_cast<size_t>(i) : random() % meta;
    damaged[at] ^= static_cast<uint8_t>(1u << (random() % 8));
    write_file(pack(), damaged);
    EXPECT_FALSE(open_ridge_pack(pack()).ok()) << at;
  }
}

TEST_F(RidgePackTest, VerifyFindsChangedWeights) {
  write_pack();
  RidgePack p = open_ridge_pack(pack()).value();
  for (size_t i : {size_t{0}, size_t{4}, p.tensors.size() - 1}) {
    write_pack();
    change_byte(pack(), p.tensors[i].offset + p.tensors[i].bytes - 1);
    EXPECT_TRUE(open_ridge_pack(pack()).ok()) << "opening reads no weights";
    auto verified = verify_ridge_pack(pack());
    ASSERT_FALSE(verified.ok());
    EXPECT_EQ(verified.error().code, ErrorCode::bad_input);
    EXPECT_EQ(verified.error().offset, p.tensors[i].offset);
    EXPECT_NE(verified.error().message.find(p.gguf.tensors()[i].name), std::string::npos) << verified.error().message;
  }
}

TEST_F(RidgePackTest, AVerificationIsRemembered) {
  write_pack();
  ASSERT_TRUE(ensure_verified(pack(), cache()).ok());
  ASSERT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1);
  RidgePack p = open_ridge_pack(pack()).value();
  change_byte(pack(), p.tensors[1].offset);  // a new time of modification
  auto changed = ensure_verified(pack(), cache());
  ASSERT_FALSE(changed.ok());
  EXPECT_NE(changed.error().message.find("checksum"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1)
      << "a failure is not remembered";
}

TEST_F(RidgePackTest, ARememberedPackIsNotReadAgain) {
  write_pack();
  ASSERT_TRUE(ensure_verified(pack(), cache()).ok());
  // Damage in the record itself: the pack is read again and the record mended.
  fs::path record = fs::directory_iterator(cache())->path();
  Bytes text = read_file(record.string());
  write_file(record.string(), Bytes{'x'});
  ASSERT_TRUE(ensure_verified(pack(), cache()).ok());
  EXPECT_EQ(read_file(record.string()), text);
  // An intact record spares the reading: it is not written again.
  auto before = fs::last_write_time(record);
  timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, record.c_str(), old, 0), 0);
  EXPECT_NE(fs::last_write_time(record), before);
  before = fs::last_write_time(record);
  ASSERT_TRUE(ensure_verified(pack(), cache()).ok());
  EXPECT_EQ(fs::last_write_time(record), before);
}

TEST_F(RidgePackTest, ACacheThatCannotBeWrittenOnlyCostsTime) {
  write_pack();
  write_file(cache(), Bytes{'x'});  // a file where the folder should be
  EXPECT_TRUE(ensure_verified(pack(), cache()).ok());
}

TEST_F(RidgePackTest, AFullDiskLeavesNothingBehind) {
  write_pack();
  const Bytes before = read_file(pack());
  auto gguf = Gguf::open(source());
  // No file may grow past 64 KiB: stands for a disk without room.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{64 * 1024, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto written = write_ridge_pack(gguf.value(), pack(), {.pool = &pool_});
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::io) << written.error().message;
  EXPECT_EQ(read_file(pack()), before) << "what was there stays";
  EXPECT_EQ(folder_.entries(), 2u) << "no partial file";
}

TEST_F(RidgePackTest, ASourceThatChangesIsRefused) {
  auto gguf = Gguf::open(source());
  ASSERT_TRUE(gguf.ok());
  Bytes longer = source_bytes_;
  longer.push_back(1);
  write_file(source(), longer);
  auto written = write_ridge_pack(gguf.value(), pack(), {.pool = &pool_});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::bad_input);
  EXPECT_FALSE(fs::exists(pack()));
}

TEST_F(RidgePackTest, RealTinyModels) {
  const fs::path tiny = fs::path(RIDGE_SHARED_DIR) / "golden/tiny";
  if (!fs::exists(tiny)) GTEST_SKIP() << "needs ../shared";
  for (const auto& entry : fs::directory_iterator(tiny)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().filename().string());
    auto gguf = Gguf::open(entry.path().string());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    auto written = write_ridge_pack(gguf.value(), pack(), {.pool = &pool_});
    ASSERT_TRUE(written.ok()) << written.error().message;
    compare(entry.path().string());
    EXPECT_TRUE(verify_ridge_pack(pack()).ok());
  }
}

}  // namespace
}  // namespace ridge
