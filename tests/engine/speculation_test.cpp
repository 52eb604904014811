// Drafts change nothing but speed: what is generated with good, bad and mixed guesses is what is generated without.
#include "engine/speculation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/units.h"
#include "engine/draft_model.h"
#include "engine/draft_ngram.h"
#include "tests/golden.h"

namespace ridge {
namespace {

constexpr uint64_t kContext = 200;

// Knows what will be generated, and says it or something else.
class Oracle final : public Drafter {
 public:
  enum class Mood : uint8_t { right, wrong, mixed };
  Oracle(std::vector<TokenId> truth, Mood mood) : truth_(std::move(truth)), mood_(mood) { priors_.fill(0.5f); }
  std::string description() const override { return "an oracle"; }
  const std::array<float, kGuessKinds>& priors() const override { return priors_; }

  // Guesses the policy would not check as well: whoever calls must cut them.
  Result<void> draft(const DraftRequest& request, DraftPolicy&, std::vector<Guess>& out) override {
    for (size_t i = 0; i < request.most; ++i) {
      const size_t at = request.line.size() + i;
      const TokenId truth = at < truth_.size() ? truth_[at] : 7;
      state_ = state_ * 1664525u + 1013904223u;
      const bool right = mood_ == Mood::right || (mood_ == Mood::mixed && (state_ >> 16) % 4 != 0);
      out.push_back({.id = right ? truth : truth ^ 1, .kind = static_cast<uint8_t>(i % kGuessKinds)});
    }
    return {};
  }

 private:
  std::vector<TokenId> truth_;
  Mood mood_;
  std::array<float, kGuessKinds> priors_;
  uint32_t state_ = 1;
};

struct Outcome {
  std::vector<TokenId> all;  // prompt and generated
  std::vector<TokenId> history;
  EngineTimes times;
};

class Speculation : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(path(GetParam()), "needs ../shared"); }
  static std::string path(const std::string& name) { return golden::folder() + "/tiny/" + name + ".gguf"; }

  static std::unique_ptr<Engine> open(EngineOptions options) {
    if (options.path.empty()) options.path = path(GetParam());
    options.context = kContext;
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(engine).value() : nullptr;
  }

  using MakeDrafter = std::function<std::unique_ptr<Drafter>(Engine&)>;
  // What generate() does, on ids alone: these models have no tokenizer.
  Outcome run(const EngineOptions& options, const SamplerOptions& sampling, const MakeDrafter& make, uint64_t most) {
    auto engine = open(options);
    if (!engine) return {};
    Sampler sampler(sampling, engine->model().config().vocabulary);
    std::unique_ptr<Speculator> speculator;
    if (make) speculator = std::make_unique<Speculator>(*engine, make(*engine), sampler, length_);
    Outcome out{.all = prompt_, .history = {}, .times = {}};
    auto logits = engine->evaluate(prompt_);
    for (TokenId id : prompt_) sampler.accept(id);
    EXPECT_TRUE(!speculator || speculator->begin(nullptr).ok());
    for (uint64_t left = most; logits.ok() && left > 0;) {
      TokenId next = sampler.sample(logits.value());
      sampler.accept(next);
      out.all.push_back(next);
      uint64_t position = speculator ? speculator->position() : engine->position();
      EXPECT_EQ(position + 1, out.all.size());
      if (--left == 0 || position >= engine->context()) break;
      logits = speculator ? speculator->advance(next, left) : engine->decode(next);
    }
    EXPECT_TRUE(logits.ok()) << logits.error().message;
    if (speculator) speculator->finish();
    out.history.assign(engine->history().begin(), engine->history().end());
    out.times = engine->times();
    return out;
  }

  static void expect_same(const Outcome& want, const Outcome& got, const std::string& what) {
    EXPECT_EQ(want.all, got.all) << what;
    EXPECT_EQ(want.history, got.history) << what;
    EXPECT_EQ(want.times.decode_tokens, got.times.decode_tokens) << what;
  }

  DraftLength length_ = DraftLength::adaptive;
  std::vector<TokenId> prompt_ = {1, 17, 100, 5, 9, 50, 33, 17, 100, 5, 9};
  const std::vector<SamplerOptions> samplings_ = {
      {.temperature = 0},
      {.temperature = 0.8f, .seed = 1},
      {.temperature = 1.5f, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 2},
      {.temperature = 0.7f, .repeat_penalty = 1.3f, .frequency_penalty = 0.2f, .logit_bias = {{5, 2.0f}}, .seed = 3}};
};

