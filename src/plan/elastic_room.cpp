#include "plan/elastic_room.h"

#include <algorithm>

#include "plan/fit.h"

namespace ridge {

ElasticRoom::ElasticRoom(const Program& program, std::span<const TensorId> gathered, LiveRoom live) : live_(live) {
  if (live_ == LiveRoom::none) return;
  rooms_.assign(program.blocks.size(), 0);
  auto is_gathered = [&](const Piece& p) {
    return std::find(gathered.begin(), gathered.end(), p.tensor) != gathered.end();
  };
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    if (block.on_demand || std::any_of(block.pieces.begin(), block.pieces.end(), is_gathered)) continue;
    rooms_[b] = slot_room(program, block);
  }
}

void ElasticRoom::grant(Placement& placement) const {
  placement.elastic.clear();
  if (live_ == LiveRoom::none || (live_ == LiveRoom::where_free && placement.slot_bytes == 0)) return;
  if (placement.slot_bytes == 0) {
    for (BlockId b = 0; b < rooms_.size(); ++b) {
      if (placement.pinned[b]) placement.slot_bytes = std::max(placement.slot_bytes, rooms_[b]);
    }
  }
  placement.elastic.assign(rooms_.size(), 0);
  bool any = false;
  for (BlockId b = 0; b < rooms_.size(); ++b) {
    if (!placement.pinned[b] || rooms_[b] == 0 || rooms_[b] > placement.slot_bytes) continue;
    placement.elastic[b] = 1;
    any = true;
  }
  if (!any) placement.elastic.clear();
}

}  // namespace ridge
