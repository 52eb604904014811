// The weight source of real runs: pinned blocks as panels in memory, the others through stream slots, read ahead by an
// I/O engine in the program's order. With every block pinned it is the resident source: weights are rearranged into
// panels piece by piece while they are read, so that memory never holds them twice.
//
// A streamed block arrives in a slot in the file's layout, and the forward pass rearranges it 16 rows at a time in the
// core's own cache: no second copy in memory, no barrier (docs/streaming.md). Blocks of a .ridge file are panels
// already. Blocks on demand (experts) have slots of their own: the model says with want() which it needs, and what is
// in a slot when it is wanted again is not read again.
//
//   auto source = RIDGE_TRY(StreamingSource::create({.program = &program, .placement = placement, .pool = &pool,
//                                                    .pack = kernels.pack, .io = IoKind::automatic}));
//   uint64_t charged = StreamingSource::memory(program, placement, gathered, false).total();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "memory/io_engine.h"
#include "memory/task_pins.h"
#include "memory/weight_source.h"
#include "program/trace.h"
#include "tensor/panel.h"

namespace ridge {

using PackFunction = void (*)(const PackArgs&);

struct StreamingSourceOptions {
  const Program* program = nullptr;  // must outlive the source
  Placement placement;
  ThreadPool* pool = nullptr;          // packs pins in parallel while loading
  const PackFunction* pack = nullptr;  // table by type, as Kernels::pack
  IoKind io = IoKind::automatic;
  std::vector<TensorId> gathered;  // tensors gather() will be asked for, and …
  bool keep_gathered = false;      // … whether to hold their rows in memory when they are in no pinned block
  Trace* trace = nullptr;
  // What a cache by importance of blocks on demand is trained by; nullptr: nothing. Must outlive the source.
  const TaskTable* tasks = nullptr;
  TaskMode task_mode = TaskMode::mean;
  std::optional<size_t> task = {};  // of TaskMode::named
  bool huge_pages = true;
  Syscalls* syscalls = nullptr;  // nullptr: the real ones (tests make them fail)
};

// What a source will charge to the process, by the same arithmetic that it then allocates by.
struct SourceMemory {
  uint64_t pins = 0, slots = 0, experts = 0 /* slots for them */, gathered = 0, io = 0;
  uint64_t total() const { return pins + slots + experts + gathered + io; }
};

// Pinned blocks that may be given back, and those of them that are.
struct ElasticState {
  uint32_t blocks = 0, gone = 0;
  uint64_t bytes = 0;         // of all of them, as panels
  uint64_t largest_step = 0;  // the most that go or come together: less cannot be asked for
};

class StreamingSource : public WeightSource {
 public:
  // Opens the files, allocates everything at once, fills the pins (progress bar), starts the first reads.
  // Bad input: a file that is too short or was replaced; I/O: read failures with offset.
  static Result<std::unique_ptr<StreamingSource>> create(const StreamingSourceOptions& options);
  // The most that a source made with these options charges, at its peak (while it loads).
  static SourceMemory memory(const Program& program, const Placement& placement, std::span<const TensorId> gathered,
                             bool keep_gathered);

  // Memory has become short: unpins elastic blocks (Placement) until `bytes` are free or none is left; they stream from
  // now on. What the kernel got. Between passes.
  virtual uint64_t give_back(uint64_t bytes) = 0;
  // There is room again: reads blocks that were given back into their places, as far as `bytes` allow. What they took.
  // I/O errors, after which they are still given back. Between passes.
  virtual Result<uint64_t> take_back(uint64_t bytes) = 0;
  virtual uint64_t given_back() const = 0;  // bytes, now
  virtual ElasticState elastic_state() const = 0;

  // Where a cache is trained: the user names a task (nothing: the mean of all), or a turn of a conversation begins.
  // Between passes.
  virtual void name_task(std::optional<size_t> task) = 0;
  virtual void begin_turn() = 0;
  virtual const TaskStats* task_stats() const = 0;  // nullptr: no cache is trained

  // "io_uring, O_DIRECT, 32 requests of 256 KiB" and the reasons for what was not used.
  virtual std::string io_description() const = 0;
};

}  // namespace ridge
