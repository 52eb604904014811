#include "memory/source_layout.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "memory/expert_cache.h"
#include "memory/slab.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// One read for a gathered row at the least, and several in flight where rows are small.
constexpr uint64_t kGatherBytes = 512 * kKiB;
constexpr uint32_t kGatherFewest = 4, kGatherMost = 16;

uint64_t piece_offset(const StoredTensor& t, const Piece& p) { return t.stored_offset(p.row_begin); }
uint64_t piece_bytes(const StoredTensor& t, const Piece& p) { return t.stored_bytes(p.row_begin, p.row_end); }

// Appends a range that a direct read fills; returns where it begins.
PiecePlace append_direct(uint64_t offset, uint64_t bytes, Layout layout, uint64_t& end) {
  PiecePlace place;
  place.into = round_up(end, kIoAlign);
  place.position = place.into + read_lead(offset);
  place.layout = layout;
  end = place.into + read_span(offset, bytes);
  return place;
}

void place_pinned(const Program& program, const Block& block, BlockPlaces& places, SourceLayout& layout) {
  for (const Piece& piece : block.pieces) {
    const StoredTensor& t = program.tensors[piece.tensor];
    if (t.layout == Layout::panels) {
      places.push_back(append_direct(piece_offset(t, piece), piece_bytes(t, piece), Layout::panels, layout.pin_bytes));
      continue;
    }
    uint64_t position = round_up(layout.pin_bytes, kOverread);
    places.push_back({.into = 0, .position = position, .layout = Layout::panels});
    layout.pin_bytes = position + panels_bytes(t.type, piece.row_end - piece.row_begin, t.cols);
  }
}

void place_in_slot(const Program& program, const Block& block, BlockPlaces& places, SourceLayout& layout) {
  uint64_t end = 0;
  for (const JoinedPieces& read : joined_pieces(program, block)) {
    PiecePlace place =
        append_direct(read.offset, read.bytes, program.tensors[block.pieces[read.first].tensor].layout, end);
    for (size_t i = read.first; i < read.first + read.count; ++i) {
      const Piece& piece = block.pieces[i];
      place.layout = program.tensors[piece.tensor].layout;
      places.push_back(place);
      place.position += piece_bytes(program.tensors[piece.tensor], piece);
    }
  }
  uint64_t& slot_bytes = block.on_demand ? layout.expert_slot_bytes : layout.slot_bytes;
  slot_bytes = std::max(slot_bytes, round_up(end + kOverread, kIoAlign));
}

// The largest piece that must be packed, and the room that 16 rows of the widest one need.
void size_load_buffers(const Program& program, const Placement& placement, SourceLayout& layout) {
  uint64_t largest = 0, fewest = 0;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (!placement.pinned[b]) continue;
    for (const Piece& piece : program.blocks[b].pieces) {
      const StoredTensor& t = program.tensors[piece.tensor];
      if (t.layout == Layout::panels) continue;
      largest = std::max(largest, piece_bytes(t, piece));
      fewest = std::max<uint64_t>(fewest, kPanelRows * row_bytes(t.type, t.cols));
    }
  }
  if (largest == 0) return;
  const uint64_t overhead = 2 * kIoAlign + kOverread;
  const uint64_t wished = std::max(fewest, std::min(largest, kLoadChunk));
  if (layout.slots >= 2 && layout.slot_bytes >= fewest + overhead) {
    layout.load_chunk = std::min(wished, layout.slot_bytes - overhead);
    return;
  }
  layout.load_chunk = wished;
  layout.load_unit = round_up(wished + overhead, kIoAlign);
}

// Row ranges that pinned blocks hold, by gathered tensor: one walk over all blocks, of which experts make very many.
std::vector<std::vector<RowRange>> pinned_rows(const Program& program, const Placement& placement,
                                               std::span<const TensorId> gathered) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> index(program.tensors.size(), kNone);
  for (size_t i = 0; i < gathered.size(); ++i) index[gathered[i]] = static_cast<uint32_t>(i);
  std::vector<std::vector<RowRange>> ranges(gathered.size());
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (!placement.pinned[b]) continue;
    for (const Piece& p : program.blocks[b].pieces) {
      if (index[p.tensor] != kNone && p.row_begin < p.row_end)
        ranges[index[p.tensor]].push_back({p.row_begin, p.row_end});
    }
  }
  return ranges;
}

// What of the tensor is in none of these ranges, in order.
std::vector<RowRange> rows_outside(const StoredTensor& tensor, std::vector<RowRange> pinned) {
  std::sort(pinned.begin(), pinned.end(), [](RowRange a, RowRange b) { return a.begin < b.begin; });
  // Parts of a tensor begin at a panel; a few rows are then in both.
  auto whole_panel = [](uint32_t r) { return r - r % static_cast<uint32_t>(kPanelRows); };
  std::vector<RowRange> rest;
  uint32_t row = 0;
  for (RowRange p : pinned) {
    if (p.begin > row) rest.push_back({whole_panel(row), p.begin});
    row = std::max(row, p.end);
  }
  if (row < tensor.rows) rest.push_back({whole_panel(row), tensor.rows});
  return rest;
}

