#include "memory/cache_manager.h"

#include <algorithm>
#include <utility>

namespace ridge {
namespace {

// So often in a pass the worths of all that is cached are reckoned anew: turns go by. In between those change that are
// used.
constexpr double kRefreshes = 8;
// Foretold turns after which one counts half for the governor.
constexpr double kGovernorWeight = 1.0 / 64;

}  // namespace

CacheManager::CacheManager(const ImportanceModel& model, CacheManagerOptions options)
    : model_(model), options_(std::move(options)), importance_(model_) {}

// Lists grow by doubling.
uint64_t CacheManager::heap_bytes(size_t blocks) {
  return Importance::heap_bytes(blocks) + 2 * blocks * (sizeof(Entry) + sizeof(uint32_t) + sizeof(double));
}

CacheManager::Entry& CacheManager::entry(uint32_t block) {
  if (block >= entries_.size()) entries_.resize(block + 1);
  return entries_[block];
}

// Worth of a byte: expected uses, each of which saves a reload.
double CacheManager::density(uint32_t block) const {
  const Entry& e = entries_[block];
  return importance_.expected_uses(block) * e.reload / static_cast<double>(e.bytes);
}

CacheChange CacheManager::begin_pass() {
  importance_.begin_pass();
  refreshed_ = -1;
  const uint64_t pass = importance_.pass();
  std::erase_if(waiting_, [&](uint32_t block) {
    Entry& e = entries_[block];
    if (e.foretold_for >= pass) return false;
    judge(e, false);
    return true;
  });
  CacheChange out;
  for (uint32_t block : used_now_) read_ahead(model_.next_pass[block], out);
  used_now_.clear();
  return out;
}

void CacheManager::judge(Entry& e, bool used) {
  if (e.foretold_for == 0) return;
  e.foretold_for = 0;
  ++foretold_.judged;
  foretold_.used += used ? 1 : 0;
  precision_ += ((used ? 1.0 : 0.0) - precision_) * kGovernorWeight;
}

void CacheManager::refresh() {
  if (refreshed_ >= 0 && importance_.now() < refreshed_ + 1 / kRefreshes) return;
  refreshed_ = importance_.now();
  for (size_t i = 0; i < cached_.size(); ++i) worth_[i] = density(cached_[i]);
}

void CacheManager::keep(uint32_t block, double worth) {
  Entry& e = entries_[block];
  e.at = static_cast<int32_t>(cached_.size());
  cached_.push_back(block);
  worth_.push_back(worth);
  used_ += e.bytes;
}

void CacheManager::drop(size_t at) {
  Entry& e = entries_[cached_[at]];
  e.at = -1;
  used_ -= e.bytes;
  if (at + 1 < cached_.size()) {
    cached_[at] = cached_.back();
    worth_[at] = worth_.back();
    entries_[cached_[at]].at = static_cast<int32_t>(at);
  }
  cached_.pop_back();
  worth_.pop_back();
}

// Room for so many bytes of this worth; false, with nothing dropped, where something that is worth as much would have
// to leave.
bool CacheManager::make_room(uint64_t bytes, double worth, std::vector<uint32_t>& left) {
  const uint64_t capacity = options_.capacity - std::min(options_.capacity, options_.pinned_bytes);
  if (bytes > capacity) return false;
  refresh();
  std::vector<std::pair<double, uint32_t>> victims;
  uint64_t room = capacity - used_;
  while (room < bytes) {
    size_t least = cached_.size();
    for (size_t i = 0; i < cached_.size(); ++i) {
      if (worth_[i] >= worth) continue;
      const std::pair<double, uint32_t> candidate(worth_[i], cached_[i]);
      if (!victims.empty() && candidate <= victims.back()) continue;  // taken already: they come in order
      if (least == cached_.size() || candidate < std::pair(worth_[least], cached_[least])) least = i;
    }
    if (least == cached_.size()) return false;
    victims.emplace_back(worth_[least], cached_[least]);
    room += entries_[cached_[least]].bytes;
  }
  for (const auto& [least_worth, block] : victims) {
    drop(static_cast<size_t>(entries_[block].at));
    left.push_back(block);
  }
  return true;
}

CacheAccess CacheManager::access(const CachedBlock& asked) {
  CacheAccess out;
  const uint32_t block = asked.block;
  (void)entry(block);
  importance_.note_use(block);
  Entry& e = entries_[block];
  e.reload = asked.reload;
  if (e.foretold_for == importance_.pass()) judge(e, true);
  if (block < options_.pinned.size() && options_.pinned[block] != 0) {
    e.bytes = asked.bytes;
    out.hit = std::exchange(e.pinned_here, true);
    out.kept = true;
  } else if (e.at >= 0) {
    out.hit = out.kept = true;
    worth_[static_cast<size_t>(e.at)] = density(block);
  } else {
    e.bytes = asked.bytes;
    const double worth = density(block);
    out.kept = make_room(asked.bytes, worth, out.change.left);
    if (out.kept) keep(block, worth);
  }
  if (options_.read_ahead.least_chance <= 1 && block < model_.same_pass.size()) {
    used_now_.push_back(block);
    read_ahead(model_.same_pass[block], out.change);
    settle(block, out);
  }
  return out;
}

std::vector<uint32_t> CacheManager::repin(std::vector<uint8_t> pinned, uint64_t pinned_bytes) {
  options_.pinned = std::move(pinned);
  options_.pinned_bytes = pinned_bytes;
  for (uint32_t block = 0; block < entries_.size(); ++block) {
    Entry& e = entries_[block];
    const bool is_pinned = block < options_.pinned.size() && options_.pinned[block] != 0;
    if (is_pinned && e.at >= 0) {
      drop(static_cast<size_t>(e.at));
      e.pinned_here = true;
    } else if (!is_pinned && e.pinned_here) {
      e.pinned_here = false;
      keep(block, 0);
    }
  }
  refreshed_ = -1;
  refresh();
  const uint64_t room = options_.capacity - std::min(options_.capacity, options_.pinned_bytes);
  std::vector<uint32_t> left;
  while (used_ > room) {
    const auto least = static_cast<size_t>(std::min_element(worth_.begin(), worth_.end()) - worth_.begin());
    left.push_back(cached_[least]);
    drop(least);
  }
  return left;
}

void CacheManager::pin_came(const CachedBlock& block) {
  Entry& e = entry(block.block);
  e.bytes = block.bytes;
  e.reload = block.reload;
  e.pinned_here = true;
}

// What was read ahead may have pushed out the block that was asked for.
void CacheManager::settle(uint32_t block, CacheAccess& out) const {
  const Entry& e = entries_[block];
  if (!out.kept || e.pinned_here || e.at >= 0) return;
  out.kept = false;
  if (!out.hit) std::erase(out.change.left, block);  // it never came
}

// Of the blocks that are foretold those that are likely enough, and worth more than what they replace. Their turns are
// in this pass.
void CacheManager::read_ahead(std::span<const ForetellingLink> links, CacheChange& out) {
  const bool governed = precision_ < options_.read_ahead.least_precision;
  for (const ForetellingLink& link : links) {
    Entry& e = entry(link.block);
    const bool over = importance_.now() + importance_.until_turn(link.block) > 1;
    if (over || e.at >= 0 || e.foretold_for != 0 || e.bytes == 0) continue;
    const double chance = importance_.foretold(link.block);
    if (chance < options_.read_ahead.least_chance) continue;
    if (governed) {
      ++foretold_.held_back;
    } else {
      const double worth = chance * e.reload / static_cast<double>(e.bytes);
      if (!make_room(e.bytes, worth, out.left)) continue;
      keep(link.block, worth);
      out.ahead.push_back(link.block);
      ++foretold_.read;
    }
    e.foretold_for = importance_.pass();
    waiting_.push_back(link.block);
  }
}

}  // namespace ridge
