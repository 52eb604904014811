#include "plan/pass_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ridge {
namespace {

// Passes until the schedule repeats itself, at most; a pass that takes the same time as the one before it is the last.
constexpr int kMostPasses = 8;
constexpr double kSame = 1e-9;

uint64_t row_bytes_of(const Program& program, const Block& block) {
  uint64_t sum = 0;
  for (const Piece& p : block.pieces) {
    const StoredTensor& t = program.tensors[p.tensor];
    if (t.layout == Layout::rows) sum += t.stored_bytes(p.row_begin, p.row_end);
  }
  return sum;
}

double per(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

const char* rate_word(const Rates& rates, bool measured) {
  if (!measured) return "assumed";
  return rates.contention.empty() ? "measured" : "contended";
}

std::string contention_sentence(const Rates& rates) {
  return fmt::format("rates were measured while others used the machine ({}): run `ridge probe` again",
                     rates.contention);
}

double Bound::seconds() const { return std::max({storage_s, memory_s, rearrange_s}); }

double chance_of(const Visit& visit, uint32_t tokens) {
  return visit.chance >= 1 ? 1.0 : 1.0 - std::pow(1.0 - visit.chance, static_cast<double>(tokens));
}

PassModel::PassModel(const Program& program, const Rates& rates, uint32_t tokens, uint32_t counted)
    : storage_rate_(rates.storage), memory_rate_(rates.memory) {
  RIDGE_CHECK(tokens >= 1 && (counted == 1 || counted == tokens), "a program is of one token, or of this pass");
  const double times = static_cast<double>(tokens) / counted;
  auto operations = [&](const Cost& cost) {
    return times * (per(static_cast<double>(cost.int_ops), rates.int8_ops) +
                    per(static_cast<double>(cost.flops), rates.float_ops));
  };
  // Attention, norms and the cache go with the visits between which they happen, alike.
  const Cost& other = program.other;
  double other_s = std::max(static_cast<double>(other.kv_bytes + other.memory_bytes) / rates.memory, operations(other));
  if (!program.visits.empty()) other_s /= static_cast<double>(program.visits.size());
  visits_.reserve(program.visits.size());
  double last_chance = 1, chance = 1;
  for (const Visit& v : program.visits) {
    const Block& block = program.blocks[v.block];
    // Thousands of experts have the same chance.
    if (v.chance != last_chance) chance = chance_of(v, tokens / counted);
    last_chance = v.chance;
    const double memory_bytes = chance * static_cast<double>(block.memory_bytes);
    const double storage_bytes = chance * static_cast<double>(block.storage_bytes);
    VisitTime t{.block = v.block, .on_demand = block.on_demand};
    // Computing cannot be faster than reading the weights.
    t.compute = std::max(memory_bytes / rates.memory, operations(v.cost)) + other_s;
    t.rearrange = chance * static_cast<double>(row_bytes_of(program, block)) / rates.rearrange;
    t.latency = chance * rates.block_overhead_s;
    t.read = storage_bytes / rates.storage + t.latency;
    visits_.push_back(t);
    memory_bytes_.push_back(memory_bytes);
    storage_bytes_.push_back(storage_bytes);
  }
}

// The schedule, pass after pass.
class PassModel::Walk {
 public:
  Walk(const PassModel& model, const PassPlacement& placement) : model_(model), placement_(placement) {
    RIDGE_CHECK(placement.slots >= 1, "streamed blocks need a slot");
    slot_free_.assign(placement.slots, 0.0);
    stays_ = model.stays(placement);
  }

  // Seconds of the next pass; adds what each visit waited for to `waits` if given.
  double pass(std::vector<double>* waits) {
    const double begin = now_;
    const std::vector<VisitTime>& visits = model_.visits_;
    for (size_t i = 0; i < visits.size();) {
      if (visits[i].on_demand) {
        i = layer_of_experts(i, waits);
        continue;
      }
      const VisitTime& v = visits[i];
      if (placement_.pinned[v.block]) {
        now_ += v.compute;
      } else if (stays_) {
        now_ += v.compute + v.rearrange;
      } else {
        const double waited = wait_for(v);
        if (waits != nullptr) (*waits)[i] += waited;
        now_ += v.compute + v.rearrange;
        slot_free_[next_slot_] = now_;
        next_slot_ = (next_slot_ + 1) % slot_free_.size();
      }
      ++i;
    }
    return now_ - begin;
  }

 private:
  double wait_for(const VisitTime& v) {
    device_free_ = std::max(device_free_, slot_free_[next_slot_]) + model_.read_of(v, placement_);
    const double waited = std::max(0.0, device_free_ - now_);
    now_ += waited;
    return waited;
  }

  // Neighbouring visits to experts are those of one layer. All of their reads begin now, before what is read ahead;
  // computing hides behind them or they behind it.
  size_t layer_of_experts(size_t first, std::vector<double>* waits) {
    double read = 0, latency = 0, compute = 0;
    size_t i = first;
    for (; i < model_.visits_.size() && model_.visits_[i].on_demand; ++i) {
      const VisitTime& v = model_.visits_[i];
      compute += v.compute;
      if (placement_.pinned[v.block]) continue;
      compute += v.rearrange;
      read += (v.read - v.latency) * (1 - placement_.expert_hits);
      latency = std::max(latency, v.latency);  // of the layer's reads together: they are under way at once
    }
    read += read > 0 ? latency : 0;
    device_free_ = std::max(device_free_, now_) + read;
    const double waited = std::max(0.0, read - compute);
    if (waits != nullptr) (*waits)[first] += waited;
    now_ += compute + waited;
    return i;
  }

  const PassModel& model_;
  const PassPlacement& placement_;
  std::vector<double> slot_free_;
  size_t next_slot_ = 0;
  bool stays_ = false;
  double now_ = 0, device_free_ = 0;
};

// What streams in order and is no more than the slots hold is read once and stays.
bool PassModel::stays(const PassPlacement& placement) const {
  size_t streamed = 0;
  for (const VisitTime& v : visits_) streamed += v.on_demand || placement.pinned[v.block] ? 0 : 1;
  return streamed <= placement.slots;
}

// The share of a visit's bytes that comes from storage.
double PassModel::read_share(const VisitTime& visit, const PassPlacement& placement, bool stays) const {
  if (placement.pinned[visit.block]) return 0;
  if (visit.on_demand) return 1 - placement.expert_hits;
  return stays ? 0 : 1;
}

// The latency of a block passes beside the reads of those ahead of it: with two slots there is none, with more there
// are all but the one that is computed on.
double PassModel::read_of(const VisitTime& visit, const PassPlacement& placement) const {
  const double ahead = placement.slots > 2 ? static_cast<double>(placement.slots - 1) : 1.0;
  return visit.read - visit.latency * (1 - 1 / ahead);
}

double PassModel::seconds(const PassPlacement& placement) const {
  Walk walk(*this, placement);
  double before = walk.pass(nullptr), total = 0;
  int counted = 0;
  for (int p = 1; p < kMostPasses; ++p) {
    const double s = walk.pass(nullptr);
    if (std::abs(s - before) <= kSame * s) return s;
    before = s;
    // The first passes begin with an idle device; a schedule that repeats itself only every few passes is averaged.
    if (p < kMostPasses / 2) continue;
    total += s;
    ++counted;
  }
  return total / counted;
}

std::vector<double> PassModel::waits(const PassPlacement& placement) const {
  Walk walk(*this, placement);
  for (int p = 1; p < kMostPasses / 2; ++p) (void)walk.pass(nullptr);
  std::vector<double> waits(visits_.size(), 0.0);
  (void)walk.pass(&waits);
  return waits;
}

double PassModel::compute_seconds(const PassPlacement& placement) const {
  double sum = 0;
  for (const VisitTime& v : visits_) sum += v.compute + (placement.pinned[v.block] ? 0 : v.rearrange);
  return sum;
}

double PassModel::read_seconds(const PassPlacement& placement) const {
  const bool all_stay = stays(placement);
  double sum = 0;
  for (const VisitTime& v : visits_) sum += read_of(v, placement) * read_share(v, placement, all_stay);
  return sum;
}

// Streamed rows are written to memory by the device once and read once; the rearranged panel stays in the core's cache,
// so a = 1 for GGUF files too.
Bound PassModel::bound(const PassPlacement& placement) const {
  const bool all_stay = stays(placement);
  double streamed = 0, visited = 0;
  for (size_t i = 0; i < visits_.size(); ++i) {
    visited += memory_bytes_[i];
    streamed += storage_bytes_[i] * read_share(visits_[i], placement, all_stay);
  }
  return {.storage_s = streamed / storage_rate_,
          .memory_s = (visited + streamed) / memory_rate_,
          .rearrange_s = compute_seconds(placement)};
}

}  // namespace ridge
