#include "plan/placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "plan/knapsack.h"

namespace ridge {
namespace {

constexpr uint64_t kPanelAlign = 64;
constexpr uint64_t kKnapsackSteps = 16'384;

uint64_t pin_bytes(const Program& program, BlockId block) {
  return round_up(program.blocks[block].memory_bytes, kPanelAlign);
}

// A block of the program's order: all that a choice depends on.
struct PinCandidate {
  BlockId block = 0;
  uint32_t kind = 0;  // blocks of a kind differ in nothing but their place
  double compute = 0, read = 0;
};

struct Kind {
  uint32_t members = 0, pinned = 0;
};

struct Choice {
  std::vector<PinCandidate> order;  // of first visits
  std::vector<Kind> kinds;
  double compute = 0;  // of the whole pass, experts included
};

// Seconds of each block by a model, over all its visits.
struct BlockTimes {
  std::vector<double> compute, read, saved;
  BlockTimes(const PassModel& model, size_t blocks) : compute(blocks, 0.0), read(blocks, 0.0), saved(blocks, 0.0) {
    for (const VisitTime& v : model.visits()) {
      compute[v.block] += v.compute;
      read[v.block] += v.read;
      saved[v.block] += v.read + v.rearrange;
    }
  }
};

Choice candidates(const Program& program, const PassModel& model, const BlockTimes& times) {
  Choice c;
  std::map<std::tuple<uint64_t, double, double, double>, uint32_t> kinds;
  std::vector<uint8_t> seen(program.blocks.size(), 0);
  for (const VisitTime& v : model.visits()) {
    const BlockId b = v.block;
    c.compute += v.compute;
    if (v.on_demand || seen[b]) continue;
    seen[b] = 1;
    const auto key = std::tuple(program.blocks[b].memory_bytes, times.read[b], times.saved[b], times.compute[b]);
    const uint32_t kind = kinds.emplace(key, static_cast<uint32_t>(kinds.size())).first->second;
    if (kind == c.kinds.size()) c.kinds.emplace_back();
    ++c.kinds[kind].members;
    c.order.push_back({.block = b, .kind = kind, .compute = times.compute[b], .read = times.read[b]});
  }
  return c;
}

// Each kind spread evenly over its own members; kinds begin at different phases, so that they do not meet.
std::vector<uint8_t> spread_by_kind(const Choice& c, size_t blocks, double phase) {
  constexpr double kGolden = 0.6180339887498949;  // multiples of it fill [0, 1) evenly
  std::vector<uint8_t> pinned(blocks, 0);
  std::vector<uint32_t> met(c.kinds.size(), 0);
  for (const PinCandidate& b : c.order) {
    const Kind& kind = c.kinds[b.kind];
    const double share = static_cast<double>(kind.pinned) / kind.members;
    const double offset = std::fmod(phase + kGolden * b.kind, 1.0);
    const uint32_t j = met[b.kind]++;
    auto step = [&](uint32_t n) { return static_cast<uint64_t>(n * share + offset + 1e-9); };
    pinned[b.block] = step(j + 1) > step(j) ? 1 : 0;
  }
  return pinned;
}

// Along the pass: a block streams if what was read so far is behind the share of the time that has passed.
std::vector<uint8_t> spread_by_time(const Choice& c, size_t blocks, double phase) {
  double to_read = 0;
  for (const PinCandidate& b : c.order) {
    const Kind& kind = c.kinds[b.kind];
    to_read += b.read * (kind.members - kind.pinned) / kind.members;
  }
  std::vector<uint8_t> pinned(blocks, 0);
  std::vector<Kind> left = c.kinds;
  double read = 0, computed = 0, of_order = 0;
  for (const PinCandidate& b : c.order) of_order += b.compute;
  for (const PinCandidate& b : c.order) {
    Kind& kind = left[b.kind];
    const double due = of_order > 0 ? to_read * (computed + b.compute / 2) / of_order : 0;
    const bool behind = read + b.read * (0.5 - phase) <= due;
    const bool must = kind.pinned == kind.members;
    if (must || (kind.pinned > 0 && !behind)) {
      pinned[b.block] = 1;
      --kind.pinned;
    } else {
      read += b.read;
    }
    --kind.members;
    computed += b.compute;
  }
  return pinned;
}

// Along the pass, whatever the kind: for where the kinds that the knapsack leaves lie too close together.
std::vector<uint8_t> spread_any_kind(const Program& program, const Choice& c, uint64_t capacity, double phase) {
  uint64_t bytes = 0, used = 0;
  double to_read = 0, of_order = 0, read = 0, computed = 0;
  for (const PinCandidate& b : c.order) {
    bytes += pin_bytes(program, b.block);
    to_read += b.read;
    of_order += b.compute;
  }
  if (bytes > 0) to_read *= 1 - std::min(1.0, static_cast<double>(capacity) / static_cast<double>(bytes));
  std::vector<uint8_t> pinned(program.blocks.size(), 0);
  for (const PinCandidate& b : c.order) {
    const double due = of_order > 0 ? to_read * (computed + b.compute / 2) / of_order : 0;
    const bool fits = used + pin_bytes(program, b.block) <= capacity;
    if (fits && read + b.read * (0.5 - phase) > due) {
      pinned[b.block] = 1;
      used += pin_bytes(program, b.block);
    } else {
      read += b.read;
    }
    computed += b.compute;
  }
  return pinned;
}

// No schedule with these pins is faster.
double floor_of(const PassModels& models, const std::vector<uint8_t>& pinned) {
  auto of = [&](const PassModel& m) {
    const PassPlacement p{.pinned = pinned, .expert_hits = models.expert_hits};
    return std::max(m.compute_seconds(p), m.read_seconds(p));
  };
  return of(*models.decode) + (models.prompt != nullptr ? of(*models.prompt) / models.prompt_tokens : 0);
}

// Pins blocks that are waited for, as far as they fit, or in exchange for a pinned one before or after them.
class Exchange {
 public:
  Exchange(const Program& program, const Choice& choice, const PassModels& models, uint64_t capacity, uint32_t tries)
      : program_(program), choice_(choice), models_(models), capacity_(capacity), tries_(tries) {}