// Past the window and its ring several times, in every kind of plan, with all guesses checked.
TEST_P(Speculation, GivesWhatIsGeneratedWithout) {
  constexpr uint64_t kTokens = 120;
  std::vector<EngineOptions> plans(4);
  // Prompts two tokens at a time: rings must then be made for drafts.
  plans[0] = {.threads = 1, .logits_rows = 2};
  plans[1] = {.threads = 2, .kv_type = KvType::q8_0, .most_pinned = 0, .logits_rows = 2};
  plans[2] = {.threads = 2, .kv_type = KvType::bf16, .io = IoKind::threads, .most_pinned = 200 * kKiB};
  plans[3] = {.threads = 1, .numerics = Numerics::exact};
  for (size_t p = 0; p < plans.size(); ++p) {
    EngineOptions options = plans[p];
    const Outcome want = run(options, samplings_[p], {}, kTokens);
    ASSERT_EQ(want.all.size(), prompt_.size() + kTokens);
    EXPECT_EQ(want.history.size(), prompt_.size() + kTokens - 1);
    for (auto mood : {Oracle::Mood::right, Oracle::Mood::wrong, Oracle::Mood::mixed}) {
      options.verify_tokens = mood == Oracle::Mood::mixed ? 6 : 17;
      length_ = DraftLength::all;
      auto oracle = [&](Engine&) { return std::make_unique<Oracle>(want.all, mood); };
      const Outcome got = run(options, samplings_[p], oracle, kTokens);
      const std::string what = "plan " + std::to_string(p) + ", mood " + std::to_string(static_cast<int>(mood));
      expect_same(want, got, what);
      const uint64_t right = got.times.drafted_tokens - got.times.wrong_tokens;
      EXPECT_EQ(got.times.decode_passes + right, kTokens - 1) << what;
      if (mood == Oracle::Mood::right) {
        EXPECT_EQ(got.times.decode_passes, (kTokens - 1 + 16) / 17) << what;
        EXPECT_EQ(got.times.wrong_tokens, 0u) << what;
      }
      if (mood == Oracle::Mood::wrong) {
        EXPECT_EQ(right, 0u) << what;
        EXPECT_GT(got.times.drafted_tokens, 16u * 90) << what;
      }
      length_ = DraftLength::adaptive;
      expect_same(want, run(options, samplings_[p], oracle, kTokens), "adaptive, " + what);
    }
    options.verify_tokens = 9;
    auto ngrams = [](Engine&) { return std::make_unique<NgramDrafter>(3); };
    expect_same(want, run(options, samplings_[p], ngrams, kTokens), "n-grams, plan " + std::to_string(p));
  }
}

// A draft model that is the model itself samples with the same numbers: every guess that is checked is right.
TEST_P(Speculation, ADraftModelThatAgreesIsAlwaysRight) {
  constexpr uint64_t kTokens = 60;
  length_ = DraftLength::all;
  for (size_t s = 0; s < samplings_.size(); ++s) {
    const Outcome want = run({.threads = 2}, samplings_[s], {}, kTokens);
    EngineOptions options{.threads = 2, .verify_tokens = 5, .draft_path = path(GetParam())};
    const Outcome got = run(
        options, samplings_[s],
        [&](Engine& e) {
          return std::make_unique<ModelDrafter>(*e.draft(), e.model().config().vocabulary, samplings_[s]);
        },
        kTokens);
    expect_same(want, got, "sampling " + std::to_string(s));
    // Latent attention computes the drafter's prompt tokens in another form, so its logits may differ by rounding.
    EXPECT_LE(got.times.wrong_tokens, 2u);
    EXPECT_GT(got.times.drafted_tokens, 40u);
  }
}

// One that disagrees costs time only; some drafters have windows of their own to go back in.
TEST_P(Speculation, ADraftModelThatDisagreesChangesNothing) {
  constexpr uint64_t kTokens = 60;
  for (const char* small : {"llama", "gemma3"}) {
    for (size_t s : {0, 3}) {
      const Outcome want = run({.threads = 2}, samplings_[s], {}, kTokens);
      EngineOptions options{.threads = 2, .verify_tokens = 4, .draft_path = path(small)};
      const Outcome got = run(
          options, samplings_[s],
          [&](Engine& e) {
            return std::make_unique<ModelDrafter>(*e.draft(), e.model().config().vocabulary, samplings_[s]);
          },
          kTokens);
      expect_same(want, got, std::string(small) + ", sampling " + std::to_string(s));
    }
  }
}

// Wherever generation ends, in the middle of drafts too, the timeline is the one without.
TEST_P(Speculation, EndsWhereItWouldWithout) {
  const SamplerOptions sampling{.temperature = 1.2f, .top_k = 0, .seed = 11};
  length_ = DraftLength::all;
  const Outcome whole = run({.threads = 1}, sampling, {}, 1000);  // until the context is full
  EXPECT_EQ(whole.all.size(), kContext + 1);
  for (uint64_t most : {1, 2, 3, 9, 10, 1000}) {
    const Outcome want = run({.threads = 1}, sampling, {}, most);
    for (uint32_t verify : {2u, 9u}) {
      const Outcome got = run(
          {.threads = 1, .verify_tokens = verify}, sampling,
          [&](Engine&) { return std::make_unique<Oracle>(whole.all, Oracle::Mood::right); }, most);
      expect_same(want, got, std::to_string(most) + " tokens, " + std::to_string(verify) + " per pass");
    }
  }
}

