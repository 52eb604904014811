// Saved states: what is read back is what was written, in rings of other sizes too, and no damaged or foreign file is
// taken for a good one.
#include "engine/state_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/golden.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

// Two layers, one with a sliding window, small enough that every byte of a file can be tried.
const std::vector<KvLayer> kLayers = {{.kv_heads = 2, .key_dim = 3, .value_dim = 5},
                                      {.kv_heads = 1, .key_dim = 4, .value_dim = 2, .window = 20}};

struct Session {
  KvCache cache;
  std::vector<TokenId> history;
  uint64_t oldest = 0;

  Session(KvType type, uint64_t context, uint32_t batch)
      : cache(std::move(KvCache::create(kLayers, {.context = context, .batch = batch, .type = type})).value()) {}

  CacheView view() {
    return {.cache = cache, .layers = kLayers, .written = history.size(), .oldest = oldest, .vocabulary = 1000};
  }

  static std::vector<float> numbers(uint64_t position, uint32_t layer, uint32_t head, size_t n) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>((position * 31 + layer * 7 + head * 3 + i * 5) % 97) / 16.0f - 3.0f;
    }
    return x;
  }

  void grow(uint64_t positions, const Kernels& k) {
    size_t kind = static_cast<size_t>(cache.type());
    for (uint64_t p = history.size(); p < positions; ++p) {
      history.push_back(static_cast<TokenId>(p * 13 % 1000));
      for (uint32_t l = 0; l < kLayers.size(); ++l) {
        for (uint32_t h = 0; h < kLayers[l].kv_heads; ++h) {
          uint64_t slot = p % cache.capacity(l);
          auto key = numbers(p, l, h, kLayers[l].key_dim), value = numbers(p, l, h, kLayers[l].value_dim);
          k.store_key[kind](key.data(), key.size(), cache.key(l, h), slot);
          k.store_value[kind](value.data(), value.size(), cache.value(l, h), slot);
        }
      }
    }
  }

  // What attention makes of the last tokens: every key and value that they see takes part.
  std::vector<float> look(uint32_t layer, const Kernels& k) {
    const KvLayer& l = kLayers[layer];
    std::vector<float> q(l.key_dim, 0.25f), out(l.kv_heads * l.value_dim);
    std::vector<float> scratch(attention_scratch_floats(1, l.key_dim));
    for (uint32_t h = 0; h < l.kv_heads; ++h) {
      AttentionArgs a{};
      a.q = q.data();
      a.tokens = a.group = 1;
      a.q_stride = a.q_token_stride = a.key_dim = l.key_dim;
      a.value_dim = a.out_stride = l.value_dim;
      a.kv_type = cache.type();
      a.k = cache.key(layer, h);
      a.v = cache.value(layer, h);
      a.capacity = cache.capacity(layer);
      a.end = history.size();
      a.window = l.window;
      a.scale = 0.1f;
      a.out = out.data() + h * l.value_dim;
      a.scratch = scratch.data();
      k.attention(a);
    }
    return out;
  }
};

StateIdentity identity_of(KvType type) { return {.model = 0x1234567890abcdef, .kv_type = type}; }

class StateFile : public ::testing::Test {
 protected:
  const Kernels& kernels() const { return choice_.kernels; }
  std::string path() const { return folder_ / "s.state"; }