  void improve(std::vector<uint8_t>& pinned, double& seconds) {
    constexpr double kGoodEnough = 1 + 1e-4;
    used_ = 0;
    for (const PinCandidate& b : choice_.order) used_ += pinned[b.block] ? bytes(b) : 0;
    while (tries_ > 0 && seconds > floor_of(models_, pinned) * kGoodEnough && improve_once(pinned, seconds)) {
    }
  }

 private:
  uint64_t bytes(const PinCandidate& b) const { return pin_bytes(program_, b.block); }

  bool improve_once(std::vector<uint8_t>& pinned, double& seconds) {
    const std::vector<double> waits = models_.decode->waits({.pinned = pinned, .expert_hits = models_.expert_hits});
    std::vector<double> wait_of(pinned.size(), 0.0);
    for (size_t i = 0; i < waits.size(); ++i) wait_of[models_.decode->visits()[i].block] += waits[i];
    std::vector<size_t> worst;  // places in the order
    for (size_t i = 0; i < choice_.order.size(); ++i) {
      if (!pinned[choice_.order[i].block] && wait_of[choice_.order[i].block] > 0) worst.push_back(i);
    }
    std::stable_sort(worst.begin(), worst.end(), [&](size_t a, size_t b) {
      return wait_of[choice_.order[a].block] > wait_of[choice_.order[b].block];
    });
    for (size_t i : worst) {
      if (attempt(i, i, pinned, seconds) || try_around(i, pinned, seconds)) return true;
      if (tries_ == 0) return false;
    }
    return false;
  }

  // To each side the nearest few of the same kind, and of any.
  bool try_around(size_t at, std::vector<uint8_t>& pinned, double& seconds) {
    constexpr int kNeighbours = 2;
    const size_t n = choice_.order.size();
    for (const size_t step : {n - 1, size_t{1}}) {
      int alike = 0, others = 0;
      for (size_t i = (at + step) % n; i != at && (alike < kNeighbours || others < kNeighbours); i = (i + step) % n) {
        if (!pinned[choice_.order[i].block]) continue;
        int& met = choice_.order[i].kind == choice_.order[at].kind ? alike : others;
        if (++met > kNeighbours) continue;
        if (attempt(i, at, pinned, seconds)) return true;
        if (tries_ == 0) return false;
      }
    }
    return false;
  }

  // Streams one and pins the other; `from` == `to`: pins it in exchange for nothing. False if that is no better.
  bool attempt(size_t from, size_t to, std::vector<uint8_t>& pinned, double& seconds) {
    const PinCandidate &out = choice_.order[from], &in = choice_.order[to];
    const uint64_t after = used_ + bytes(in) - (from == to ? 0 : bytes(out));
    if (after > capacity_ || tries_ == 0) return false;
    --tries_;
    pinned[out.block] = 0;
    pinned[in.block] = 1;
    const double now = models_.seconds(pinned);
    if (now < seconds * (1 - 1e-9)) {
      seconds = now;
      used_ = after;
      return true;
    }
    pinned[in.block] = 0;
    pinned[out.block] = from == to ? 0 : 1;
    return false;
  }

