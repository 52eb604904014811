// SmolLM2-135M and Gemma-3-270M against the exact F32 reference: logits, greedy text, likelihood and divergence.
#include <algorithm>
#include <ostream>

#include "analyze/quality.h"
#include "tests/golden.h"

namespace ridge {
namespace {

struct RealModel {
  const char* name;  // in golden/real_models.json
  const char* file;  // in the cache of `ridge models`
};

void PrintTo(const RealModel& m, std::ostream* out) { *out << m.name; }

class RealModelTest : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    RIDGE_SKIP_WITHOUT(golden::folder() + "/real_models.json", "needs ../shared");
    RIDGE_SKIP_WITHOUT(path(), "needs the demo models (scripts/test fetches them)");
    golden_ = golden::load("real_models.json");
  }
  std::string path() const { return golden::demo_model(GetParam().file); }
  const nlohmann::json& prompts() const { return golden_[GetParam().name]; }
  const nlohmann::json& text() const { return golden_[std::string(GetParam().name) + "_nll"]; }

  std::unique_ptr<Engine> open(Numerics numerics, uint64_t context) {
    auto engine = Engine::open({.path = path(), .context = context, .numerics = numerics, .logits_rows = 16});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  // The text of the likelihood figures, as tokens.
  std::vector<TokenId> licence(const Engine& engine) const {
    std::ifstream in("/usr/share/common-licenses/GPL-3");
    std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    auto ids = engine.tokenizer()->encode(all, {.add_special = false, .parse_special = false});
    ids.resize(std::min<size_t>(ids.size(), 2048));
    return ids;
  }
  nlohmann::json golden_;
};

TEST_P(RealModelTest, ExactLogitsEqualTheReference) {
  auto engine = open(Numerics::exact, 64);
  for (const auto& prompt : prompts()) {
    auto ids = prompt["tokens"].get<std::vector<TokenId>>();
    engine->rewind(0);
    auto rows = golden::all_logits(*engine, ids);
    for (const auto& p : prompt["positions"]) {
      const auto& row = rows[p["position"].get<size_t>()];
      auto top = p["top_ids"].get<std::vector<size_t>>();
      auto want = p["top_logits"].get<std::vector<float>>();
      for (size_t i = 0; i < top.size(); ++i) EXPECT_NEAR(row[top[i]], want[i], 2e-3 * p["std"].get<double>());
      EXPECT_EQ(static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin()), top[0]);
    }
  }
}

TEST_P(RealModelTest, GreedyTextFollowsTheReferenceWhereItIsCertain) {
  constexpr double kCertain = 0.3;
  auto engine = open(Numerics::exact, 128);
  for (const auto& prompt : prompts()) {
    auto ids = prompt["tokens"].get<std::vector<TokenId>>();
    auto want = prompt["greedy"].get<std::vector<TokenId>>();
    auto margin = prompt["greedy_margin"].get<std::vector<double>>();
    engine->rewind(0);
    auto logits = engine->evaluate(ids);
    ASSERT_TRUE(logits.ok());
    for (size_t i = 0; i < want.size() && margin[i] >= kCertain; ++i) {
      auto row = logits.value();
      TokenId next = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
      ASSERT_EQ(next, want[i]) << prompt["text"] << " at " << i;
      logits = engine->decode(next);
      ASSERT_TRUE(logits.ok());
    }
  }
}

TEST_P(RealModelTest, LikelihoodIsAsGoodAsTheFieldsBest) {
  auto engine = open(Numerics::standard, 512);
  auto l = likelihood(*engine, licence(*engine), {.window = 512});
  ASSERT_TRUE(l.ok()) << l.error().message;
  double exact = text()["nll_exact"], llama = text()["nll_llama_cpp"];
  EXPECT_LE(std::abs(l.value().nll - exact), 1.5 * std::abs(llama - exact) + 0.001);
}

TEST_P(RealModelTest, DivergenceFromExactIsAsSmallAsTheFieldsBest) {
  auto engine = open(Numerics::standard, 512);
  auto exact = open(Numerics::exact, 512);
  auto d = divergence(*exact, *engine, licence(*engine), {.window = 512, .most_windows = 2});
  ASSERT_TRUE(d.ok()) << d.error().message;
  EXPECT_EQ(d.value().positions, 1024u);
  EXPECT_LE(d.value().kl, 1.15 * text()["llama_cpp_pooled_kl"].get<double>());
}

INSTANTIATE_TEST_SUITE_P(Real, RealModelTest,
                         testing::Values(RealModel{"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
                                         RealModel{"gemma3", "gemma-3-270m-Q4_K_M.gguf"}),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace ridge
