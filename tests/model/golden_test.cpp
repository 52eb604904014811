// Tiny random models of every architecture and weight type against logits of an independent implementation.
#include <algorithm>
#include <ostream>

#include "analyze/quality.h"
#include "tests/golden.h"

namespace ridge {
namespace {

struct Case {
  const char* name;
  bool float_weights;  // default numerics differ from exact ones only by the F16 cache
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class TinyModel : public testing::TestWithParam<Case> {
 protected:
  // Largest difference over the standard deviation, and the mean KL from the reference, for one arithmetic.
  struct Outcome {
    double deviation = 0, kl = 0;
    int other_tops = 0;
  };

  Outcome compare(Numerics numerics) {
    nlohmann::json all = golden::load("tiny_logits.json");
    const nlohmann::json& model = all["models"][GetParam().name];
    auto ids = all["tokens"].get<std::vector<TokenId>>();
    llama_kl_ = model["llama_cpp_mean_kl"].get<double>();
    auto engine = Engine::open({.path = path(),
                                .default_context = ids.size(),
                                .threads = 2,
                                .numerics = numerics,
                                .logits_rows = 8,
                                .need_tokenizer = false});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    auto rows = golden::all_logits(*engine.value(), ids);
    EXPECT_EQ(rows.size(), ids.size());
    Outcome out;
    for (size_t t = 0; t < rows.size(); ++t) {
      auto want = model["logits"][std::to_string(t)].get<std::vector<float>>();
      EXPECT_EQ(want.size(), rows[t].size());
      for (size_t i = 0; i < want.size(); ++i) {
        double difference = std::abs(static_cast<double>(want[i]) - rows[t][i]) / model["std"].get<double>();
        out.deviation = std::max(out.deviation, difference);
      }
      out.kl += kl_divergence(want, rows[t]) / static_cast<double>(rows.size());
      out.other_tops += std::max_element(want.begin(), want.end()) - want.begin() !=
                        std::max_element(rows[t].begin(), rows[t].end()) - rows[t].begin();
    }
    return out;
  }

  std::string path() const { return golden::folder() + "/tiny/" + GetParam().name + ".gguf"; }
  double llama_kl_ = 0;
};

TEST_P(TinyModel, ExactNumericsEqualTheReference) {
  RIDGE_SKIP_WITHOUT(path(), "needs ../shared");
  Outcome out = compare(Numerics::exact);
  EXPECT_LE(out.deviation, 2e-4);
  EXPECT_EQ(out.other_tops, 0);
}

TEST_P(TinyModel, DefaultNumericsStayClose) {
  RIDGE_SKIP_WITHOUT(path(), "needs ../shared");
  Outcome out = compare(Numerics::standard);
  if (GetParam().float_weights) {
    EXPECT_LE(out.deviation, 1e-2);
  } else {
    EXPECT_LE(out.kl, 1.5 * llama_kl_);
  }
}

constexpr Case kCases[] = {
    {"llama", true},
    {"llama-ropefactors", true},
    {"qwen2", true},
    {"qwen3", true},
    {"gemma2", true},
    {"gemma3", true},
    {"gemma3-linear", true},
    {"phi3", true},
    {"phi3-longrope", true},
    {"llama-experts", true},
    {"olmoe", true},
    {"qwen3moe", true},
    {"gpt-oss", true},
    {"type-F32", true},
    {"type-F16", true},
    {"type-BF16", true},
    {"type-Q4_0", false},
    {"type-Q4_1", false},
    {"type-Q5_0", false},
    {"type-Q5_1", false},
    {"type-Q8_0", false},
    {"type-Q2_K", false},
    {"type-Q3_K", false},
    {"type-Q4_K", false},
    {"type-Q5_K", false},
    {"type-Q6_K", false},
    {"type-IQ4_NL", false},
    {"type-IQ4_XS", false},
    {"plm", true},
    {"deepseek2-absorbed", true},
    {"deepseek2-joint", true},
    {"deepseek2-groups", true},
    {"type-MXFP4", false},
};

INSTANTIATE_TEST_SUITE_P(Golden, TinyModel, testing::ValuesIn(kCases), [](const auto& c) {
  std::string name = c.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ridge
