// The choice of experts against the definition in double precision, and its corners.
#include "model/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace ridge {
namespace {

struct Choice {
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};

Choice choose(const RouteCall& call, const std::vector<float>& logits, const std::vector<float>& bias = {}) {
  std::vector<float> scratch(2 * call.experts), experts(call.used), weights(call.used);
  choose_experts(call, logits.data(), bias.empty() ? nullptr : bias.data(), scratch.data(), experts.data(),
                 weights.data());
  Choice out;
  for (float e : experts) out.experts.push_back(static_cast<uint32_t>(e));
  out.weights = weights;
  return out;
}

std::vector<float> random_logits(uint32_t count, uint32_t seed) {
  std::vector<float> out;
  for (uint32_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    out.push_back(static_cast<float>(seed >> 8) / (1 << 22) - 2.0f);
  }
  return out;
}

Choice reference(const RouteCall& call, const std::vector<float>& logits, const std::vector<float>& bias) {
  std::vector<double> p(logits.begin(), logits.end());
  auto softmax = [](std::vector<double>& x) {
    double max = *std::max_element(x.begin(), x.end()), sum = 0;
    for (double& v : x) sum += v = std::exp(v - max);
    for (double& v : x) v /= sum;
  };
  if (call.gating == RouterGating::softmax) softmax(p);
  if (call.gating == RouterGating::sigmoid) {
    for (double& v : p) v = 1 / (1 + std::exp(-v));
  }
  std::vector<double> score = p;
  for (size_t i = 0; i < bias.size(); ++i) score[i] += static_cast<double>(bias[i]);
  if (call.groups_used < call.groups) {
    const size_t size = call.experts / call.groups;
    std::vector<std::pair<double, size_t>> groups;  // minus the score, so that sorting puts the best first
    for (size_t g = 0; g < call.groups; ++g) {
      std::vector<double> in(score.begin() + static_cast<ptrdiff_t>(g * size),
                             score.begin() + static_cast<ptrdiff_t>((g + 1) * size));
      std::sort(in.rbegin(), in.rend());
      groups.push_back({-(in[0] + in[1]), g});
    }
    std::sort(groups.begin(), groups.end());
    for (size_t i = call.groups_used; i < groups.size(); ++i) {
      for (size_t e = 0; e < size; ++e) score[groups[i].second * size + e] = -1e30;
    }
  }
  std::vector<uint32_t> order(call.experts);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return score[a] > score[b]; });
  order.resize(call.used);
  std::vector<double> w;
  for (uint32_t e : order) w.push_back(p[e]);
  if (call.gating == RouterGating::softmax_of_chosen) softmax(w);
  if (call.normalise) {
    const double sum = std::max(std::accumulate(w.begin(), w.end(), 0.0), 0x1p-14);
    for (double& v : w) v /= sum;
  }
  Choice out{.experts = order, .weights = {}};
  for (double v : w) out.weights.push_back(static_cast<float>(v * static_cast<double>(call.scale)));
  return out;
}

TEST(Routing, EqualsTheDefinition) {
  uint32_t seed = 1;
  for (RouterGating gating : {RouterGating::softmax, RouterGating::sigmoid, RouterGating::softmax_of_chosen}) {
    for (bool normalise : {false, true}) {
      for (uint32_t groups_used : {4u, 2u}) {
        for (bool biased : {false, true}) {
          const RouteCall call{.experts = 32,
                               .used = 6,
                               .gating = gating,
                               .normalise = normalise,
                               .scale = 2.5f,
                               .groups = 4,
                               .groups_used = groups_used};
          const auto logits = random_logits(call.experts, ++seed);
          const auto bias = biased ? random_logits(call.experts, ++seed) : std::vector<float>{};
          const Choice got = choose(call, logits, bias), want = reference(call, logits, bias);
          EXPECT_EQ(got.experts, want.experts);
          for (uint32_t k = 0; k < call.used; ++k) EXPECT_NEAR(got.weights[k], want.weights[k], 1e-6f);
        }
      }
    }
  }
}