  const Program& program_;
  const Choice& choice_;
  const PassModels& models_;
  uint64_t capacity_, used_ = 0;
  uint32_t tries_;
};

// Spreads pins over blocks that are on demand, or those that are not; returns what of the capacity is left.
uint64_t spread_over(const Program& program, uint64_t capacity, bool on_demand, std::vector<uint8_t>& pinned) {
  std::vector<BlockId> order;  // of visits
  uint64_t total = 0, used = 0;
  for (const Visit& v : program.visits) {
    if (program.blocks[v.block].on_demand != on_demand) continue;
    order.push_back(v.block);
    total += program.blocks[v.block].memory_bytes;
  }
  if (total == 0) return capacity;
  double share = std::min(1.0, static_cast<double>(capacity) / static_cast<double>(total)), due = 0;
  auto try_pin = [&](BlockId b) {
    uint64_t bytes = program.blocks[b].memory_bytes;
    if (pinned[b] || used + bytes > capacity) return false;
    pinned[b] = 1;
    used += bytes;
    return true;
  };
  for (BlockId b : order) {
    double bytes = static_cast<double>(program.blocks[b].memory_bytes);
    due += share * bytes;
    if (due >= bytes && try_pin(b)) due -= bytes;
  }
  // What is left over goes to the largest blocks that still fit.
  std::sort(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [&](BlockId a, BlockId b) {
    return program.blocks[a].memory_bytes > program.blocks[b].memory_bytes;
  });
  for (BlockId b : order) (void)try_pin(b);
  return capacity - used;
}

// Decides how many of each kind are pinned.
void fill_kinds(const Program& program, const PassModels& models, const BlockTimes& decode, uint64_t capacity,
                Choice& c, PinChoice& out) {
  std::vector<double> saved = decode.saved;
  if (models.prompt != nullptr) {
    const BlockTimes prompt(*models.prompt, program.blocks.size());
    for (size_t b = 0; b < saved.size(); ++b) saved[b] += prompt.saved[b] / models.prompt_tokens;
  }
  std::vector<KnapsackItem> items;
  for (const PinCandidate& b : c.order) {
    items.push_back({.value = saved[b.block], .bytes = pin_bytes(program, b.block)});
  }
  const KnapsackResult r = solve_knapsack(items, capacity, {.most_steps = kKnapsackSteps});
  for (size_t i = 0; i < items.size(); ++i) c.kinds[c.order[i].kind].pinned += r.taken[i];
  out.gap = r.gap();
  out.exact = r.exact;
}

}  // namespace

double PassModels::seconds(const std::vector<uint8_t>& pinned, uint32_t slots) const {
  const PassPlacement p{.pinned = pinned, .slots = slots, .expert_hits = expert_hits};
  return decode->seconds(p) + (prompt != nullptr ? prompt->seconds(p) / prompt_tokens : 0);
}

PinChoice choose_pins(const Program& program, const PassModels& models, uint64_t capacity, const PinOptions& options) {
  PinChoice out;
  const size_t blocks = program.blocks.size();
  const BlockTimes times(*models.decode, blocks);
  Choice choice = candidates(program, *models.decode, times);
  fill_kinds(program, models, times, capacity, choice, out);
  auto consider = [&](std::vector<uint8_t> pinned) {
    const double seconds = models.seconds(pinned);
    if (!out.pinned.empty() && seconds >= out.seconds) return;
    out.seconds = seconds;
    out.pinned = std::move(pinned);
  };
  for (double phase : {0.0, 0.25, 0.5}) consider(spread_by_time(choice, blocks, phase));
  for (double phase : {0.0, 0.5}) consider(spread_by_kind(choice, blocks, phase));
  for (double phase : {0.0, 0.25, 0.5}) consider(spread_any_kind(program, choice, capacity, phase));
  Exchange(program, choice, models, capacity, options.most_tries).improve(out.pinned, out.seconds);
  return out;
}

std::optional<PinRule> pin_rule(std::string_view name) {
  constexpr std::pair<std::string_view, PinRule> kRules[] = {
      {"planned", PinRule::planned}, {"leading", PinRule::leading}, {"none", PinRule::none}, {"lru", PinRule::lru}};
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  return std::nullopt;
}

std::vector<uint8_t> leading_pins(const Program& program, uint64_t capacity) {
  std::vector<uint8_t> pinned(program.blocks.size(), 0);
  for (const Visit& v : program.visits) {
    if (program.blocks[v.block].on_demand || pinned[v.block]) continue;
    const uint64_t bytes = pin_bytes(program, v.block);
    if (bytes > capacity) break;
    capacity -= bytes;
    pinned[v.block] = 1;
  }
  return pinned;
}

// Time saved per byte is the chance of a visit: blocks that every pass visits come before experts.
std::vector<uint8_t> spread_pins(const Program& program, uint64_t capacity) {
  std::vector<uint8_t> pinned(program.blocks.size(), 0);
  const uint64_t left = spread_over(program, capacity, false, pinned);
  (void)spread_over(program, left, true, pinned);
  return pinned;
}

void spread_expert_pins(const Program& program, uint64_t capacity, std::vector<uint8_t>& pinned) {
  (void)spread_over(program, capacity, true, pinned);
}

}  // namespace ridge
