#include "model/routing.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/math.h"

namespace ridge {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();
// The smallest normal F16: what a sum of chosen weights is raised to before anything is divided by it.
constexpr float kLeastSum = 0x1p-14f;

// Element i goes to lane i % 16, in order; then the tree i + 8, i + 4, i + 2, i + 1.
float lane_sum(const float* x, size_t n) {
  float lane[16] = {};
  for (size_t i = 0; i < n; ++i) lane[i % 16] += x[i];
  for (size_t step = 8; step > 0; step /= 2) {
    for (size_t i = 0; i < step; ++i) lane[i] += lane[i + step];
  }
  return lane[0];
}

void softmax(const float* x, size_t n, float* out) {
  float max = x[0];
  for (size_t i = 1; i < n; ++i) max = x[i] > max ? x[i] : max;
  for (size_t i = 0; i < n; ++i) out[i] = exp_f32(x[i] - max);
  const float sum = lane_sum(out, n);
  for (size_t i = 0; i < n; ++i) out[i] = out[i] / sum;
}

// The largest of scores[begin, end), the first of several; NaN loses to everything before it.
uint32_t best_of(const float* scores, uint32_t begin, uint32_t end) {
  uint32_t best = begin;
  for (uint32_t i = begin + 1; i < end; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

// A group's score is the sum of its two best scores; experts outside of the best groups are left out.
void keep_best_groups(const RouteCall& call, float* scores) {
  const uint32_t size = call.experts / call.groups;
  auto group_score = [&](uint32_t group) {
    const uint32_t begin = group * size, end = begin + size;
    const uint32_t first = best_of(scores, begin, end);
    float second = kLeftOut;
    for (uint32_t i = begin; i < end; ++i) {
      if (i != first && scores[i] > second) second = scores[i];
    }
    return size > 1 ? scores[first] + second : scores[first];
  };
  uint64_t kept = 0;  // by group
  for (uint32_t n = 0; n < call.groups_used; ++n) {
    uint32_t best = call.groups;
    float best_score = 0;
    for (uint32_t group = 0; group < call.groups; ++group) {
      if ((kept >> group & 1) != 0) continue;
      const float own = group_score(group);
      if (best != call.groups && !(own > best_score)) continue;
      best = group;
      best_score = own;
    }
    kept |= uint64_t{1} << best;
  }
  for (uint32_t group = 0; group < call.groups; ++group) {
    if ((kept >> group & 1) == 0) std::fill(scores + group * size, scores + (group + 1) * size, kLeftOut);
  }
}

}  // namespace

float sigmoid(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

void choose_experts(const RouteCall& call, const float* logits, const float* selection_bias, float* scratch,
                    float* chosen, float* weights, const float* factors) {
  float* probability = scratch;
  float* score = scratch + call.experts;
  switch (call.gating) {
    case RouterGating::softmax:
      softmax(logits, call.experts, probability);
      break;
    case RouterGating::sigmoid:
      for (uint32_t e = 0; e < call.experts; ++e) probability[e] = sigmoid(logits[e]);
      break;
    case RouterGating::softmax_of_chosen:
      std::copy(logits, logits + call.experts, probability);
      break;
  }
  for (uint32_t e = 0; e < call.experts; ++e) {
    score[e] = selection_bias != nullptr ? probability[e] + selection_bias[e] : probability[e];
  }
  if (factors != nullptr) {
    if (call.gating == RouterGating::softmax_of_chosen) {
      std::vector<float> scores(score, score + call.experts);
      softmax(scores.data(), call.experts, score);
    }
    for (uint32_t e = 0; e < call.experts; ++e) score[e] = score[e] > 0 ? score[e] * factors[e] : score[e];
  }
  if (call.groups_used < call.groups) keep_best_groups(call, score);

  for (uint32_t k = 0; k < call.used; ++k) {
    uint32_t best = call.experts;
    for (uint32_t e = 0; e < call.experts; ++e) {
      if (best != call.experts && !(score[e] > score[best])) continue;
      if (std::find(chosen, chosen + k, static_cast<float>(e)) == chosen + k) best = e;
    }
    chosen[k] = static_cast<float>(best);
    weights[k] = probability[best];
  }

  if (call.gating == RouterGating::softmax_of_chosen) {
    std::copy(weights, weights + call.used, scratch);
    softmax(scratch, call.used, weights);
  }
  if (call.normalise) {
    const float sum = std::max(lane_sum(weights, call.used), kLeastSum);
    for (uint32_t k = 0; k < call.used; ++k) weights[k] = weights[k] / sum;
  }
  if (call.scale != 1) {
    for (uint32_t k = 0; k < call.used; ++k) weights[k] = weights[k] * call.scale;
  }
}

}  // namespace ridge