// The rows of one pass are the logits of one token after the other, also after drafts were taken back.
TEST_P(Speculation, RowsAreThoseOfSingleTokens) {
  for (KvType type : {KvType::f16, KvType::q8_0}) {
    auto one = open({.threads = 1, .kv_type = type});
    auto many = open({.threads = 2, .kv_type = type, .logits_rows = 2, .verify_tokens = 24});
    ASSERT_TRUE(one && many);
    ASSERT_TRUE(one->evaluate(prompt_).ok() && many->evaluate(prompt_).ok());
    uint32_t state = 5;
    auto random = [&](uint32_t below) {
      return (state = state * 1664525u + 1013904223u) >> 8 > 0 ? (state >> 8) % below : 0;
    };
    while (one->position() + 24 <= kContext) {
      std::vector<TokenId> ids(1 + random(24));
      for (TokenId& id : ids) id = static_cast<TokenId>(random(300));
      const size_t keep = 1 + random(static_cast<uint32_t>(ids.size()));
      auto rows = many->decode(std::span<const TokenId>(ids));
      ASSERT_TRUE(rows.ok()) << rows.error().message;
      ASSERT_EQ(rows.value().rows, ids.size());
      for (size_t i = 0; i < keep; ++i) {
        auto row = one->decode(ids[i]);
        ASSERT_TRUE(row.ok());
        ASSERT_EQ(std::memcmp(row.value().data(), rows.value().row(i), row.value().size() * sizeof(float)), 0)
            << name_of(type) << ", position " << one->position() - 1 << ", row " << i << " of " << ids.size();
      }
      many->take_back(ids.size() - keep);
      ASSERT_EQ(many->position(), one->position());
    }
  }
}

TEST_P(Speculation, SavedStatesHoldNoDrafts) {
  const std::string name = testing::TempDir() + "/drafts-" + GetParam() + ".state";
  auto one = open({.threads = 1, .states = true}), many = open({.threads = 1, .verify_tokens = 8, .states = true});
  ASSERT_TRUE(one && many);
  const std::vector<TokenId> ids = {4, 8, 15, 16, 23, 42, 99};
  ASSERT_TRUE(one->evaluate(prompt_).ok() && many->evaluate(prompt_).ok());
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(many->decode(std::span<const TokenId>(ids)).ok());
    many->take_back(5);
    ASSERT_TRUE(one->decode(ids[0]).ok() && one->decode(ids[1]).ok());
  }
  EXPECT_EQ(one->reusable(), many->reusable());
  ASSERT_TRUE(many->save_state(name).ok());
  auto other = open({.threads = 1, .states = true});
  ASSERT_TRUE(other->load_state(name).ok());
  ASSERT_TRUE(std::ranges::equal(other->history(), one->history().first(one->reusable())));
  if (!other->rewind(other->position())) GTEST_SKIP() << "needs a ring as large as the one that was saved";
  ASSERT_TRUE(one->rewind(one->reusable()));
  auto want = one->evaluate(ids), got = other->evaluate(ids);
  ASSERT_TRUE(want.ok() && got.ok());
  EXPECT_TRUE(std::ranges::equal(want.value(), got.value()));
  std::remove(name.c_str());
}

INSTANTIATE_TEST_SUITE_P(Tiny, Speculation,
                         testing::Values("llama", "gemma3", "qwen3moe", "deepseek2-absorbed", "deepseek2-joint", "plm",
                                         "gpt-oss"),
                         [](const auto& c) {
                           std::string name = c.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// What the draft model takes stands in the account, and the smallest budget with it is larger by that.
TEST(DraftModel, IsPartOfTheAccount) {
  const std::string path = golden::folder() + "/tiny/llama.gguf";
  RIDGE_SKIP_WITHOUT(path, "needs ../shared");
  auto total = [&](const EngineOptions& options, std::string_view part) {
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    uint64_t sum = 0;
    for (const AccountItem& item : engine.value()->plan().account.items()) {
      if (item.name.find(part) != std::string::npos) sum += item.bytes;
    }
    return sum;
  };
  EngineOptions options{.path = path, .context = 64, .threads = 1, .verify_tokens = 33, .need_tokenizer = false};
  EXPECT_GT(total(options, "checking 32 drafts"), 32 * 300 * sizeof(float));
  EXPECT_EQ(total(options, "draft model"), 0u);
  options.draft_path = path;
  auto weights = Model::open(path);
  ASSERT_TRUE(weights.ok());
  EXPECT_GT(total(options, "draft model"), weights.value()->program({}, {}).memory_bytes());
  options.memory = 1 * kMiB;
  auto refused = Engine::open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::does_not_fit);
  EXPECT_NE(refused.error().message.find("draft model: pinned weights"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace ridge
