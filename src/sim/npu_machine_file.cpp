// Reading a machine of tiers from TOML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/units.h"
#include "sim/npu_machine.h"
#include "sim/toml_table.h"

namespace ridge::sim {
namespace {

constexpr const char* kPage = "docs/npu.md";
constexpr std::string_view kTierNames[kTiers] = {"registers", "local_sram", "shared_sram", "dram"};

// What a value must be.
enum class Range : uint8_t { positive, from_zero, whole, whole_from_zero, share };

// One row for each figure that a table may hold.
struct FigureRule {
  std::string_view what;
  Range range = Range::positive;
  bool required = true;
};

constexpr FigureRule kArrayRules[] = {
    {"clock_ghz"},
    {"macs_per_cycle"},
    {"float_macs_per_cycle", Range::positive, false},
    {"utilisation", Range::share},
    {"mac_pj"},
    {"float_mac_pj", Range::positive, false},
    {"leakage_mw", Range::from_zero},
    {"dma_engines", Range::whole},
    {"dma_buffers", Range::whole},
    {"dma_staging_bytes", Range::whole},
    {"dma_prefetch", Range::whole_from_zero},
    {"reserved_bytes", Range::whole_from_zero, false},
};
constexpr FigureRule kRegisterRules[] = {{"bytes", Range::whole}, {"read_pj_per_bit"}, {"write_pj_per_bit"}};
constexpr FigureRule kSramRules[] = {
    {"bytes", Range::whole},       {"read_gb_per_s"},   {"write_gb_per_s"},   {"latency_ns", Range::from_zero},
    {"burst_bytes", Range::whole}, {"read_pj_per_bit"}, {"write_pj_per_bit"}, {"leakage_mw", Range::from_zero},
};
constexpr FigureRule kDramRules[] = {
    {"bytes", Range::whole},
    {"read_gb_per_s"},
    {"latency_ns", Range::from_zero},
    {"burst_bytes", Range::whole},
    {"read_pj_per_bit"},
    {"row_bytes", Range::whole, false},
    {"activate_pj", Range::from_zero, false},
    {"row_ns", Range::from_zero, false},
    {"leakage_mw", Range::from_zero},
};

std::span<const FigureRule> rules_of(TierKind kind) {
  if (kind == TierKind::registers) return kRegisterRules;
  if (kind == TierKind::dram) return kDramRules;
  return kSramRules;
}

// Bytes, engines, buffers: what is counted stays below 2^40, so that sums of doubles are exact.
constexpr double kMostWhole = 1099511627776.0;

constexpr std::string_view kExpected[] = {"a number above 0", "a number from 0 on", "a whole number from 1 to 2^40",
                                          "a whole number from 0 to 2^40", "a number above 0 and up to 1"};

bool within(double value, Range range) {
  if (range == Range::positive) return value > 0;
  if (range == Range::from_zero) return value >= 0;
  if (range == Range::share) return value > 0 && value <= 1;
  return value >= (range == Range::whole ? 1 : 0) && value <= kMostWhole && value == std::floor(value);
}

// The list `figures` of one table: each once, all that are required, each with its status and source.
class Figures {
 public:
  static Result<Figures> read(Table& in, std::string_view where, std::span<const FigureRule> rules) {
    Figures out;
    out.where_ = where;
    for (Table& row : RIDGE_TRY(in.tables("figures"))) {
      NpuFigure f = RIDGE_TRY(read_one(row, rules));
      f.where = where;
      if (out.find(f.what) != nullptr)
        return row.error("what", fmt::format("each figure once; {} is there twice", f.what));
      out.all_.push_back(std::move(f));
    }
    for (const FigureRule& rule : rules) {
      if (rule.required && out.find(rule.what) == nullptr) {
        return in.error("figures", fmt::format("a figure '{}' among them", rule.what));
      }
    }
    return out;
  }

  const NpuFigure* find(std::string_view what) const {
    auto found = std::find_if(all_.begin(), all_.end(), [&](const NpuFigure& f) { return f.what == what; });
    return found == all_.end() ? nullptr : &*found;
  }
  double value(std::string_view what, double otherwise = 0) const {
    const NpuFigure* f = find(what);
    return f == nullptr ? otherwise : f->value;
  }
  uint64_t whole(std::string_view what) const { return static_cast<uint64_t>(value(what)); }
  const std::vector<NpuFigure>& all() const { return all_; }

