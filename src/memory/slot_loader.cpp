#include "memory/slot_loader.h"

#include <utility>

namespace ridge {

void SlotLoader::forget(LoadSlot& slot) {
  if (slot.content == SlotContent::ready && source_.trace != nullptr) {
    const TraceClock::time_point now = TraceClock::now();
    source_.trace->add({.lane = Lane::release, .block = slot.block, .begin = now, .end = now});
  }
  slot.content = SlotContent::nothing;
  slot.error.reset();
}

void SlotLoader::submit(LoadSlot& slot, BlockId block) {
  std::span<const PiecePlace> places = source_.layout->in_slot(block);
  const Program& program = *source_.program;
  forget(slot);
  slot.content = SlotContent::loading;
  slot.block = block;
  slot.tag = next_tag_;
  next_tag_ = next_tag_ == options_.last_tag ? options_.first_tag : next_tag_ + 1;
  slot.pieces.clear();
  if (source_.trace != nullptr) slot.submitted = TraceClock::now();
  for (const PiecePlace& place : places) slot.pieces.push_back({place.layout, slot.memory + place.position});
  for (const JoinedPieces& read : joined_pieces(program, program.blocks[block])) {
    auto submitted = source_.io->submit({.file = program.tensors[program.blocks[block].pieces[read.first].tensor].file,
                                         .offset = read.offset,
                                         .bytes = read.bytes,
                                         .into = slot.memory + places[read.first].into,
                                         .tag = slot.tag,
                                         .urgent = options_.urgent});
    // Whoever acquires the block is told; what was submitted before must still arrive first.
    if (!submitted.ok() && !slot.error) slot.error = submitted.error();
  }
}

Result<void> SlotLoader::finish(LoadSlot& slot) {
  auto done = source_.io->wait(slot.tag);
  if (source_.trace != nullptr) {
    source_.trace->add({.lane = Lane::read,
                        .block = slot.block,
                        .begin = slot.submitted,
                        .end = TraceClock::now(),
                        .bytes = source_.program->blocks[slot.block].storage_bytes});
  }
  slot.content = SlotContent::ready;
  if (done.ok() && !slot.error) return {};
  slot.content = SlotContent::nothing;
  if (slot.error) return *std::exchange(slot.error, std::nullopt);
  return done;
}

Result<void> SlotLoader::arrive(LoadSlot& slot, const Wait& wait) {
  const bool waits = wait.unforeseen || !source_.io->ready(slot.tag);
  auto done = finish(slot);
  if (!waits) return done;
  const auto end = TraceClock::now();
  waited_ += end - wait.since;
  if (source_.trace != nullptr) {
    source_.trace->add({.lane = Lane::wait, .block = slot.block, .begin = wait.since, .end = end, .bytes = 0});
  }
  return done;
}

}  // namespace ridge