  std::vector<uint8_t> saved(Session& s) {
    auto done = write_state(path(), identity_of(s.cache.type()), s.view(), s.history);
    EXPECT_TRUE(done.ok()) << done.error().message;
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static Result<LoadedState> load(std::span<const uint8_t> bytes, Session& into, const StateIdentity& identity) {
    SpanStream in(bytes, "s.state");
    return read_state(in, identity, into.view());
  }

  KernelChoice choice_ = choose_kernels({}).value();
  test::TempFolder folder_;
};

TEST_F(StateFile, GivesBackWhatWasSaved) {
  for (KvType type : {KvType::f16, KvType::f32, KvType::bf16, KvType::q8_0}) {
    for (uint64_t positions : {1u, 15u, 16u, 17u, 40u, 63u, 64u, 100u}) {
      for (uint32_t batch : {1u, 16u, 40u}) {
        for (uint32_t other : {1u, 16u, 40u}) {
          Session from(type, 100, batch), into(type, 128, other);
          from.grow(positions, kernels());
          auto state = load(saved(from), into, identity_of(type));
          ASSERT_TRUE(state.ok()) << state.error().message;
          EXPECT_EQ(state.value().ids, from.history);
          into.history = state.value().ids;
          EXPECT_EQ(from.look(0, kernels()), into.look(0, kernels()));
          uint64_t window = kLayers[1].window;
          bool enough = state.value().oldest + window <= positions || state.value().oldest == 0;
          SCOPED_TRACE(std::to_string(positions) + ", batches of " + std::to_string(batch) + " and " +
                       std::to_string(other));
          EXPECT_TRUE(enough || (other < 16 && other != batch));
          EXPECT_TRUE(!enough || from.look(1, kernels()) == into.look(1, kernels()));
        }
      }
    }
  }
}

TEST_F(StateFile, RefusesWhatIsForeign) {
  Session s(KvType::f16, 64, 16);
  s.grow(40, kernels());
  std::vector<uint8_t> bytes = saved(s);
  auto refused = [&](const StateIdentity& identity, uint64_t context, const char* part) {
    Session into(identity.kv_type, context, 16);
    auto r = load(bytes, into, identity);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, ErrorCode::bad_input);
    EXPECT_NE(r.error().message.find(part), std::string::npos) << r.error().message;
  };
  StateIdentity other = identity_of(KvType::f16);
  other.model ^= 1;
  refused(other, 64, "another model");
  refused(identity_of(KvType::q8_0), 64, "--kv-type f16");
  other = identity_of(KvType::f16);
  other.numerics = Numerics::exact;
  refused(other, 64, "--numerics exact");
  other.numerics = Numerics::fast;
  refused(other, 64, "--numerics fast");
  refused(identity_of(KvType::f16), 32, "--context");
}

// Every truncation and every flipped bit is noticed; none is read past.
TEST_F(StateFile, SurvivesHostileFiles) {
  Session s(KvType::q8_0, 64, 16);
  s.grow(33, kernels());
  const std::vector<uint8_t> good = saved(s);
  Session into(KvType::q8_0, 64, 16);
  ASSERT_TRUE(load(good, into, identity_of(KvType::q8_0)).ok());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    auto r = load(std::span(good).first(cut), into, identity_of(KvType::q8_0));
    ASSERT_FALSE(r.ok()) << cut;
    EXPECT_EQ(r.error().code, ErrorCode::bad_input) << cut;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      std::vector<uint8_t> bad = good;
      bad[at] = static_cast<uint8_t>(bad[at] ^ (1 << bit));
      auto r = load(bad, into, identity_of(KvType::q8_0));
      ASSERT_FALSE(r.ok()) << at;
      EXPECT_EQ(r.error().code, ErrorCode::bad_input) << at;
    }
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_FALSE(load(longer, into, identity_of(KvType::q8_0)).ok());
}

