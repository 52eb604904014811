#include "report/memory_map_report.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"

namespace ridge {
namespace {

using sim::TierKind;

constexpr TierKind kOrder[] = {TierKind::registers, TierKind::local_sram, TierKind::shared_sram, TierKind::dram};

const sim::Tier* tier_of(const sim::NpuMachine& m, TierKind kind) {
  switch (kind) {
    case TierKind::registers:
      return m.registers ? &*m.registers : nullptr;
    case TierKind::local_sram:
      return m.local ? &*m.local : nullptr;
    case TierKind::shared_sram:
      return m.shared ? &*m.shared : nullptr;
    case TierKind::dram:
      break;
  }
  return &m.dram;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

std::string memory_map_summary(const MemoryMapReport& report) {
  const sim::NpuMachine& m = *report.machine;
  std::string text = fmt::format("{} on {}, {} in the cache; tensors and bundles at multiples of {}\n", report.input,
                                 m.name, counted(report.positions, "position"), format_count(report.align));
  text += fmt::format("\n{:<12} {:<28} {:>10} {:>10} {:>14}\n", "", "", "of", "used", "of all reads");
  for (const TierKind kind : kOrder) {
    const sim::Tier* tier = tier_of(m, kind);
    if (tier == nullptr) continue;
    const auto i = static_cast<size_t>(kind);
    text += fmt::format("{:<12} {:<28} {:>10} {:>10} {:>14}\n", name_of(kind), printable(tier->name),
                        format_bytes(tier->bytes), format_bytes(report.map->bytes[i]),
                        kind == TierKind::registers
                            ? std::string("–")
                            : fmt::format("{:.1f} %", percent(report.map->reads[i], report.map->all_reads())));
  }
  text += fmt::format("{} of weights, keys and values are read for a token\n",
                      format_bytes(static_cast<uint64_t>(report.map->all_reads())));
  return text;
}

std::string memory_map_text(const MemoryMapReport& report) {
  std::string text = memory_map_summary(report);
  text += fmt::format("\n{:<12} {:>12} {:>12} {:>7} {:>7}  {}\n", "tier", "address", "bytes", "touch", "reads", "what");
  for (const sim::MapRange& r : report.map->ranges) {
    const bool weights = r.object >= 0 || r.reads > 0;
    const bool part = r.object >= 0 && (r.offset > 0 || r.bytes < report.work->objects[r.object].bytes);
    text += fmt::format("{:<12} {:>#12x} {:>12} {:>7} {:>7}  {}{}\n", name_of(r.tier), r.address, r.bytes,
                        weights ? fmt::format("{:.3f}", r.touch) : "",
                        weights ? fmt::format("{:.2f} %", percent(r.reads, report.map->all_reads())) : "",
                        printable(r.what), part ? fmt::format(", from byte {} on", r.offset) : "");
  }
  if (!report.embedding.empty()) {
    text += fmt::format("{:<12} {:>#12x} {:>12} {:>7} {:>7}  {}, a row for each token\n", name_of(TierKind::dram),
                        report.embedding_at.address, report.embedding_at.bytes, "", "", printable(report.embedding));
  }
  return text + "in DRAM the file lies as it is, from address 0 on; norms and biases between these ranges\n";
}

}  // namespace ridge
