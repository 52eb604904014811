#include "plan/candidates.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace ridge {
namespace {

// Slots below this make so many small reads that the device's latency, not its rate, sets the pace.
constexpr uint64_t kSmallestSlot = 64 * kKiB;

std::vector<uint64_t> slots_of(const Program& whole, LiveRoom live) {
  uint64_t largest = whole.largest_block_storage();
  if (live == LiveRoom::always) largest = std::min(largest, kMostLiveBlock);
  std::vector<uint64_t> out;
  for (uint64_t slot = largest; slot >= kSmallestSlot; slot = slot * 2 / 3) out.push_back(slot);
  if (out.empty()) out.push_back(std::max<uint64_t>(largest, 1));
  return out;
}

}  // namespace

Candidates::Candidates(const PlanInput& input)
    : input_(input), slots_(slots_of(input.program(0), input.live)), made_(slots_.size()) {}

Candidate& Candidates::operator[](size_t i) {
  RIDGE_CHECK(i < made_.size(), "one of the candidates");
  if (made_[i]) return *made_[i];
  Program program = input_.program(slots_[i]);
  std::vector<PassModel> prompts;
  for (uint32_t batch : input_.batches) prompts.emplace_back(program, input_.rates, batch);
  PassModel decode(program, input_.rates, 1);
  ElasticRoom elastic(program, input_.gathered, input_.live);
  return made_[i].emplace(Candidate{.slot = slots_[i],
                                    .program = std::move(program),
                                    .decode = std::move(decode),
                                    .prompts = std::move(prompts),
                                    .elastic = std::move(elastic)});
}

}  // namespace ridge
