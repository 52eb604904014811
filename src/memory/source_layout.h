// Where every byte of a streaming source lies: pins, stream slots, kept rows, gather and load buffers. The planner's
// account and the source's allocations come from this one calculation, so that they cannot differ.
//
// Not for: allocating or reading (streaming_source.cpp).
//
//   SourceLayout layout = SourceLayout::of(program, placement, gathered, keep_gathered);
//   uint8_t* q = pins.data() + layout.blocks[b][0].position;
//   SourceMemory account = layout.memory(program, placement);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/streaming_source.h"
#include "program/program.h"

namespace ridge {

// SIMD loads may run up to this many bytes past the last weight.
inline constexpr uint64_t kOverread = 64;
// Pins are loaded in reads of about this size: large enough for any device, small enough to be no second copy.
inline constexpr uint64_t kLoadChunk = 4 * 1024 * 1024;

// One piece in its region: the pins if its block is pinned, a stream slot if not.
struct PiecePlace {
  uint64_t into = 0;      // where a direct read of the piece lands, 4 KiB aligned (unused for pins that are packed)
  uint64_t position = 0;  // of the first weight
  Layout layout = Layout::rows;
};

struct RowRange {
  uint32_t begin = 0, end = 0;
};

// Rows of a gathered tensor held in memory as the file has them.
struct KeptRows {
  TensorId tensor = 0;
  uint32_t row_begin = 0, row_end = 0;
  uint64_t into = 0, position = 0;  // in the kept region
};

// A list of places for each block, one behind the other in one allocation: a plan tries thousands of layouts.
class BlockPlaces {
 public:
  void reserve(size_t blocks, size_t pieces) {
    ends_.reserve(blocks);
    places_.reserve(pieces);
  }
  void push_back(const PiecePlace& place) { places_.push_back(place); }  // to the list of the next block
  void end_block() { ends_.push_back(static_cast<uint32_t>(places_.size())); }

  bool empty() const { return ends_.empty(); }
  size_t size() const { return ends_.size(); }
  size_t pieces() const { return places_.size(); }
  std::span<const PiecePlace> operator[](BlockId block) const {
    const uint32_t begin = block == 0 ? 0 : ends_[block - 1];
    return {places_.data() + begin, ends_[block] - begin};
  }

 private:
  std::vector<PiecePlace> places_;
  std::vector<uint32_t> ends_;  // by block: where its list ends
};

struct SourceLayout {
  BlockPlaces blocks;   // by block and piece
  BlockPlaces elastic;  // the same in a slot, of pinned blocks that may be given back
  uint64_t pin_bytes = 0;
  uint64_t slot_bytes = 0;  // of one slot, as the streamed blocks need it; 0 if nothing streams
  uint32_t slots = 0;
  uint64_t expert_slot_bytes = 0;  // of one slot for blocks on demand; 0 if all of them are pinned
  uint32_t expert_slots = 0;
  ExpertPolicy expert_policy = ExpertPolicy::lru;
  std::vector<KeptRows> kept;
  uint64_t kept_bytes = 0;
  uint64_t gather_unit = 0;  // bytes of one buffer for a gathered row or panel; 0: no gather reads the file
  uint32_t gather_units = 0;
  uint64_t load_unit = 0;   // bytes of one of the two load buffers; 0: the slots serve, or nothing is packed
  uint64_t load_chunk = 0;  // bytes that one load buffer (or slot) holds of packed pins

  // Where the pieces of a block lie in a stream slot.
  std::span<const PiecePlace> in_slot(BlockId block) const {
    return elastic.empty() || elastic[block].empty() ? blocks[block] : elastic[block];
  }

  static SourceLayout of(const Program& program, const Placement& placement, std::span<const TensorId> gathered,
                         bool keep_gathered);
  SourceMemory memory(const Program& program) const;
};

}  // namespace ridge
