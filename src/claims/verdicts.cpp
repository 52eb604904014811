#include "claims/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace ridge {
namespace {

using CostOf = double MethodCost::*;

std::string percent(double share) { return fmt::format("{:+.0f} %", share * 100); }
std::string percent(const Estimate& e) {
  if (e.values < 2) return fmt::format("{:+.1f} %", e.mean * 100);
  return fmt::format("{:+.1f} ± {:.1f} %", e.mean * 100, e.half * 100);
}

// Smallest and largest of what the cases say.
struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};
std::string percent(const Range& r) {
  const std::string low = percent(r.low), high = percent(r.high);
  return low == high ? low : fmt::format("{} to {}", low, high);
}
std::string share_text(const Range& r) {
  auto text = [](double share) { return fmt::format("{:.{}f}", share * 100, share < 0.1 ? 1 : 0); };
  return text(r.low) == text(r.high) ? text(r.low) + " %" : fmt::format("{} to {} %", text(r.low), text(r.high));
}

std::vector<const MachineCase*> paper_cases(const Evidence& e) {
  std::vector<const MachineCase*> out;
  for (const MachineCase& c : e.cases) {
    if (c.paper_model) out.push_back(&c);
  }
  return out;
}

// By how much a method changes a cost against another one, in every case.
Range change(const std::vector<const MachineCase*>& cases, Method method, Method against, CostOf cost) {
  Range out;
  for (const MachineCase* c : cases) {
    out.add(c->of(method).*cost / c->of(against).*cost - 1);
  }
  return out;
}

size_t cases_with(const std::vector<const MachineCase*>& cases, Method method, CostOf cost, double wanted) {
  return static_cast<size_t>(std::count_if(cases.begin(), cases.end(), [&](const MachineCase* c) {
    return c->of(method).*cost / c->of(Method::int8).*cost - 1 <= wanted;
  }));
}

// A cost of a token that is to fall by caching weights.
Claim cost_claim(const Evidence& e, const char* name, const char* document, CostOf cost, double wanted) {
  Claim out{.claim = name, .document = document};
  const auto cases = paper_cases(e);
  if (cases.empty()) {
    out.sentence = "no machine was named whose memory holds the document's models";
    return out;
  }
  const bool resting = cases.front()->resting;
  const Method best = resting ? Method::four_resting : Method::four_pins;
  const Method same = resting ? Method::int8_resting : Method::int8_pins;
  out.ours = fmt::format("{} ({})", percent(change(cases, best, Method::int8, cost)), name_of(best));
  out.same_bits = fmt::format("{} ({})", percent(change(cases, same, plain(same), cost)), name_of(same));
  Range bound;
  for (const MachineCase* c : cases) bound.add(c->pinned_at_most);
  out.bound = share_text(bound);
  const size_t caching = cases_with(cases, Method::int8_pins, cost, wanted),
               ours = cases_with(cases, best, cost, wanted);
  const size_t all = cases.size();
  out.verdict = caching == all ? ClaimVerdict::holds
                : caching > 0  ? ClaimVerdict::partly
                : ours > 0     ? ClaimVerdict::otherwise
                               : ClaimVerdict::fails;
  out.sentence =
      fmt::format("Of {} cases of machine and model, pins alone reach it in {} (they change it by {}), {} in {}.", all,
                  caching, percent(change(cases, Method::int8_pins, Method::int8, cost)), name_of(best), ours);
  if (!resting) out.sentence += " Resting neurons were not simulated: " + e.missing + ".";
  return out;
}

Claim energy_ratio_claim(const Evidence& e) {
  Claim out{.claim = "energy: DRAM = 100 × SRAM", .document = "100 ×"};
  if (e.ratios.empty()) return out;
  Range all;
  size_t reached = 0;
  for (const TierRatio& r : e.ratios) {
    all.add(r.ratio);
    reached += r.ratio >= 100;
  }
  out.ours =
      all.low == all.high ? fmt::format("{:.0f} ×", all.low) : fmt::format("{:.0f} to {:.0f} ×", all.low, all.high);
  out.verdict = reached == e.ratios.size() ? ClaimVerdict::holds
                : reached > 0              ? ClaimVerdict::partly
                                           : ClaimVerdict::fails;
  out.sentence =
      fmt::format("{} of {} memories reach it; most figures of energy are assumed, by one rule (docs/npu.md).", reached,
                  e.ratios.size());
  return out;
}