 private:
  static Result<NpuFigure> read_one(Table& row, std::span<const FigureRule> rules) {
    NpuFigure f;
    f.what = RIDGE_TRY(row.text("what"));
    auto rule = std::find_if(rules.begin(), rules.end(), [&](const FigureRule& r) { return r.what == f.what; });
    if (rule == rules.end()) {
      std::vector<std::string_view> names;
      for (const FigureRule& r : rules) names.push_back(r.what);
      return row.error("what", fmt::format("one of {}", fmt::join(names, ", ")));
    }
    f.value = RIDGE_TRY(row.number("value", Sign::any));
    if (!within(f.value, rule->range))
      return row.error("value", fmt::format("{} for {}", kExpected[static_cast<size_t>(rule->range)], f.what));
    const std::string status = RIDGE_TRY(row.text("status"));
    constexpr std::array kStatus = {FigureStatus::published, FigureStatus::measured, FigureStatus::assumed};
    auto known = std::find_if(kStatus.begin(), kStatus.end(), [&](FigureStatus s) { return name_of(s) == status; });
    if (known == kStatus.end()) return row.error("status", "one of published, measured, assumed");
    f.status = *known;
    f.source = RIDGE_TRY(row.text("source"));
    RIDGE_TRY(row.finish());
    return f;
  }