TEST(Routing, TiesGoToTheLowerNumber) {
  EXPECT_EQ(choose({.experts = 5, .used = 3}, {1, 2, 2, 1, 1}).experts, (std::vector<uint32_t>{1, 2, 0}));
  const RouteCall grouped{.experts = 6, .used = 2, .groups = 3, .groups_used = 1};
  EXPECT_EQ(choose(grouped, {0, 0, 1, 1, 1, 1}).experts, (std::vector<uint32_t>{2, 3}));
}

TEST(Routing, TheBiasChoosesButDoesNotWeigh) {
  const RouteCall call{.experts = 3, .used = 1, .gating = RouterGating::sigmoid};
  const Choice got = choose(call, {2, 0, 0}, {0, 0, 5});
  EXPECT_EQ(got.experts, std::vector<uint32_t>{2});
  EXPECT_FLOAT_EQ(got.weights[0], 0.5f);
}

TEST(Routing, AVanishingSumIsNotDividedBy) {
  const RouteCall call{.experts = 2, .used = 1, .gating = RouterGating::sigmoid, .normalise = true};
  const Choice got = choose(call, {-60, -60});
  EXPECT_LT(got.weights[0], 1e-20f);
}

// Whatever the activations are, the numbers of experts stay in range and differ.
TEST(Routing, NanAndInfinityStillChooseDifferentExperts) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (RouterGating gating : {RouterGating::softmax, RouterGating::sigmoid, RouterGating::softmax_of_chosen}) {
    for (const auto& logits :
         {std::vector<float>{nan, nan, nan, nan}, {1, nan, 2, nan}, {inf, inf, -inf, 0}, {-inf, -inf, -inf, -inf}}) {
      for (uint32_t groups_used : {1u, 2u}) {
        Choice got = choose(
            {.experts = 4, .used = 2, .gating = gating, .normalise = true, .groups = 2, .groups_used = groups_used},
            logits);
        EXPECT_LT(got.experts[0], 4u);
        EXPECT_LT(got.experts[1], 4u);
        EXPECT_NE(got.experts[0], got.experts[1]);
      }
    }
  }
}

// Scores of some are multiplied for the choice alone: another expert is chosen, with the weight that it always had.
TEST(Routing, FactorsChangeTheChoiceAndNotTheWeights) {
  const std::vector<float> logits = {2.0f, 1.9f, -1.0f, -3.0f};
  for (RouterGating gating : {RouterGating::softmax, RouterGating::sigmoid, RouterGating::softmax_of_chosen}) {
    const RouteCall call{.experts = 4, .used = 1, .gating = gating};
    const Choice plain = choose(call, logits);
    EXPECT_EQ(plain.experts[0], 0u);
    std::vector<float> scratch(8), experts(1), weights(1);
    const std::vector<float> ones(4, 1.0f), masked = {0.5f, 1, 1, 1}, all = {0.5f, 0, 1, 1};
    choose_experts(call, logits.data(), nullptr, scratch.data(), experts.data(), weights.data(), ones.data());
    EXPECT_EQ(experts[0], 0.0f);
    EXPECT_EQ(weights[0], plain.weights[0]);
    choose_experts(call, logits.data(), nullptr, scratch.data(), experts.data(), weights.data(), masked.data());
    EXPECT_EQ(experts[0], 1.0f);
    const RouteCall both{.experts = 4, .used = 2, .gating = gating};
    EXPECT_EQ(weights[0], gating == RouterGating::softmax_of_chosen ? 1.0f : choose(both, logits).weights[1]);
    choose_experts(call, logits.data(), nullptr, scratch.data(), experts.data(), weights.data(), all.data());
    EXPECT_EQ(experts[0], 0.0f) << "half of a likely one is more than an unlikely one";
  }
}

}  // namespace
}  // namespace ridge
