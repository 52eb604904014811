#include "program/program.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/panel.h"

namespace ridge {

std::string_view name_of(Operator op) {
  constexpr std::string_view kNames[kOperators] = {"qkv", "attention", "output", "ffn", "experts", "head", "other"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view name_of(ExpertPolicy policy) {
  switch (policy) {
    case ExpertPolicy::lru:
      return "lru";
    case ExpertPolicy::decayed_lfu:
      return "decayed-lfu";
    case ExpertPolicy::importance:
      break;
  }
  return "importance";
}

uint64_t StoredTensor::stored_bytes(uint32_t begin, uint32_t end) const {
  RIDGE_CHECK(begin % kPanelRows == 0 && begin <= end && end <= rows,
              "a piece starts at a panel and stays in its tensor");
  if (layout == Layout::panels) return panels_bytes(type, end - begin, cols);
  return static_cast<uint64_t>(end - begin) * row_bytes(type, cols);
}

uint64_t StoredTensor::stored_offset(uint32_t row) const {
  if (layout == Layout::panels) return offset + static_cast<uint64_t>(row / kPanelRows) * panel_bytes(type, cols);
  return offset + static_cast<uint64_t>(row) * row_bytes(type, cols);
}

uint64_t Program::storage_bytes() const {
  uint64_t sum = 0;
  for (const Block& b : blocks) sum += b.storage_bytes;
  return sum;
}

uint64_t Program::memory_bytes() const {
  uint64_t sum = 0;
  for (const Block& b : blocks) sum += b.memory_bytes;
  return sum;
}

uint64_t Program::largest_block_storage() const {
  uint64_t largest = 0;
  for (const Block& b : blocks) largest = std::max(largest, b.storage_bytes);
  return largest;
}

Cost Program::cost() const {
  Cost sum = other;
  for (const Visit& v : visits) sum += v.cost;
  return sum;
}

uint64_t Program::memory_bytes_of_a_pass() const {
  double sum = 0;
  for (const Visit& v : visits) sum += v.chance * static_cast<double>(blocks[v.block].memory_bytes);
  return static_cast<uint64_t>(sum);
}

uint64_t Program::heap_bytes() const {
  constexpr uint64_t kAllocation = 16;  // what the C library adds to each
  auto text = [](const std::string& s) {
    return s.capacity() < sizeof(std::string) / 2 ? 0 : s.capacity() + kAllocation;
  };
  uint64_t sum = visits.capacity() * sizeof(Visit) + expert_groups.capacity() * sizeof(ExpertGroup);
  for (const StoredTensor& t : tensors) sum += sizeof t + text(t.name);
  for (const Block& b : blocks) sum += sizeof b + text(b.name) + b.pieces.capacity() * sizeof(Piece) + kAllocation;
  for (const auto& s : steps) sum += sizeof s + s.capacity() * sizeof(Slice) + kAllocation;
  return sum;
}

std::vector<std::vector<BlockId>> Program::expert_blocks() const {
  std::vector<std::vector<BlockId>> groups;
  for (const ExpertGroup& g : expert_groups) {
    std::vector<BlockId>& group = groups.emplace_back();
    for (size_t s = g.first_step; s < g.first_step + 2 * size_t{g.experts}; ++s) {
      for (const Slice& slice : steps[s]) {
        // Consecutive slices may share a block.
        if (group.empty() || group.back() != slice.block) group.push_back(slice.block);
      }
    }
  }
  return groups;
}

std::vector<JoinedPieces> joined_pieces(const Program& program, const Block& block) {
  std::vector<JoinedPieces> reads;
  for (size_t i = 0; i < block.pieces.size(); ++i) {
    const Piece& piece = block.pieces[i];
    const StoredTensor& t = program.tensors[piece.tensor];
    const uint64_t offset = t.stored_offset(piece.row_begin), bytes = t.stored_bytes(piece.row_begin, piece.row_end);
    const bool joins = !reads.empty() && t.layout == Layout::panels &&
                       program.tensors[block.pieces[i - 1].tensor].layout == Layout::panels &&
                       program.tensors[block.pieces[i - 1].tensor].file == t.file &&
                       reads.back().offset + reads.back().bytes == offset;
    if (joins) {
      ++reads.back().count;
      reads.back().bytes += bytes;
    } else {
      reads.push_back({.first = i, .count = 1, .offset = offset, .bytes = bytes});
    }
  }
  return reads;
}

bool Placement::streams() const {
  return std::any_of(pinned.begin(), pinned.end(), [](uint8_t p) { return p == 0; });
}

uint64_t Placement::pinned_bytes(const Program& program) const {
  uint64_t sum = 0;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (pinned[b]) sum += program.blocks[b].memory_bytes;
  }
  return sum;
}

uint64_t Placement::streamed_bytes(const Program& program) const {
  double sum = 0;
  for (const Visit& v : program.visits) {
    if (!pinned[v.block]) sum += v.chance * static_cast<double>(program.blocks[v.block].storage_bytes);
  }
  return static_cast<uint64_t>(sum);
}

}  // namespace ridge
