#include "memory/elastic_pins.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// The numbers 0 … count − 1 so that every beginning of the list is spread evenly: by their bits in reverse order (van
// der Corput's sequence).
std::vector<size_t> spread_order(size_t count) {
  std::vector<size_t> order;
  const unsigned bits = static_cast<unsigned>(std::bit_width(count == 0 ? 0 : count - 1));
  for (size_t i = 0; order.size() < count; ++i) {
    size_t reversed = 0;
    for (unsigned b = 0; b < bits; ++b) reversed |= ((i >> b) & 1) << (bits - 1 - b);
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

}  // namespace

ElasticPins::ElasticPins(const ElasticPinsOptions& options, Placement& placement)
    : program_(*options.program), layout_(*options.layout), pins_(*options.pins), placement_(placement) {
  // Small slabs lie on small pages.
  unit_ = pins_.bytes() % kHugePage == 0 ? kHugePage : kSmallPage;
  users_.resize(pins_.bytes() / unit_);
  std::vector<Group> groups;
  uint64_t open = 0;  // bytes of the last group
  for (BlockId b = 0; b < program_.blocks.size(); ++b) {
    if (!placement_.pinned[b]) continue;
    const Units units = units_of(b);
    for (uint64_t u = units.begin; u < units.end; ++u) ++users_[u];
    const bool joins = !groups.empty() && open < 2 * unit_;
    if (!placement_.may_go(b)) {
      open = 2 * unit_;  // a group does not reach across what stays
      continue;
    }
    if (!joins) {
      groups.push_back({});
      open = 0;
    }
    groups.back().blocks.push_back(b);
    ++state_.blocks;
    state_.bytes += program_.blocks[b].memory_bytes;
    open += program_.blocks[b].memory_bytes;
  }
  for (const Group& group : groups) {
    const uint64_t units = units_of(group.blocks.back()).end - units_of(group.blocks.front()).begin;
    state_.largest_step = std::max(state_.largest_step, units * unit_);
  }
  for (size_t i : spread_order(groups.size())) groups_.push_back(std::move(groups[i]));
}

ElasticPins::Units ElasticPins::units_of(BlockId block) const {
  std::span<const PiecePlace> places = layout_.blocks[block];
  const std::vector<Piece>& pieces = program_.blocks[block].pieces;
  if (places.empty()) return {};
  auto first = [](const PiecePlace& p) { return p.layout == Layout::panels && p.into > 0 ? p.into : p.position; };
  const Piece& last = pieces.back();
  const StoredTensor& t = program_.tensors[last.tensor];
  const uint64_t end = places.back().position + panels_bytes(t.type, last.row_end - last.row_begin, t.cols);
  return {first(places.front()) / unit_, (end + kOverread + unit_ - 1) / unit_};
}

uint64_t ElasticPins::give_back(uint64_t bytes) {
  uint64_t freed = 0;
  while (freed < bytes && gone_ < groups_.size()) {
    for (BlockId b : groups_[gone_].blocks) {
      placement_.pinned[b] = 0;
      const Units units = units_of(b);
      for (uint64_t u = units.begin; u < units.end && u < users_.size(); ++u) {
        RIDGE_CHECK(users_[u] > 0, "a pinned block is counted in all of its units");
        if (--users_[u] > 0) continue;
        pins_.discard(u * unit_, unit_);
        freed += unit_;
      }
    }
    state_.gone += static_cast<uint32_t>(groups_[gone_].blocks.size());
    ++gone_;
  }
  given_back_ += freed;
  return freed;
}

std::vector<BlockId> ElasticPins::next_back(uint64_t bytes) const {
  std::vector<BlockId> blocks;
  uint64_t taken = 0;
  std::vector<uint8_t> claimed(users_.size(), 0);  // units at the seams of groups are needed once
  for (size_t g = gone_; g > 0; --g) {
    for (BlockId b : groups_[g - 1].blocks) {
      const Units units = units_of(b);
      for (uint64_t u = units.begin; u < units.end && u < users_.size(); ++u) {
        if (users_[u] == 0 && !std::exchange(claimed[u], uint8_t{1})) taken += unit_;
      }
    }
    if (taken > bytes) break;
    blocks.insert(blocks.end(), groups_[g - 1].blocks.begin(), groups_[g - 1].blocks.end());
  }
  return blocks;
}

void ElasticPins::take_back(std::span<const BlockId> blocks) {
  size_t done = 0;
  while (done < blocks.size()) {
    RIDGE_CHECK(gone_ > 0, "what comes back has gone before");
    const Group& group = groups_[--gone_];
    for (BlockId b : group.blocks) {
      placement_.pinned[b] = 1;
      const Units units = units_of(b);
      for (uint64_t u = units.begin; u < units.end && u < users_.size(); ++u) {
        if (users_[u]++ == 0) given_back_ -= unit_;
      }
    }
    state_.gone -= static_cast<uint32_t>(group.blocks.size());
    done += group.blocks.size();
  }
}

void ElasticPins::discard_gone() const {
  for (uint64_t u = 0; u < users_.size(); ++u) {
    if (users_[u] == 0) pins_.discard(u * unit_, unit_);
  }
}

}  // namespace ridge
