#include "cli/ladder_pools.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/child.h"

namespace ridge::cli {
namespace {

LadderPool measure(uint32_t contexts, const PoolFlags& flags, const std::atomic<bool>& interrupted) {
  const std::string number = std::to_string(contexts);
  std::vector<std::string> words = {"ridge",  "ladder", flags.model, "--quiet", "--json",  "--contexts", number,
                                    "--step", number,   "--hold",    "0",       "--pools", "none"};
  words.insert(words.end(), flags.arguments.begin(), flags.arguments.end());
  LadderPool failed{.contexts = contexts};
  Child child;
  if (auto error = child.start(words)) {
    failed.failure = fmt::format("no process of its own ({})", *error);
    return failed;
  }
  const int code = child.finish(interrupted);
  if (interrupted) {
    failed.failure = "interrupted";
    return failed;
  }
  if (code != 0) {
    failed.failure = code == 4 ? "a gate allows not even one" : fmt::format("its process ended with {}", code);
    return failed;
  }
  return pool_of(nlohmann::ordered_json::parse(child.text(), nullptr, false), contexts);
}

}  // namespace

std::vector<LadderPool> measure_pools(const std::vector<uint32_t>& contexts, const PoolFlags& flags,
                                      const std::atomic<bool>& interrupted) {
  std::vector<LadderPool> pools;
  for (uint32_t n : contexts) {
    if (interrupted) break;
    pools.push_back(measure(n, flags, interrupted));
  }
  return pools;
}

}  // namespace ridge::cli