Claim open_claim(Claim out, const Evidence& e) {
  out.verdict = ClaimVerdict::open;
  out.sentence = fmt::format("Not judged: {}.", e.missing.empty() ? "no student was trained for it" : e.missing);
  return out;
}

Claim bits_claim(const Evidence& e) {
  Claim out{.claim = "loss of quality: 4 bit", .document = "≤ 5 %"};
  if (e.bits.empty()) return open_claim(std::move(out), e);
  std::vector<double> four, eight;
  for (const BitsLoss& b : e.bits) {
    four.push_back(b.four / b.f32 - 1);
    eight.push_back(b.int8 / b.f32 - 1);
  }
  const Estimate loss = estimate(four);
  out.ours = fmt::format("{} (Q4_0)", percent(loss));
  out.same_bits = fmt::format("{} (Q8_0)", percent(estimate(eight)));
  out.verdict = loss.mean + loss.half <= 0.05  ? ClaimVerdict::holds
                : loss.mean - loss.half > 0.05 ? ClaimVerdict::fails
                                               : ClaimVerdict::partly;
  out.sentence = fmt::format(
      "Nats per token on held-out text against F32, over {} students of {} weights; small models lose more than large "
      "ones.",
      e.bits.size(), format_count(e.bits.front().weights));
  return out;
}

// The students of a kind, by seed.
std::vector<double> of_kind(const Evidence& e, StudentKind kind, double Student::*figure) {
  std::vector<std::pair<uint64_t, double>> found;
  for (const Student& s : e.students) {
    if (s.kind == kind) found.emplace_back(s.seed, s.*figure);
  }
  std::sort(found.begin(), found.end());
  std::vector<double> out;
  for (const auto& [seed, value] : found) out.push_back(value);
  return out;
}

// Within each seed: `to` less `from`, or as a share of it.
Estimate within_seeds(const Evidence& e, StudentKind from, StudentKind to, double Student::*figure, bool relative) {
  const std::vector<double> a = of_kind(e, from, figure), b = of_kind(e, to, figure);
  std::vector<double> out;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) out.push_back(relative ? b[i] / a[i] - 1 : b[i] - a[i]);
  return estimate(out);
}

Claim patterns_claim(const Evidence& e) {
  Claim out{.claim = "distillation fixes patterns", .document = "yes"};
  if (of_kind(e, StudentKind::ce, &Student::sparsity).empty() ||
      of_kind(e, StudentKind::kd, &Student::sparsity).empty())
    return open_claim(std::move(out), e);
  const Estimate off = within_seeds(e, StudentKind::ce, StudentKind::kd, &Student::sparsity, false);
  const Estimate busiest = within_seeds(e, StudentKind::ce, StudentKind::kd, &Student::busiest, false);
  auto points = [](const Estimate& x) { return fmt::format("{:+.1f} ± {:.1f} points", x.mean * 100, x.half * 100); };
  out.ours = fmt::format("{} off (KD)", points(off));
  // More than a point, and more than chance.
  constexpr double kPoint = 0.01;
  auto rises = [&](const Estimate& x) { return x.mean - x.half > 0 && x.mean > kPoint; };
  out.verdict = rises(off) && rises(busiest)   ? ClaimVerdict::holds
                : rises(off) || rises(busiest) ? ClaimVerdict::partly
                                               : ClaimVerdict::fails;
  out.sentence = fmt::format("KD changes the share of resting neurons by {}, the work of the busiest 26 % by {}",
                             points(off), points(busiest));
  if (!of_kind(e, StudentKind::kd_l1, &Student::sparsity).empty()) {
    const Estimate l1 = within_seeds(e, StudentKind::kd, StudentKind::kd_l1, &Student::sparsity, false);
    const Estimate loss = within_seeds(e, StudentKind::kd, StudentKind::kd_l1, &Student::held_out, true);
    out.same_bits = fmt::format("{} off (KD + L1)", points(l1));
    if (out.verdict == ClaimVerdict::fails && rises(l1)) out.verdict = ClaimVerdict::otherwise;
    out.sentence += fmt::format("; L1 on the gates by {}, at a loss of {}", points(l1), percent(loss));
  }
  out.sentence += ".";
  return out;
}

