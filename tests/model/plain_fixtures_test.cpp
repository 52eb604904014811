// Tiny random models that make_plain_fixtures.py wrote: smollm3, granite and minicpm against logits of llama.cpp,
// reglu-llama and arcee against that script's own.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "tests/golden.h"

namespace ridge {
namespace {

const std::vector<TokenId> kTokens = {1, 17, 40, 5, 9, 33, 2, 2, 47, 20, 0, 45, 46, 12, 39, 3};

class PlainFixture : public testing::TestWithParam<const char*> {};

TEST_P(PlainFixture, ExactNumericsEqualTheReference) {
  std::string base = std::string(RIDGE_TEST_DATA) + "/models/" + GetParam();
  auto engine = Engine::open({.path = base + ".gguf",
                              .default_context = kTokens.size(),
                              .threads = 2,
                              .numerics = Numerics::exact,
                              .logits_rows = 8,
                              .need_tokenizer = false});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto rows = golden::all_logits(*engine.value(), kTokens);
  ASSERT_EQ(rows.size(), kTokens.size());
  size_t vocabulary = rows[0].size();
  std::vector<float> want(kTokens.size() * vocabulary);
  std::ifstream in(base + ".f32", std::ios::binary);
  in.read(reinterpret_cast<char*>(want.data()), static_cast<std::streamsize>(want.size() * sizeof(float)));
  ASSERT_TRUE(in.good());
  double mean = std::accumulate(want.begin(), want.end(), 0.0) / static_cast<double>(want.size()), variance = 0;
  for (float v : want) variance += (v - mean) * (v - mean) / static_cast<double>(want.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    for (size_t i = 0; i < vocabulary; ++i) {
      ASSERT_NEAR(rows[t][i], want[t * vocabulary + i], 2e-4 * std::sqrt(variance)) << "token " << t << ", logit " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PlainFixture,
                         testing::Values("smollm3", "granite", "minicpm", "reglu-llama", "arcee"), [](const auto& c) {
                           std::string name(c.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ridge
