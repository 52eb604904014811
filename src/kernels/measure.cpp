#include "kernels/measure.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "base/check.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr size_t kRows = 128, kCols = 1024, kTokens = 64;
constexpr int kTries = 5;

struct Sample {
  std::vector<uint8_t> panels;
  std::vector<float> x = std::vector<float>(kTokens * kCols, 0.5f);
  std::vector<float> out = std::vector<float>(kTokens * kRows);
  uint8_t* aligned = nullptr;

  explicit Sample(Type type) : panels(panels_bytes(type, kRows, kCols) + 64) {
    // Zeros are weights like others to a multiplier; the panels' values do not matter.
    aligned = panels.data() + (64 - reinterpret_cast<uintptr_t>(panels.data()) % 64) % 64;
  }
  MatmulArgs args() {
    MatmulArgs a{};
    a.panels = aligned;
    a.rows = kRows;
    a.cols = kCols;
    a.tokens = kTokens;
    a.x = x.data();
    a.x_stride = kCols;
    a.out = out.data();
    a.out_stride = kRows;
    return a;
  }
};

}  // namespace

const Kernel* fastest_matmul(std::span<const Kernel* const> candidates) {
  RIDGE_CHECK(!candidates.empty(), "there must be something to choose from");
  if (candidates.size() == 1) return candidates[0];
  Sample sample(candidates[0]->type);
  const MatmulArgs args = sample.args();
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  for (int i = 0; i < kTries; ++i) {
    for (size_t k = 0; k < candidates.size(); ++k) {
      const auto begin = std::chrono::steady_clock::now();
      reinterpret_cast<MatmulFn>(candidates[k]->function)(args);
      best[k] = std::min(best[k], std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  return candidates[static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin())];
}

}  // namespace ridge
