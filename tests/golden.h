// The reference data beside the repository (golden/README.md there), for tests of several layers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "engine/engine.h"

namespace ridge::golden {

inline std::string folder() { return std::string(RIDGE_SHARED_DIR) + "/golden"; }

inline bool exists(const std::string& path) { return std::ifstream(path).good(); }

inline nlohmann::json load(const std::string& name) {
  std::ifstream in(folder() + "/" + name);
  return nlohmann::json::parse(in);
}

// Where `ridge models get` keeps its files.
inline std::string demo_model(const std::string& file) {
  const char* own = std::getenv("RIDGE_MODELS_DIR");
  return (own != nullptr ? std::string(own) : cache_folder()) + "/" + file;
}

// Logits of every position, [tokens][vocabulary].
inline std::vector<std::vector<float>> all_logits(Engine& engine, std::span<const TokenId> ids) {
  std::vector<std::vector<float>> rows;
  auto done = engine.evaluate_all(ids, [&](std::span<const float> row) -> Result<void> {
    rows.emplace_back(row.begin(), row.end());
    return {};
  });
  EXPECT_TRUE(done.ok()) << done.error().message;
  return rows;
}

}  // namespace ridge::golden

#define RIDGE_SKIP_WITHOUT(path, words) \
  if (!::ridge::golden::exists(path)) GTEST_SKIP() << words << ": " << (path)
