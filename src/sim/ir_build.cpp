#include "sim/ir_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/printable.h"
#include "base/units.h"

namespace ridge::sim {
namespace {

constexpr uint64_t kLargestAlign = kMiB;

// The largest power of two, up to 1 MiB, that all extents begin at.
uint64_t alignment_of(const std::vector<IrExtent>& at) {
  uint64_t bits = kLargestAlign;
  for (const IrExtent& e : at) bits |= e.offset;
  return bits & (~bits + 1);
}

IrBlock block_of(const Program& program, const Block& block, Operator op) {
  IrBlock out{.name = block.name, .op = op, .bytes = block.storage_bytes, .memory_bytes = block.memory_bytes};
  for (const Piece& p : block.pieces)
    out.matrices.push_back({program.tensors[p.tensor].type, p.row_end - p.row_begin, program.tensors[p.tensor].cols});
  for (const JoinedPieces& j : joined_pieces(program, block))
    out.at.push_back({program.tensors[block.pieces[j.first].tensor].file, j.offset, j.bytes});
  out.align = alignment_of(out.at);
  out.moved_bytes = out.bytes;
  return out;
}

}  // namespace

Ir ir_of(const Program& program, const IrSource& source) {
  Ir ir{.model = source.model, .fingerprint = source.fingerprint, .files = source.files};
  ir.positions = source.positions;
  for (size_t b = 0; b < program.blocks.size(); ++b)
    ir.blocks.push_back(block_of(program, program.blocks[b], source.operators[b]));
  uint64_t kv = program.other.kv_bytes;
  for (uint32_t v = 0; v < program.visits.size(); ++v) {
    const Visit& visit = program.visits[v];
    ir.blocks[visit.block].order.push_back(v);
    ir.blocks[visit.block].touch = static_cast<uint32_t>(std::lround(std::clamp(visit.chance, 0.0, 1.0) * 1e6));
    kv += visit.cost.kv_bytes;
  }
  if (kv > 0) ir.kv.push_back({.name = "kv", .bytes = kv, .home = IrHome::pin, .kept = {}});
  ir.row_bytes = program.other.storage_bytes;
  return ir;
}

void place(Ir& ir, const Program& program, const Placement& placement, uint64_t budget) {
  ir.budget = budget;
  ir.slots = placement.slot_bytes > 0 ? placement.slots : 0;
  ir.slot_bytes = placement.slot_bytes;
  for (size_t b = 0; b < ir.blocks.size(); ++b) {
    const bool on_demand = program.blocks[b].on_demand;
    ir.blocks[b].home = placement.pinned[b] != 0 ? IrHome::pin : on_demand ? IrHome::cache : IrHome::slot;
    if (ir.blocks[b].home == IrHome::cache) ir.cache_slots = placement.expert_slots;
  }
}

void place(Ir& ir, const NpuWork& work, const NpuMachine& machine, const MemoryMap& map) {
  ir.machine = machine.name;
  const std::pair<TierKind, const Tier*> tiers[] = {
      {TierKind::registers, machine.registers ? &*machine.registers : nullptr},
      {TierKind::local_sram, machine.local ? &*machine.local : nullptr},
      {TierKind::shared_sram, machine.shared ? &*machine.shared : nullptr},
      {TierKind::dram, &machine.dram}};
  for (const auto& [kind, tier] : tiers) {
    if (tier != nullptr) ir.tiers.push_back({std::string(name_of(kind)), tier->name, tier->bytes, tier->burst_bytes});
  }
  std::map<int64_t, std::vector<IrKept>> kept;
  for (const MapRange& r : map.ranges) {
    if (r.object < 0 || r.tier == TierKind::dram) continue;
    kept[r.object].push_back({std::string(name_of(r.tier)), r.address, r.bytes, r.offset});
  }
  auto take = [&](size_t object) {
    std::vector<IrKept> out = std::move(kept[static_cast<int64_t>(object)]);
    std::sort(out.begin(), out.end(), [](const IrKept& a, const IrKept& b) { return a.offset < b.offset; });
    return out;
  };
  for (size_t b = 0; b < ir.blocks.size(); ++b) {
    IrBlock& block = ir.blocks[b];
    block.home = IrHome::dram;
    block.kept = take(b);
    block.moved_bytes = 0;
    for (const IrExtent& e : block.at) block.moved_bytes += machine.dram.moved(e.bytes);
  }
  ir.kv.clear();
  for (size_t o = 0; o < work.objects.size(); ++o) {
    if (work.objects[o].kind != NpuObjectKind::kv || work.objects[o].bytes == 0) continue;
    ir.kv.push_back(
        {.name = work.objects[o].name, .bytes = work.objects[o].bytes, .home = IrHome::dram, .kept = take(o)});
  }
}

Result<void> require_same_program(const Ir& read, const std::string& name, const Ir& made, const std::string& model) {
  if (read.fingerprint != made.fingerprint) {
    return bad_input(
        fmt::format("{}: line 2: is of another model: '{}' ({:016x}), and {} is '{}' ({:016x}); write it "
                    "anew with `ridge ir`",
                    name, printable(read.model), read.fingerprint, model, printable(made.model), made.fingerprint));
  }
  for (size_t b = 0; b < std::min(read.blocks.size(), made.blocks.size()); ++b) {
    const IrBlock &x = read.blocks[b], &y = made.blocks[b];
    const std::pair<const char*, bool> fields[] = {
        {"name", x.name == y.name},
        {"op", x.op == y.op},
        {"order", x.order == y.order},
        {"type and shape", x.matrices == y.matrices},
        {"bytes", x.bytes == y.bytes && x.memory_bytes == y.memory_bytes},
        {"at", x.at == y.at && x.align == y.align},
        {"touch", x.touch == y.touch},
    };
    for (const auto& [field, same] : fields) {
      if (same) continue;
      return bad_input(
          fmt::format("{}: line {}: block '{}' differs from that of {} in its {}; write it anew with `ridge ir`", name,
                      x.line, printable(x.name), model, field));
    }
  }
  if (read.blocks.size() == made.blocks.size()) return {};
  return bad_input(fmt::format("{}: has {}, and {} has {}; write it anew with `ridge ir`", name,
                               counted(read.blocks.size(), "block"), model, made.blocks.size()));
}

}  // namespace ridge::sim