void place_gathered(const Program& program, const Placement& placement, std::span<const TensorId> gathered,
                    bool keep_gathered, SourceLayout& layout) {
  auto pinned = pinned_rows(program, placement, gathered);
  for (size_t i = 0; i < gathered.size(); ++i) {
    const TensorId id = gathered[i];
    const StoredTensor& t = program.tensors[id];
    std::vector<RowRange> ranges = rows_outside(t, std::move(pinned[i]));
    if (ranges.empty()) continue;
    if (keep_gathered) {
      for (RowRange r : ranges) {
        PiecePlace place =
            append_direct(t.stored_offset(r.begin), t.stored_bytes(r.begin, r.end), t.layout, layout.kept_bytes);
        layout.kept.push_back({id, r.begin, r.end, place.into, place.position});
      }
      continue;
    }
    uint64_t item = t.layout == Layout::panels ? panel_bytes(t.type, t.cols) : row_bytes(t.type, t.cols);
    layout.gather_unit = std::max(layout.gather_unit, round_up(item, kIoAlign) + kIoAlign);
  }
  if (layout.kept_bytes > 0) layout.kept_bytes += kOverread;
  if (layout.gather_unit == 0) return;
  uint64_t units = kGatherBytes / layout.gather_unit;
  layout.gather_units = static_cast<uint32_t>(std::clamp<uint64_t>(units, kGatherFewest, kGatherMost));
}

}  // namespace

SourceLayout SourceLayout::of(const Program& program, const Placement& placement, std::span<const TensorId> gathered,
                              bool keep_gathered) {
  RIDGE_CHECK(placement.pinned.size() == program.blocks.size(), "a placement says of every block whether it is pinned");
  SourceLayout layout;
  size_t pieces = 0;
  for (const Block& block : program.blocks) pieces += block.pieces.size();
  layout.blocks.reserve(program.blocks.size(), pieces);
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (placement.pinned[b]) {
      place_pinned(program, program.blocks[b], layout.blocks, layout);
    } else {
      place_in_slot(program, program.blocks[b], layout.blocks, layout);
    }
    layout.blocks.end_block();
  }
  for (BlockId b = 0; !placement.elastic.empty() && b < program.blocks.size(); ++b) {
    if (placement.pinned[b] && placement.may_go(b)) {
      RIDGE_CHECK(!program.blocks[b].on_demand, "blocks on demand are not given back");
      place_in_slot(program, program.blocks[b], layout.elastic, layout);
    }
    layout.elastic.end_block();
  }
  if (layout.pin_bytes > 0) layout.pin_bytes += kOverread;
  if (layout.slot_bytes > 0) {
    RIDGE_CHECK(placement.slots >= 1, "blocks that are not pinned need a slot");
    layout.slots = placement.slots;
  }
  if (layout.expert_slot_bytes > 0) {
    RIDGE_CHECK(placement.expert_slots >= 1, "experts that are not pinned need a slot");
    RIDGE_CHECK(
        placement.expert_cache == 0 || placement.expert_slots > placement.expert_cache * program.expert_groups.size(),
        "of the slots for experts one at least belongs to no layer");
    layout.expert_slots = placement.expert_slots;
    layout.expert_policy = placement.expert_policy;
  }
  place_gathered(program, placement, gathered, keep_gathered, layout);
  size_load_buffers(program, placement, layout);
  return layout;
}

SourceMemory SourceLayout::memory(const Program& program) const {
  // The lists of places, views and visits: small, and counted all the same.
  uint64_t lists = 64 * kKiB + 8 * program.visits.size() + sizeof(KeptRows) * kept.size();
  lists += 96 * blocks.size() + (sizeof(PiecePlace) + sizeof(PieceView)) * blocks.pieces();
  lists += 96 * elastic.size() + sizeof(PiecePlace) * elastic.pieces();
  if (expert_slots > 0) lists += ExpertCache::heap_bytes(expert_slots, blocks.size(), expert_policy);
  const uint64_t slots_bytes = slots * slot_bytes, expert_bytes = expert_slots * expert_slot_bytes;
  const uint64_t gather_bytes = gather_units * gather_unit;
  SourceMemory memory;
  memory.pins = Slab::charge(pin_bytes);
  memory.slots = Slab::charge(slots_bytes);
  memory.experts = Slab::charge(expert_bytes);
  memory.gathered = Slab::charge(kept_bytes);
  memory.io = lists + Slab::charge(gather_bytes) + Slab::charge(2 * load_unit) +
              io_engine_memory(slots_bytes + expert_bytes + gather_bytes);
  return memory;
}

}  // namespace ridge
