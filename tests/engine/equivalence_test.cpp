// The promise: the same bytes of logits whatever the budget, the I/O engine, the threads, the ISA and the batch.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/units.h"
#include "format/ridge_pack.h"
#include "machine/cpu.h"
#include "tests/golden.h"

namespace ridge {
namespace {

using Logits = std::vector<std::vector<float>>;

bool same_bytes(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return false;
  for (size_t t = 0; t < a.size(); ++t) {
    if (a[t].size() != b[t].size() || std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (choose_kernels({.isa = isa}).ok()) out.push_back(isa);
  }
  return out;
}

class Equivalence : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(path(), "needs ../shared"); }
  std::string path() const { return golden::folder() + "/tiny/" + GetParam() + ".gguf"; }

  Logits run(EngineOptions options, uint32_t rows = 8) {
    if (options.path.empty()) options.path = path();
    options.default_context = ids_.size();
    options.logits_rows = rows;
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    if (!engine.ok()) return {};
    streamed_ = engine.value()->plan().placement.streams();
    cached_ = engine.value()->plan().placement.expert_cache > 0;
    return golden::all_logits(*engine.value(), ids_);
  }

  std::vector<TokenId> ids_ = {1, 17, 300, 5, 9, 250, 33, 2, 2, 111, 87, 319, 0, 45, 46, 47, 200, 12, 90, 77, 3};
  bool streamed_ = false, cached_ = false;  // by the last run
};

TEST_P(Equivalence, ThreadsIsasAndBatches) {
  Logits reference = run({.threads = 1, .isa = Isa::scalar});
  ASSERT_EQ(reference.size(), ids_.size());
  for (Isa isa : isas()) {
    for (int threads : {1, 2, 3}) {
      for (uint32_t rows : {1u, 4u, 16u}) {
        EXPECT_TRUE(same_bytes(reference, run({.threads = threads, .isa = isa}, rows)))
            << name_of(isa) << ", " << threads << " threads, " << rows << " tokens per pass";
      }
    }
  }
}

TEST_P(Equivalence, ExactNumericsToo) {
  Logits reference = run({.threads = 1, .isa = Isa::scalar, .numerics = Numerics::exact});
  for (Isa isa : isas()) {
    EXPECT_TRUE(same_bytes(reference, run({.threads = 2, .isa = isa, .numerics = Numerics::exact}, 3))) << name_of(isa);
  }
}

TEST_P(Equivalence, EveryCacheType) {
  Logits f16 = run({.threads = 1, .isa = Isa::scalar, .kv_type = KvType::f16});
  for (KvType type : {KvType::f16, KvType::bf16, KvType::q8_0, KvType::f32}) {
    Logits reference = run({.threads = 1, .isa = Isa::scalar, .kv_type = type});
    EXPECT_EQ(same_bytes(reference, f16), type == KvType::f16) << name_of(type);
    for (Isa isa : isas()) {
      for (int threads : {1, 3}) {
        for (uint32_t rows : {1u, 7u, 16u}) {
          EXPECT_TRUE(same_bytes(reference, run({.threads = threads, .isa = isa, .kv_type = type}, rows)))
              << name_of(type) << ", " << name_of(isa) << ", " << threads << " threads, " << rows << " tokens per pass";
        }
      }
    }
  }
}

// Long enough that a token's chunks are shared out among the workers.
TEST_P(Equivalence, ManyChunks) {
  ids_.clear();
  for (int i = 0; i < 600; ++i) ids_.push_back((i * 37 + 11) % 300);
  Logits reference = run({.threads = 1}, 16);
  for (int threads : {2, 3}) {
    for (uint32_t rows : {1u, 3u, 16u}) {
      EXPECT_TRUE(same_bytes(reference, run({.threads = threads}, rows))) << threads << " threads, " << rows;
    }
  }
}

TEST_P(Equivalence, PinsAndIoEngines) {
  Logits reference = run({.threads = 2});
  EXPECT_FALSE(streamed_);
  for (uint64_t pinned : {uint64_t{0}, 64 * kKiB, 200 * kKiB}) {
    for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
      for (uint32_t rows : {1u, 8u}) {
        EXPECT_TRUE(same_bytes(reference, run({.threads = 2, .io = io, .most_pinned = pinned}, rows)))
            << name_of(io) << ", " << pinned << " bytes pinned, " << rows << " tokens per pass";
        EXPECT_TRUE(streamed_);
      }
    }
  }
}