// Headers that are whole but lie: a right checksum must not be needed to be safe.
TEST_F(StateFile, SurvivesHostileTables) {
  Session s(KvType::f16, 64, 16);
  s.grow(33, kernels());
  const std::vector<uint8_t> good = saved(s);
  constexpr size_t kPositions = 40, kRecords = 64;
  for (size_t field = kPositions; field < kRecords + 2 * 32; field += 4) {
    for (uint32_t value : {0u, 1u, 15u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      std::vector<uint8_t> bad = good;
      if (std::memcmp(bad.data() + field, &value, sizeof value) == 0) continue;
      std::memcpy(bad.data() + field, &value, sizeof value);
      Session into(KvType::f16, 64, 16);
      EXPECT_FALSE(load(bad, into, identity_of(KvType::f16)).ok()) << field << " " << value;
    }
  }
}

using Logits = std::vector<std::vector<float>>;

// A run that loads a state and goes on equals a run that read everything.
TEST(EngineState, ContinuesWithTheSameBytes) {
  test::TempFolder folder;
  for (const char* name : {"type-Q4_0", "gemma3", "phi3"}) {
    std::string model = golden::folder() + "/tiny/" + name + ".gguf";
    RIDGE_SKIP_WITHOUT(model, "needs ../shared");
    std::vector<TokenId> ids;
    for (int i = 0; i < 60; ++i) ids.push_back((i * 37 + 5) % 300);
    for (std::optional<KvType> type : {std::optional<KvType>{}, std::optional(KvType::q8_0)}) {
      auto open = [&](uint32_t rows) {
        auto engine = Engine::open({.path = model,
                                    .context = 100,
                                    .threads = 1,
                                    .kv_type = type,
                                    .logits_rows = rows,
                                    .need_tokenizer = false,
                                    .states = true});
        EXPECT_TRUE(engine.ok()) << engine.error().message;
        return std::move(engine).value();
      };
      std::string file = folder / (std::string(name) + ".state");
      auto whole = open(8);
      Logits want = golden::all_logits(*whole, ids);
      auto first = open(8);
      ASSERT_TRUE(first->evaluate(std::span(ids).first(45)).ok());
      ASSERT_TRUE(first->save_state(file).ok());
      for (uint32_t rows : {8u, 1u}) {
        auto second = open(rows);
        auto loaded = second->load_state(file);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        ASSERT_EQ(second->position(), 45u);
        uint64_t begin = second->rewind(40) ? 40 : 0;
        EXPECT_EQ(second->position(), begin);
        Logits got = golden::all_logits(*second, std::span(ids).subspan(begin));
        for (size_t t = 0; t < got.size(); ++t) EXPECT_EQ(got[t], want[t + begin]) << name << " " << t;
      }
    }
  }
}

// Latent attention computes generated tokens in another form: a prompt that repeats them must not reuse that form.
TEST(EngineState, OnlyPromptTokensAreReusedWhereTheirFormMatters) {
  test::TempFolder folder;
  for (const bool latent : {true, false}) {
    std::string model = golden::folder() + (latent ? "/tiny/plm.gguf" : "/tiny/type-Q4_0.gguf");
    RIDGE_SKIP_WITHOUT(model, "needs ../shared");
    auto open = [&] {
      auto engine =
          Engine::open({.path = model, .context = 100, .threads = 1, .need_tokenizer = false, .states = true});
      EXPECT_TRUE(engine.ok()) << engine.error().message;
      return std::move(engine).value();
    };
    auto engine = open();
    const std::vector<TokenId> prompt = {5, 42, 79, 116};
    ASSERT_TRUE(engine->evaluate(prompt).ok());
    EXPECT_EQ(engine->reusable(), 4u);
    ASSERT_TRUE(engine->decode(153).ok());
    ASSERT_TRUE(engine->evaluate(prompt).ok());
    EXPECT_EQ(engine->position(), 9u);
    EXPECT_EQ(engine->reusable(), latent ? 4u : 9u);
    std::string file = folder / "a.state";
    ASSERT_TRUE(engine->save_state(file).ok());
    auto second = open();
    ASSERT_TRUE(second->load_state(file).ok());
    EXPECT_EQ(second->position(), latent ? 4u : 9u);
    EXPECT_EQ(second->reusable(), second->position());
    ASSERT_TRUE(engine->rewind(2));
    EXPECT_EQ(engine->reusable(), 2u);
  }
}

}  // namespace
}  // namespace ridge
