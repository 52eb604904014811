// qwen2moe has no golden model beside the repository: a tiny one lies in tests/data, with logits of llama.cpp.
#include <algorithm>

#include "tests/golden.h"

namespace ridge {
namespace {

double deviation(const EngineOptions& wish) {
  const std::string folder = std::string(RIDGE_TEST_DATA) + "/qwen2moe";
  std::ifstream in(folder + "/logits.json");
  const nlohmann::json reference = nlohmann::json::parse(in);
  auto ids = reference["tokens"].get<std::vector<TokenId>>();
  EngineOptions options = wish;
  options.path = folder + "/tiny.gguf";
  options.default_context = ids.size();
  options.logits_rows = 8;
  options.need_tokenizer = false;
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return HUGE_VAL;
  auto rows = golden::all_logits(*engine.value(), ids);
  double most = 0;
  for (size_t t = 0; t < rows.size(); ++t) {
    auto want = reference["logits"][t].get<std::vector<float>>();
    EXPECT_EQ(want.size(), rows[t].size());
    for (size_t i = 0; i < want.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(want[i]) - static_cast<double>(rows[t][i])));
    }
  }
  constexpr double kDeviationOfTheLogits = 1.54;
  return most / kDeviationOfTheLogits;
}

TEST(Qwen2Moe, EqualsLlamaCpp) { EXPECT_LE(deviation({.threads = 2, .numerics = Numerics::exact}), 2e-4); }

// Experts of 12 rows: the matrices of a stack do not begin at panels of 16.
TEST(Qwen2Moe, StreamedToo) {
  EXPECT_LE(deviation({.threads = 2, .numerics = Numerics::exact, .most_pinned = 0}), 2e-4);
}

}  // namespace
}  // namespace ridge