size_t policy_index(const Evidence& e, std::string_view name) {
  return static_cast<size_t>(std::find(e.policies.begin(), e.policies.end(), name) - e.policies.begin());
}

// Points of hit bytes by which a policy is ahead of another, over all replays.
Estimate ahead(const Evidence& e, std::string_view policy, std::string_view of) {
  const size_t a = policy_index(e, policy), b = policy_index(e, of);
  std::vector<double> out;
  for (const PolicyHits& h : e.hits) out.push_back(h.ratios[a] - h.ratios[b]);
  return estimate(out);
}

Claim policy_claim(const Evidence& e) {
  Claim out{.claim = "importance-weighted LRU wins", .document = "yes"};
  if (e.hits.empty()) return open_claim(std::move(out), e);
  constexpr std::string_view kRivals[] = {"lru", "lfu", "pin-worth"};
  auto points = [](const Estimate& x) { return fmt::format("{:+.1f}", x.mean * 100); };
  size_t beaten = 0, ours = 0;
  std::string theirs_text, ours_text;
  for (std::string_view rival : kRivals) {
    const Estimate theirs = ahead(e, "miss-cost", rival), mine = ahead(e, "importance", rival);
    beaten += theirs.mean > 0;
    ours += mine.mean >= 0;
    theirs_text += fmt::format("{}{} ({})", theirs_text.empty() ? "" : ", ", points(theirs), rival);
    ours_text += fmt::format("{}{} ({})", ours_text.empty() ? "" : ", ", points(mine), rival);
  }
  out.ours = ours_text;
  out.same_bits = "points of hit bytes";
  out.verdict = beaten == std::size(kRivals) ? ClaimVerdict::holds
                : ours == std::size(kRivals) ? ClaimVerdict::otherwise
                : beaten > 0                 ? ClaimVerdict::partly
                                             : ClaimVerdict::fails;
  out.sentence = fmt::format(
      "LRU that evicts what hurts least is ahead by {}; pins with a small dynamic part by {}: points of hit bytes over "
      "{} replays of visits of neurons.",
      theirs_text, ours_text, e.hits.size());
  return out;
}

Claim prefetch_claim(const Evidence& e) {
  Claim out{.claim = "prefetch hides misses", .document = "yes"};
  const auto cases = paper_cases(e);
  if (cases.empty()) return out;
  Range time, hidden;
  bool same_bytes = true;
  for (const MachineCase* c : cases) {
    const MethodCost& ahead = c->of(Method::int8);
    time.add(ahead.seconds / c->serial.seconds - 1);
    hidden.add(std::max(0.0, c->serial.seconds - ahead.seconds) / c->busiest_s);
    same_bytes = same_bytes && std::abs(ahead.dram_bytes / c->serial.dram_bytes - 1) < 1e-9;
  }
  out.ours = fmt::format("{} time (int8)", percent(time));
  out.same_bits = same_bytes ? "no byte less" : "";
  // Of reading, which is what a token of these models waits for.
  constexpr double kHidden = 0.8, kSeen = 0.01;
  out.verdict = hidden.low >= kHidden ? ClaimVerdict::holds
                : hidden.high > kSeen ? ClaimVerdict::partly
                                      : ClaimVerdict::fails;
  out.sentence = fmt::format(
      "Double buffering turns computing + reading into the larger of the two, which hides {} of the reading; it spares "
      "no byte from DRAM.",
      share_text(hidden));
  return out;
}

}  // namespace

std::string_view name_of(ClaimVerdict verdict) {
  constexpr std::string_view kNames[] = {"holds", "in part", "by other means", "does not hold", "open"};
  return kNames[static_cast<size_t>(verdict)];
}

std::vector<Claim> judge(const Evidence& e) {
  return {cost_claim(e, "bytes from DRAM", "-40 %", &MethodCost::dram_bytes, -0.4),
          cost_claim(e, "time of a token", "× 0.7", &MethodCost::seconds, -0.3),
          cost_claim(e, "energy of a token", "-30 %", &MethodCost::joules, -0.3),
          energy_ratio_claim(e),
          bits_claim(e),
          patterns_claim(e),
          policy_claim(e),
          prefetch_claim(e)};
}

}  // namespace ridge
