#include "memory/stream_slots.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {
namespace {

// Tags of the slots: apart from those of the loader, of gathered rows and of experts.
constexpr uint32_t kFirstTag = 0x40000000, kLastTag = 0x5fffffff;

}  // namespace

StreamSlots::StreamSlots(const StreamSlotsOptions& options, const SlotRegion& region)
    : options_(options), loader_(options, {.first_tag = kFirstTag, .last_tag = kLastTag}) {
  slots_.resize(region.slots);
  claimed_.reserve(region.slots);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].memory = region.memory + i * region.slot_bytes;
  replan();
}

void StreamSlots::replan() {
  order_.clear();
  cursor_ = 0;
  for (const Visit& visit : options_.program->visits) {
    const bool streams = !options_.placement->pinned[visit.block] && !options_.program->blocks[visit.block].on_demand;
    if (streams) order_.push_back(visit.block);
  }
}

void StreamSlots::clear() {
  for (Slot& slot : slots_) {
    RIDGE_CHECK(slot.leases == 0, "slots are cleared between passes");
    // Nobody waits for these bytes any more, nor for what went wrong with them.
    if (slot.content == Content::loading) (void)loader_.finish(slot);
    loader_.forget(slot);
  }
}

StreamSlots::Slot* StreamSlots::find(BlockId block) {
  for (Slot& slot : slots_) {
    if (slot.content != Content::nothing && slot.block == block) return &slot;
  }
  return nullptr;
}

size_t StreamSlots::upcoming_count() const { return wanted_.size() + order_.size(); }

// The blocks in the order in which they will be needed: 0 is the next one.
BlockId StreamSlots::upcoming(size_t ahead) const {
  if (ahead < wanted_.size()) return wanted_[ahead];
  return order_[(cursor_ + ahead - wanted_.size()) % order_.size()];
}

bool StreamSlots::claimed(const Slot& slot) const {
  return std::find(claimed_.begin(), claimed_.end(), &slot) != claimed_.end();
}

// A slot that nobody uses and that holds none of the claimed blocks. One that is still being filled with something else
// cannot be had until the device is done with it.
// Of several the one that was used longest ago.
StreamSlots::Slot* StreamSlots::free_slot() {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.leases > 0 || claimed(slot)) continue;
    if (slot.content == Content::loading && !options_.io->ready(slot.tag)) continue;
    if (oldest == nullptr || slot.used < oldest->used) oldest = &slot;
  }
  // Nobody waits for these bytes any more, nor for what went wrong with them.
  if (oldest != nullptr && oldest->content == Content::loading) (void)loader_.finish(*oldest);
  return oldest;
}

void StreamSlots::read_ahead() {
  claimed_.clear();
  const size_t most = upcoming_count();
  for (size_t ahead = 0; ahead < most && claimed_.size() < slots_.size(); ++ahead) {
    const BlockId block = upcoming(ahead);
    Slot* slot = find(block);
    if (slot == nullptr) {
      slot = free_slot();
      if (slot == nullptr) return;
      submit(*slot, block);
    }
    if (!claimed(*slot)) claimed_.push_back(slot);
  }
}

void StreamSlots::submit(Slot& slot, BlockId block) {
  slot.turn = next_turn_++;
  loader_.submit(slot, block);
}

void StreamSlots::poll() {
  for (Slot& slot : slots_) {
    if (slot.content != Content::loading || !options_.io->ready(slot.tag)) continue;
    // An error stays with the slot until the block is acquired.
    if (auto done = loader_.finish(slot); !done.ok()) {
      slot.content = Content::failed;
      slot.error = std::move(done).error();
    }
  }
}

void StreamSlots::restart() {
  cursor_ = 0;
  wanted_.clear();
  read_ahead();
}

void StreamSlots::want(std::span<const BlockId> blocks) {
  for (BlockId block : blocks) {
    if (!options_.placement->pinned[block]) wanted_.push_back(block);
  }
  read_ahead();
}

// Moves the cursor past this visit; visits in between were left out by the pass (a head that no token needs).
void StreamSlots::note_visit(BlockId block) {
  auto wanted = std::find(wanted_.begin(), wanted_.end(), block);
  if (wanted != wanted_.end()) wanted_.erase(wanted);
  for (size_t ahead = 0; ahead < order_.size(); ++ahead) {
    size_t at = (cursor_ + ahead) % order_.size();
    if (order_[at] != block) continue;
    cursor_ = (at + 1) % order_.size();
    return;
  }
}

// For a block that nobody foresaw: an idle slot, or the one whose block is needed last, once its read is over.
Result<StreamSlots::Slot*> StreamSlots::slot_for_demand() {
  Slot* best = nullptr;
  for (Slot& slot : slots_) {
    if (slot.leases > 0) continue;
    if (slot.content == Content::nothing || slot.content == Content::failed) return &slot;
    if (best == nullptr || slot.turn > best->turn) best = &slot;
  }
  RIDGE_CHECK(best != nullptr, "more blocks are held than there are slots: release a lease before acquiring the next");
  if (best->content == Content::loading) (void)loader_.finish(*best);
  return best;
}

Result<std::span<const PieceView>> StreamSlots::acquire(BlockId block) {
  const bool visit = find(block) == nullptr || find(block)->leases == 0;
  if (visit) note_visit(block);
  Slot* slot = find(block);
  if (slot != nullptr && slot->content == Content::failed) {
    slot->content = Content::nothing;
    return *std::exchange(slot->error, std::nullopt);
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool unforeseen = slot == nullptr;
  if (unforeseen) {
    slot = RIDGE_TRY(slot_for_demand());
    submit(*slot, block);
  }
  if (slot->content == Content::loading) {
    RIDGE_TRY(loader_.arrive(*slot, {.since = begin, .unforeseen = unforeseen}));
  }
  ++slot->leases;
  poll();
  read_ahead();
  return std::span<const PieceView>(slot->pieces);
}

void StreamSlots::release(BlockId block) {
  Slot* slot = find(block);
  RIDGE_CHECK(slot != nullptr && slot->leases > 0, "only a held block is released");
  --slot->leases;
  slot->used = ++next_use_;
  poll();
  if (slot->leases == 0) read_ahead();
}

StreamSlots::State StreamSlots::state(BlockId block) {
  poll();
  const Slot* slot = find(block);
  if (slot == nullptr) return State::absent;
  return slot->content == Content::loading ? State::loading : State::ready;
}

}  // namespace ridge