// Plans do not depend on what somebody probed on this machine.
class NoProfile {
 public:
  NoProfile() {
    if (const char* folder = std::getenv("XDG_CACHE_HOME")) before_ = folder;
    ::setenv("XDG_CACHE_HOME", (testing::TempDir() + "/no-profile").c_str(), 1);
  }
  ~NoProfile() { before_ ? ::setenv("XDG_CACHE_HOME", before_->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME"); }
  NoProfile(const NoProfile&) = delete;
  NoProfile& operator=(const NoProfile&) = delete;

 private:
  std::optional<std::string> before_;
};

// Of models with experts: all that every pass needs is pinned, and a part of the experts has room for a cache.
TEST_P(Equivalence, CachesOfExperts) {
  const NoProfile none;
  auto whole = Engine::plan_only({.path = path(), .default_context = ids_.size(), .need_tokenizer = false});
  ASSERT_TRUE(whole.ok());
  const Program& program = whole.value()->plan().program;
  if (program.expert_groups.empty()) return;
  uint64_t experts = 0;
  for (const Block& block : program.blocks) experts += block.on_demand ? block.memory_bytes : 0;
  const Logits reference = run({.threads = 2});
  bool cached = false;
  for (uint64_t eighths = 1; eighths < 8; ++eighths) {
    const uint64_t pinned = program.memory_bytes() - experts + experts * eighths / 8;
    for (uint32_t rows : {1u, 8u}) {
      EXPECT_TRUE(same_bytes(reference, run({.threads = 2, .most_pinned = pinned}, rows))) << eighths << ", " << rows;
      cached = cached || cached_;
    }
  }
  // Where a token uses more than a third of the experts, pinning some is better.
  const ExpertGroup& group = program.expert_groups.front();
  EXPECT_TRUE(cached || group.experts < 3 * group.used)
      << "no plan had a cache of " << group.experts << " experts, " << group.used << " used";
}

TEST_P(Equivalence, RulesOfPinning) {
  Logits reference = run({.threads = 2});
  for (PinRule rule : {PinRule::leading, PinRule::none, PinRule::lru}) {
    EXPECT_TRUE(same_bytes(reference, run({.threads = 2, .most_pinned = 64 * kKiB, .pins = rule})))
        << static_cast<int>(rule);
    EXPECT_TRUE(streamed_);
  }
}

// Panels in a file: experts are matrices of a stack there, too.
TEST_P(Equivalence, Packs) {
  const std::string pack = testing::TempDir() + "/equivalence-" + GetParam() + ".ridge";
  Gguf source = std::move(Gguf::open(path()).value());
  ThreadPool pool({.threads = 2, .cpus = {}});
  ASSERT_TRUE(write_ridge_pack(source, pack, {.pool = &pool, .pack = nullptr, .as_panels = {}}).ok());
  Logits reference = run({.threads = 2});
  EngineOptions options{.threads = 2};
  options.path = pack;
  for (std::optional<uint64_t> pinned : {std::optional<uint64_t>(), std::optional<uint64_t>(0)}) {
    options.most_pinned = pinned;
    EXPECT_TRUE(same_bytes(reference, run(options)));
  }
  std::remove(pack.c_str());
}

// Going back and on again must give what a fresh engine gives: sliding layers keep rings that later tokens overwrite.
TEST(Rewind, EqualsAFreshStart) {
  std::string path = golden::folder() + "/tiny/gemma3.gguf";
  RIDGE_SKIP_WITHOUT(path, "needs ../shared");
  auto open = [&] {
    auto engine = Engine::open({.path = path, .context = 200, .threads = 1, .logits_rows = 4, .need_tokenizer = false});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  };
  auto engine = open();
  std::vector<TokenId> line;  // what the timeline should be
  uint32_t state = 1;
  auto random = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  int kept = 0;
  for (int round = 0; round < 40; ++round) {
    size_t back = std::min<size_t>(line.size(), random(12));
    if (engine->rewind(line.size() - back)) {
      line.resize(line.size() - back);
      ++kept;
    } else {
      line.clear();
    }
    std::vector<TokenId> more(1 + random(9));
    for (TokenId& id : more) id = static_cast<TokenId>(random(320));
    if (line.size() + more.size() > 200) break;
    line.insert(line.end(), more.begin(), more.end());
    Logits got = golden::all_logits(*engine, more);
    auto fresh = open();
    Logits want = golden::all_logits(*fresh, line);
    want.erase(want.begin(), want.end() - static_cast<ptrdiff_t>(more.size()));
    ASSERT_TRUE(same_bytes(want, got)) << "round " << round << ", " << line.size() << " tokens";
  }
  EXPECT_GT(kept, 5);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Equivalence,
                         testing::Values("type-Q4_0", "type-Q4_1", "type-Q6_K", "type-Q2_K", "type-F16", "gemma3",
                                         "phi3", "llama-experts", "olmoe", "qwen3moe", "gpt-oss", "plm",
                                         "deepseek2-absorbed", "deepseek2-joint"),
                         [](const auto& c) {
                           std::string name = c.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ridge
