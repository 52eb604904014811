#include "memory/expert_cache.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace ridge {
namespace {

// Apart from the tags of stream slots, of the loader and of gathered rows.
constexpr uint32_t kFirstTag = 0x60000000, kLastTag = 0x7fffffff;
// Choices of a layer's router after which a use counts half: about a paragraph.
constexpr float kHalfLife = 64;

}  // namespace

ExpertCache::ExpertCache(const StreamSlotsOptions& options, const SlotRegion& region, const ExpertTraining& training)
    : options_(options), loader_(options, {.first_tag = kFirstTag, .last_tag = kLastTag, .urgent = true}) {
  slots_.resize(region.slots);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].memory = region.memory + i * region.slot_bytes;
  uses_.resize(options_.program->blocks.size());
  share_out(region);
  if (manager_ && training.table != nullptr) set_up_training(training);
}

void ExpertCache::share_out(const SlotRegion& region) {
  const Program& program = *options_.program;
  const auto groups = program.expert_blocks();
  groups_.resize(std::max<size_t>(1, groups.size()));
  for (uint32_t g = 0; g < groups.size(); ++g) {
    uint32_t streamed = 0;
    for (BlockId block : groups[g]) {
      uses_[block].group = g;
      streamed += options_.placement->pinned[block] ? 0 : 1;
    }
    if (options_.placement->expert_policy == ExpertPolicy::importance) continue;
    // A layer with fewer blocks than its share leaves the rest to all.
    groups_[g] = {.first_slot = first_shared_, .slots = std::min(options_.placement->expert_cache, streamed)};
    first_shared_ += groups_[g].slots;
  }
  RIDGE_CHECK(first_shared_ < region.slots, "experts that are in no cache need a slot");
  if (options_.placement->expert_policy != ExpertPolicy::importance) return;
  model_ = ImportanceModel::untrained();
  // A block takes a slot, whatever its size.
  manager_.emplace(
      model_, CacheManagerOptions{.capacity = options_.placement->expert_cache * std::max<size_t>(1, groups.size())});
}

uint64_t ExpertCache::heap_bytes(uint32_t slots, size_t blocks, ExpertPolicy policy) {
  constexpr uint64_t kPieces = 4 * sizeof(PieceView);  // of an expert's block
  const uint64_t manager = policy == ExpertPolicy::importance ? CacheManager::heap_bytes(blocks) : 0;
  return slots * (sizeof(Slot) + kPieces) + blocks * sizeof(Use) + manager;
}

void ExpertCache::restart(uint32_t tokens) {
  if (manager_) (void)manager_->begin_pass();  // it reads nothing ahead
  for (BlockId block : wanted_) uses_[block].waiting = false;
  wanted_.clear();
  if (!pins_) return;
  if (!used_now_.empty() && pins_->note_pass(used_now_, tokens_)) repin(false);
  used_now_.clear();
  tokens_ = tokens;
  ++task_stats_.pass;
  read_pins();
}

float ExpertCache::score(const Use& use) const {
  const uint32_t age = groups_[use.group].choice - use.choice;
  return use.score * std::exp2(-static_cast<float>(age) / kHalfLife);
}

void ExpertCache::tell_manager(BlockId block) {
  const CacheAccess access = manager_->access(in_cache(block));
  uses_[block].kept = access.kept;
  for (uint32_t left : access.change.left) uses_[left].kept = false;
}

// Counts a block that the present choice of its layer asks for.
void ExpertCache::note_use(BlockId block) {
  if (manager_) tell_manager(block);
  if (pins_ && std::exchange(used_pass_[block], task_stats_.pass) != task_stats_.pass) used_now_.push_back(block);
  Use& use = uses_[block];
  use.score = score(use) + 1;
  use.choice = groups_[use.group].choice;
  ++counts_.asked;
  if (use.slot < 0 || slots_[static_cast<size_t>(use.slot)].content == Content::failed) return;
  ++counts_.hits;
  slots_[static_cast<size_t>(use.slot)].used = ++clock_;
}

void ExpertCache::want(std::span<const BlockId> blocks) {
  if (blocks.empty()) return;
  ++groups_[uses_[blocks.front()].group].choice;
  for (BlockId block : blocks) {
    if (options_.placement->pinned[block] || uses_[block].waiting) continue;
    note_use(block);
    uses_[block].waiting = true;
    wanted_.push_back(block);
  }
  read_ahead();
}

// Free to be overwritten: nobody holds it, the device is done with it, and nobody waits for it.
bool ExpertCache::idle(const Slot& slot) const {
  if (slot.leases > 0) return false;
  if (slot.content == Content::nothing) return true;
  if (slot.content == Content::loading && !options_.io->ready(slot.tag)) return false;
  return !uses_[slot.block].waiting;
}

// Whether it is to stay: the present choice of its layer uses what it holds, or the manager keeps it.
bool ExpertCache::stays(const Slot& slot) const {
  if (slot.content == Content::nothing || slot.content == Content::failed) return false;
  const Use& use = uses_[slot.block];
  if (manager_) return use.kept;
  return use.choice == groups_[use.group].choice;
}

bool ExpertCache::better_victim(const Slot& a, const Slot& b) const {
  const bool a_empty = a.content == Content::nothing || a.content == Content::failed;
  const bool b_empty = b.content == Content::nothing || b.content == Content::failed;
  if (a_empty || b_empty) return a_empty && !b_empty;
  if (options_.placement->expert_policy == ExpertPolicy::decayed_lfu) {
    const float score_a = score(uses_[a.block]), score_b = score(uses_[b.block]);
    if (score_a != score_b) return score_a < score_b;
  }
  return a.used < b.used;
}

