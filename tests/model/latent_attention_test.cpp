// The two forms of latent attention: close to each other, and each the same whatever shares its pass.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/units.h"
#include "tests/golden.h"

namespace ridge {
namespace {

using Logits = std::vector<std::vector<float>>;

std::vector<TokenId> some_tokens(size_t n) {
  std::vector<TokenId> ids(n);
  uint32_t state = 1;
  for (TokenId& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<TokenId>((state >> 8) % 320);
  }
  return ids;
}

class LatentModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { RIDGE_SKIP_WITHOUT(path(), "needs ../shared"); }
  // Quantised models are our own (make_latent_fixtures.py), those with F32 weights the reference's.
  std::string path() const {
    std::string name = std::string(GetParam()) + ".gguf";
    return name.starts_with("latent-") ? std::string(RIDGE_TEST_DATA) + "/models/" + name
                                       : golden::folder() + "/tiny/" + name;
  }

  std::unique_ptr<Engine> open(EngineOptions options) {
    options.path = path();
    options.context = 400;  // more than a chunk of 256 positions
    options.need_tokenizer = false;
    auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }

  // The first `prompt` tokens as a prompt, the others as generated ones; logits of the last prompt token and of each
  // generated one.
  Logits decode(Engine& engine, std::span<const TokenId> ids, size_t prompt) {
    Logits rows;
    auto keep = [&](Result<std::span<float>> row) {
      EXPECT_TRUE(row.ok());
      if (row.ok()) rows.emplace_back(row.value().begin(), row.value().end());
    };
    keep(engine.evaluate(ids.first(prompt)));
    for (TokenId id : ids.subspan(prompt)) keep(engine.decode(id));
    return rows;
  }
};

double deviation(const Logits& a, const Logits& b) {
  double sum = 0, squares = 0, most = 0, n = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    for (size_t i = 0; i < a[t].size(); ++i) {
      sum += a[t][i], squares += static_cast<double>(a[t][i]) * a[t][i], ++n;
      most = std::max(most, std::abs(static_cast<double>(a[t][i]) - b[t][i]));
    }
  }
  return most / std::sqrt(squares / n - sum / n * (sum / n));
}

bool same_bytes(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
         });
}

TEST_P(LatentModel, AbsorbedFormEqualsTheExpandedOneButForRounding) {
  std::vector<TokenId> ids = some_tokens(300);
  auto engine = open({.threads = 2, .numerics = Numerics::exact, .logits_rows = 64});
  Logits expanded = golden::all_logits(*engine, ids);
  for (size_t prompt : {size_t{1}, size_t{250}, size_t{290}}) {
    engine->rewind(0);
    Logits absorbed = decode(*engine, ids, prompt);
    Logits want(expanded.begin() + static_cast<ptrdiff_t>(prompt) - 1, expanded.end());
    EXPECT_LE(deviation(want, absorbed), 2e-4) << "after a prompt of " << prompt;
    EXPECT_FALSE(same_bytes(want, absorbed)) << "decode() is meant to take the absorbed form";
  }
}

TEST_P(LatentModel, TheFormDoesNotDependOnThePass) {
  std::vector<TokenId> ids = some_tokens(300);
  auto reference = open({.threads = 1, .logits_rows = 128});
  Logits want = golden::all_logits(*reference, ids);
  for (uint32_t rows : {1u, 7u, 64u}) {
    auto engine = open({.threads = 3, .logits_rows = rows});
    EXPECT_TRUE(same_bytes(want, golden::all_logits(*engine, ids))) << rows << " prompt tokens per pass";
  }
}

TEST_P(LatentModel, ThreadsIsasAndBudgets) {
  std::vector<TokenId> ids = some_tokens(280);
  constexpr size_t kPrompt = 270;
  auto scalar = open({.threads = 1, .isa = Isa::scalar});
  Logits want = decode(*scalar, ids, kPrompt);
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
    if (!choose_kernels({.isa = isa}).ok()) continue;
    for (int threads : {1, 3}) {
      auto engine = open({.threads = threads, .isa = isa});
      EXPECT_TRUE(same_bytes(want, decode(*engine, ids, kPrompt))) << name_of(isa) << ", " << threads << " threads";
    }
  }
  for (uint64_t pinned : {uint64_t{0}, 40 * kKiB}) {
    auto engine = open({.threads = 2, .most_pinned = pinned});
    EXPECT_TRUE(engine->plan().placement.streams());
    EXPECT_TRUE(same_bytes(want, decode(*engine, ids, kPrompt))) << pinned << " bytes pinned";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, LatentModel,
                         testing::Values("plm", "deepseek2-absorbed", "deepseek2-joint", "latent-joint",
                                         "latent-absorbed"),
                         [](const auto& c) {
                           std::string name = c.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ridge
