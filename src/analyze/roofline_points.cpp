#include "analyze/roofline_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ridge {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string rate(double giga, const char* unit) {
  return giga >= 9.995 ? fmt::format("{:.{}f} {}", giga, giga >= 99.95 ? 0 : 1, unit)
                       : fmt::format("{:.2f} {}", giga, unit);
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

// "DRAM: 91 % of 16.2 GB/s"
std::string bound_text(const RooflinePoint& p) {
  const RoofTimes times = roof_times(p.work, p.roofs);
  switch (p.placed.roof) {
    case Roof::memory:
      return fmt::format("{}: {} of {}", p.level, percent(p.placed.eta), rate(p.roofs.read_gb_per_s, "GB/s"));
    case Roof::storage:
      return fmt::format("storage: {} of {}", percent(p.placed.eta), rate(p.roofs.storage_gb_per_s, "GB/s"));
    case Roof::int8:
    case Roof::floats: {
      const bool mixed = times.int8_s > 0.1 * times.float_s && times.float_s > 0.1 * times.int8_s;
      const char* what = mixed ? "int8 and float multiply-adds"
                               : (p.placed.roof == Roof::int8 ? "int8 multiply-adds" : "float multiply-adds");
      return fmt::format("{}: {} of {}", what, percent(p.placed.eta), rate(p.placed.peak * 1e-9, "Gop/s"));
    }
    case Roof::format:
      return fmt::format("unpacking weights: {} of {}", percent(p.placed.eta), rate(p.roofs.format_gb_per_s, "GB/s"));
    case Roof::none:
      break;
  }
  return "no roof that is known here";
}

// "; 812.5 MB of weights a pass by the experts that were chosen, 903.1 MB if all were chosen alike"
std::string experts_text(const RooflinePoint& p) {
  if (!p.experts_saved_bytes) return {};
  const double read = static_cast<double>(p.work.cost.memory_bytes), expected = read + *p.experts_saved_bytes;
  if (expected <= 0) return {};
  return fmt::format(
      "; {:.4g} MB of weights a pass by the experts that were chosen, {:.4g} MB if all were chosen alike",
      read * 1e-6 / static_cast<double>(p.passes), expected * 1e-6 / static_cast<double>(p.passes));
}

}  // namespace

std::vector<Scenario> scenarios(const ScenarioLengths& lengths) {
  const uint64_t s = lengths.short_tokens, l = lengths.long_tokens;
  return {{"SISO", s, s}, {"LISO", l, s}, {"SILO", s, l}, {"LILO", l, l}};
}

Result<std::vector<Scenario>> pick_scenarios(std::string_view list, const ScenarioLengths& lengths) {
  std::vector<Scenario> picked;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string name = lower(list.substr(at, comma - at));
    const std::vector<Scenario> all = scenarios(lengths);
    auto found = std::find_if(all.begin(), all.end(), [&](const Scenario& s) { return lower(s.name) == name; });
    if (found == all.end()) {
      return usage_error(
          fmt::format("--scenarios {}: '{}' is none of siso, liso, silo, lilo: give a list of them", list, name));
    }
    auto same = [&](const Scenario& s) { return s.name == found->name; };
    if (std::none_of(picked.begin(), picked.end(), same)) picked.push_back(*found);
    at = comma + 1;
  }
  return picked;
}

PhaseShape prefill_shape(const Scenario& scenario) {
  return {.phase = BenchTest::prefill, .shape = {.tokens = scenario.prompt, .depth = 0}};
}

PhaseShape decode_shape(const Scenario& scenario, uint64_t most) {
  const uint64_t tokens = std::min(scenario.answer, most);
  return {.phase = BenchTest::decode,
          .shape = {.tokens = tokens, .depth = scenario.prompt + (scenario.answer - tokens) / 2}};
}

std::string describe(const RooflinePoint& p) {
  std::string text = p.phase == BenchTest::prefill ? fmt::format("prefill of {} tokens", p.tokens)
                                                   : fmt::format("decode at depth {}", p.depth);
  if (p.op != "all") text = fmt::format("{} of {}", p.op, text);
  if (p.placed.roof == Roof::none) return text + ": no roof is known for it";
  if (p.above) {
    return fmt::format("{} is above its roof: {} where {} is the limit; a count, a unit or a roof is wrong", text,
                       rate(p.above->ops_per_s * 1e-9, "Gop/s"), rate(p.above->limit_ops_per_s * 1e-9, "Gop/s"));
  }
  text += " is bound by " + bound_text(p);
  // Far below its lowest roof something else takes the time, and fewer bytes would not help as computed.
  constexpr double kFarBelow = 0.5;
  if (p.measured && p.placed.eta < kFarBelow) {
    text += fmt::format("; {} of the time is explained by no roof", percent(1 - p.placed.eta));
  } else if (p.advice) {
    text += fmt::format("; {} would give {:.1f} ×", p.advice->what, p.advice->gain);
  }
  return text + experts_text(p);
}

std::optional<Advice> advice_for(const Work& work, const MachineRoofs& roofs, const Program& program, uint64_t passes,
                                 KvType kv_type) {
  constexpr double kWorthSaying = 1.1;
  const RoofTimes now = roof_times(work, roofs);
  if (now.roof() != Roof::memory) return std::nullopt;
  std::optional<Advice> best;
  auto consider = [&](const char* what, uint64_t memory_bytes, uint64_t kv_bytes) {
    Work then = work;
    then.cost.memory_bytes = memory_bytes;
    then.cost.kv_bytes = kv_bytes;
    const double gain = now.bound_s() / roof_times(then, roofs).bound_s();
    if (gain >= std::max(kWorthSaying, best ? best->gain : 0)) best = Advice{what, gain};
  };
  const uint64_t weights = weight_bytes_as(program, Type::Q4_K) * passes;
  consider("Q4_K weights", std::min(work.cost.memory_bytes, weights), work.cost.kv_bytes);
  const double per_element[kKvTypes] = {2, 4, 2, 0};  // q8_0 is what would be advised
  const double now_bytes = per_element[static_cast<size_t>(kv_type)];
  // 34 bytes for 32 elements.
  if (now_bytes > 0) {
    consider("a q8_0 cache", work.cost.memory_bytes,
             static_cast<uint64_t>(static_cast<double>(work.cost.kv_bytes) * (34.0 / 32.0) / now_bytes));
  }
  return best;
}

bool RooflineReport::above() const {
  return std::any_of(points.begin(), points.end(), [](const RooflinePoint& p) { return p.above.has_value(); });
}

}  // namespace ridge
