#include "program/ir.h"

#include <fmt/format.h>

#include "program/ir_line.h"

namespace ridge {

std::string_view name_of(IrHome home) {
  constexpr std::string_view kNames[] = {"pin", "slot", "cache", "dram"};
  return kNames[static_cast<size_t>(home)];
}

namespace {

template <class List, class Print>
std::string joined(const List& list, char between, Print print) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += between;
    text += print(item);
  }
  return text.empty() ? "-" : text;
}

std::string place_text(IrHome home, const std::vector<IrKept>& kept, uint64_t bytes) {
  uint64_t in_sram = 0;
  std::string text;
  for (const IrKept& k : kept) {
    text += fmt::format("{}{}:{:#x}+{}@{}", text.empty() ? "" : ",", k.tier, k.address, k.bytes, k.offset);
    in_sram += k.bytes;
  }
  if (in_sram == bytes && !kept.empty()) return text;
  return fmt::format("{}{}{}", text, text.empty() ? "" : ",", name_of(home));
}

}  // namespace

std::string ir_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ir_line(const IrFile& f) { return fmt::format("file name={} bytes={}", ir_quoted(f.name), f.bytes); }

std::string ir_line(const IrTier& t) {
  return fmt::format("tier kind={} name={} bytes={} burst={}", t.kind, ir_quoted(t.name), t.bytes, t.burst_bytes);
}

std::string ir_line(const IrBlock& b) {
  const std::string order = joined(b.order, ',', [](uint32_t visit) { return fmt::format("{}", visit); });
  const std::string types =
      joined(b.matrices, '+', [](const IrMatrix& m) { return std::string(type_info(m.type).name); });
  const std::string shapes =
      joined(b.matrices, '+', [](const IrMatrix& m) { return fmt::format("{}x{}", m.rows, m.cols); });
  const std::string at =
      joined(b.at, ',', [](const IrExtent& e) { return fmt::format("{}:{}+{}", e.file, e.offset, e.bytes); });
  return fmt::format(
      "block name={} op={} order={} type={} shape={} bytes={} memory={} align={} moved={} touch={}.{:06} at={} "
      "place={}",
      ir_quoted(b.name), name_of(b.op), order, types, shapes, b.bytes, b.memory_bytes, b.align, b.moved_bytes,
      b.touch / 1'000'000, b.touch % 1'000'000, at, place_text(b.home, b.kept, b.bytes));
}

std::string ir_line(const IrKv& kv) {
  return fmt::format("kv name={} bytes={} place={}", ir_quoted(kv.name), kv.bytes,
                     place_text(kv.home, kv.kept, kv.bytes));
}

std::string ir_head(const Ir& ir) {
  return fmt::format("model name={} fingerprint={:016x} positions={}", ir_quoted(ir.model), ir.fingerprint,
                     ir.positions);
}

std::string ir_target(const Ir& ir) {
  if (ir.machine) return fmt::format("machine name={}", ir_quoted(*ir.machine));
  return fmt::format("budget bytes={} slots={} slot_bytes={} cache_slots={}", ir.budget, ir.slots, ir.slot_bytes,
                     ir.cache_slots);
}

std::string ir_end(const Ir& ir) {
  return fmt::format("end blocks={} kv={} rows={}", ir.blocks.size(), ir.kv.size(), ir.row_bytes);
}

std::string ir_text(const Ir& ir) {
  std::string text = std::string(kIrFirstLine) + "\n";
  auto add = [&](const std::string& line) { text += line + "\n"; };
  add(ir_head(ir));
  for (const IrFile& f : ir.files) add(ir_line(f));
  add(ir_target(ir));
  for (const IrTier& t : ir.tiers) add(ir_line(t));
  for (const IrBlock& b : ir.blocks) add(ir_line(b));
  for (const IrKv& kv : ir.kv) add(ir_line(kv));
  add(ir_end(ir));
  return text;
}

}  // namespace ridge