  std::string where_;
  std::vector<NpuFigure> all_;
};

double joules_per_byte(double pj_per_bit) { return pj_per_bit * 8e-12; }

Tier tier_of(const Figures& f, std::string name) {
  Tier t{.name = std::move(name), .bytes = f.whole("bytes")};
  t.read_bytes_per_s = f.value("read_gb_per_s") * 1e9;
  t.write_bytes_per_s = f.value("write_gb_per_s") * 1e9;
  t.latency_s = f.value("latency_ns") * 1e-9;
  t.burst_bytes = std::max<uint64_t>(1, f.whole("burst_bytes"));
  t.read_j_per_byte = joules_per_byte(f.value("read_pj_per_bit"));
  t.write_j_per_byte = joules_per_byte(f.value("write_pj_per_bit"));
  t.row_bytes = f.whole("row_bytes");
  t.activate_j = f.value("activate_pj") * 1e-12;
  t.row_s = f.value("row_ns") * 1e-9;
  t.leakage_w = f.value("leakage_mw") * 1e-3;
  return t;
}

Result<void> read_array(Table& top, NpuMachine& machine) {
  Table in = RIDGE_TRY(top.table("npu"));
  const Figures f = RIDGE_TRY(Figures::read(in, "npu", kArrayRules));
  RIDGE_TRY(in.finish());
  const double hz = f.value("clock_ghz") * 1e9;
  machine.macs_per_s = f.value("macs_per_cycle") * hz;
  // An array without floats computes everything on integers.
  machine.float_macs_per_s = f.value("float_macs_per_cycle", f.value("macs_per_cycle")) * hz;
  machine.utilisation = f.value("utilisation");
  machine.mac_j = f.value("mac_pj") * 1e-12;
  machine.float_mac_j = f.value("float_mac_pj", f.value("mac_pj")) * 1e-12;
  machine.leakage_w = f.value("leakage_mw") * 1e-3;
  constexpr double kMostCount = 4096;
  for (const char* what : {"dma_engines", "dma_buffers", "dma_prefetch"}) {
    if (f.value(what) > kMostCount) return in.error("figures", fmt::format("{} of at most {}", what, kMostCount));
  }
  machine.engines = static_cast<uint32_t>(f.whole("dma_engines"));
  machine.buffers = static_cast<uint32_t>(f.whole("dma_buffers"));
  machine.prefetch = static_cast<uint32_t>(f.whole("dma_prefetch"));
  machine.staging_bytes = f.whole("dma_staging_bytes");
  machine.reserved_bytes = f.whole("reserved_bytes");
  machine.figures.insert(machine.figures.end(), f.all().begin(), f.all().end());
  return {};
}

Result<void> read_tiers(Table& top, NpuMachine& machine) {
  std::array<std::optional<Tier>, kTiers> tiers;
  for (Table& in : RIDGE_TRY(top.tables("tiers"))) {
    const std::string kind = RIDGE_TRY(in.text("kind"));
    const auto known = std::find(std::begin(kTierNames), std::end(kTierNames), kind);
    if (known == std::end(kTierNames)) return in.error("kind", fmt::format("one of {}", fmt::join(kTierNames, ", ")));
    const auto index = static_cast<size_t>(known - std::begin(kTierNames));
    if (tiers[index]) return in.error("kind", fmt::format("each kind once; {} is there twice", kind));
    std::string name = RIDGE_TRY(in.text("name"));
    const Figures f = RIDGE_TRY(Figures::read(in, kind, rules_of(static_cast<TierKind>(index))));
    RIDGE_TRY(in.finish());
    tiers[index] = tier_of(f, std::move(name));
    machine.figures.insert(machine.figures.end(), f.all().begin(), f.all().end());
  }
  auto& [registers, local, shared, dram] = tiers;
  if (!dram) return top.error("tiers", "a tier of kind 'dram' among them: where the weights are");
  if (!local && !shared) return top.error("tiers", "a tier of kind 'local_sram' or 'shared_sram' among them");
  machine.registers = std::move(registers);
  machine.local = std::move(local);
  machine.shared = std::move(shared);
  machine.dram = *std::move(dram);
  return {};
}

// What no single figure shows.
Result<void> check(const Table& top, const NpuMachine& m) {
  for (const auto* sram : {&m.registers, &m.local, &m.shared}) {
    if (*sram && (*sram)->bytes > m.dram.bytes) {
      return top.error("tiers",
                       fmt::format("tiers that grow towards DRAM: {} holds {}, more than the {} of {}", (*sram)->name,
                                   format_bytes((*sram)->bytes), format_bytes(m.dram.bytes), m.dram.name));
    }
  }
  const Tier& inner = m.inner();
  if (m.staging_bytes + m.reserved_bytes > inner.bytes) {
    return top.error("npu", fmt::format("dma_staging_bytes and reserved_bytes that fit into {} ({})", inner.name,
                                        format_bytes(inner.bytes)));
  }
  // Less is a typing error, and would make the simulation a walk over single bursts.
  constexpr uint64_t kSmallestBuffer = 256;
  const uint64_t least = std::max(m.dram.burst_bytes, kSmallestBuffer);
  if (m.staging_bytes / m.buffers < least) {
    return top.error("npu", fmt::format("dma_staging_bytes of {} or more for each of {} dma_buffers",
                                        format_bytes(least), m.buffers));
  }
  if (m.dram.row_bytes % m.dram.burst_bytes != 0) {
    return top.error("tiers", fmt::format("a row of {} that is a multiple of its bursts", m.dram.name));
  }
  return {};
}

}  // namespace

std::string_view name_of(TierKind kind) { return kTierNames[static_cast<size_t>(kind)]; }

double NpuMachine::all_leakage_w() const {
  double sum = leakage_w + dram.leakage_w;
  for (const auto* tier : {&registers, &local, &shared}) sum += *tier ? (*tier)->leakage_w : 0;
  return sum;
}

Result<bool> has_tiers(const std::string& path) {
  const TomlFile file = RIDGE_TRY(TomlFile::read(path, kPage));
  return file.top().has("tiers");
}

Result<NpuMachine> load_npu_machine(const std::string& path) {
  RIDGE_TRY(load_profile(path));  // the keys beside the tiers have to be right as well
  const TomlFile file = RIDGE_TRY(TomlFile::read(path, kPage));
  Table top = file.top();
  NpuMachine machine;
  machine.name = RIDGE_TRY(top.text("name"));
  RIDGE_TRY(read_array(top, machine));
  RIDGE_TRY(read_tiers(top, machine));
  RIDGE_TRY(check(top, machine));
  return machine;
}

}  // namespace ridge::sim