// Of these slots the one to be overwritten, nullptr if none may be.
ExpertCache::Slot* ExpertCache::victim(uint32_t first, uint32_t count, bool of_cache) {
  Slot* best = nullptr;
  for (uint32_t i = first; i < first + count; ++i) {
    Slot& slot = slots_[i];
    if (!idle(slot) || (of_cache && stays(slot))) continue;
    if (best == nullptr || better_victim(slot, *best)) best = &slot;
  }
  return best;
}

ExpertCache::Slot* ExpertCache::slot_for(BlockId block) {
  const Group& group = groups_[uses_[block].group];
  Slot* slot = victim(group.first_slot, group.slots, true);
  if (slot != nullptr) return slot;
  return victim(first_shared_, static_cast<uint32_t>(slots_.size()) - first_shared_, manager_.has_value());
}

void ExpertCache::read_ahead() {
  for (BlockId block : wanted_) {
    if (uses_[block].slot >= 0) continue;
    Slot* slot = slot_for(block);
    if (slot == nullptr) return;
    submit(*slot, block);
  }
}

// Forgets what a slot holds; nobody waits for these bytes any more, nor for what went wrong with them.
void ExpertCache::drop(Slot& slot) {
  if (slot.content == Content::nothing) return;
  if (slot.content == Content::loading) {
    (void)loader_.finish(slot);
    note_over(slot);
  }
  uses_[slot.block].slot = -1;
  loader_.forget(slot);
}

void ExpertCache::submit(Slot& slot, BlockId block) {
  drop(slot);
  const auto index = static_cast<uint32_t>(&slot - slots_.data());
  if (manager_ ? !uses_[block].kept : index >= first_shared_) ++counts_.passed;
  uses_[block].slot = static_cast<int32_t>(index);
  slot.used = ++clock_;
  loading_.push_back(index);
  loader_.submit(slot, block);
}

// A load was finished. Whoever asks for a block again that did not come asks the device anew.
void ExpertCache::note_over(Slot& slot) {
  std::erase(loading_, static_cast<uint32_t>(&slot - slots_.data()));
  if (slot.content == Content::nothing) uses_[slot.block].slot = -1;
}

void ExpertCache::poll() {
  for (size_t i = 0; i < loading_.size();) {
    Slot& slot = slots_[loading_[i]];
    if (!options_.io->ready(slot.tag)) {
      ++i;
      continue;
    }
    const auto index = static_cast<int32_t>(loading_[i]);
    auto done = loader_.finish(slot);
    note_over(slot);  // takes it out of loading_
    if (done.ok()) continue;
    // An error stays with the slot until the block is acquired.
    slot.content = Content::failed;
    slot.error = std::move(done).error();
    uses_[slot.block].slot = index;
  }
}

// For a block that is in no slot and that none is free for: whichever may be overwritten, once its read is over.
Result<ExpertCache::Slot*> ExpertCache::slot_for_demand(BlockId block) {
  if (Slot* slot = slot_for(block); slot != nullptr) return slot;
  Slot* best = nullptr;
  for (Slot& slot : slots_) {
    if (slot.leases > 0) continue;
    if (best == nullptr || slot.used > best->used) best = &slot;
  }
  RIDGE_CHECK(best != nullptr, "more blocks are held than there are slots: release a lease before acquiring the next");
  return best;
}

Result<std::span<const PieceView>> ExpertCache::acquire(BlockId block) {
  Use& use = uses_[block];
  const bool held = use.slot >= 0 && slots_[static_cast<size_t>(use.slot)].leases > 0;
  if (use.waiting) {
    use.waiting = false;
    wanted_.erase(std::find(wanted_.begin(), wanted_.end(), block));
  } else if (!held && use.choice != groups_[use.group].choice) {
    note_use(block);  // nobody said that it would be wanted
  }
  if (use.slot >= 0 && slots_[static_cast<size_t>(use.slot)].content == Content::failed) {
    Slot& failed = slots_[static_cast<size_t>(use.slot)];
    Error error = *std::exchange(failed.error, std::nullopt);
    drop(failed);
    return error;
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool unforeseen = use.slot < 0;
  if (unforeseen) submit(*RIDGE_TRY(slot_for_demand(block)), block);
  Slot& slot = slots_[static_cast<size_t>(use.slot)];
  if (slot.content == Content::loading) {
    auto done = loader_.arrive(slot, {.since = begin, .unforeseen = unforeseen});
    note_over(slot);
    RIDGE_TRY(std::move(done));
  }
  ++slot.leases;
  poll();
  read_ahead();
  return std::span<const PieceView>(slot.pieces);
}

void ExpertCache::release(BlockId block) {
  const int32_t at = uses_[block].slot;
  RIDGE_CHECK(at >= 0 && slots_[static_cast<size_t>(at)].leases > 0, "only a held block is released");
  Slot& slot = slots_[static_cast<size_t>(at)];
  --slot.leases;
  slot.used = ++clock_;
  poll();
  if (slot.leases == 0) read_ahead();
}

ExpertCache::State ExpertCache::state(BlockId block) const {
  const int32_t at = uses_[block].slot;
  if (at < 0) return State::absent;
  return slots_[static_cast<size_t>(at)].content == Content::loading ? State::loading : State::ready;
}

}  // namespace ridge
