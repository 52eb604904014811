#include "memory/streaming_source.h"

#include "base/check.h"
#include "memory/elastic_pins.h"
#include "memory/expert_cache.h"
#include "memory/pin_loader.h"
#include "memory/row_gatherer.h"
#include "memory/slab.h"
#include "memory/source_layout.h"
#include "memory/stream_slots.h"

namespace ridge {
namespace {

class Source final : public StreamingSource {
 public:
  explicit Source(const StreamingSourceOptions& options)
      : options_(options),
        layout_(SourceLayout::of(*options_.program, options_.placement, options_.gathered, options_.keep_gathered)) {}

  Result<void> open();

  Result<void> begin_pass(const PassInfo& pass) override {
    ++stats_.passes;
    if (slots_) slots_->restart();
    if (experts_) experts_->restart(pass.tokens);
    return {};
  }
  Result<Lease> acquire(BlockId block) override;
  void want(std::span<const BlockId> blocks) override;
  size_t next_ready(std::span<const BlockId> blocks) override;
  bool ready(BlockId block) override {
    if (pinned(block)) return true;
    poll();
    return state(block) == StreamSlots::State::ready;
  }
  bool there(BlockId block) override { return pinned(block) || state(block) != StreamSlots::State::absent; }
  Result<void> gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out) override {
    return gatherer_->gather(tensor, rows, out);
  }
  SourceStats stats() const override;
  const Program& program() const override { return *options_.program; }
  uint64_t give_back(uint64_t bytes) override;
  Result<uint64_t> take_back(uint64_t bytes) override;
  uint64_t given_back() const override { return elastic_ ? elastic_->given_back() : 0; }
  ElasticState elastic_state() const override { return elastic_ ? elastic_->state() : ElasticState{}; }
  void name_task(std::optional<size_t> task) override {
    if (experts_) experts_->name_task(task);
  }
  void begin_turn() override {
    if (experts_) experts_->begin_turn();
  }
  const TaskStats* task_stats() const override { return experts_ ? experts_->tasks() : nullptr; }
  std::string io_description() const override { return io_ ? io_->description() : "nothing is read"; }

 protected:
  void release(BlockId block) override {
    if (pinned(block)) return;
    if (on_demand(block)) return experts_->release(block);
    slots_->release(block);
  }

 private:
  bool pinned(BlockId block) const { return options_.placement.pinned[block] != 0; }
  bool on_demand(BlockId block) const { return options_.program->blocks[block].on_demand; }
  StreamSlots::State state(BlockId block) { return on_demand(block) ? experts_->state(block) : slots_->state(block); }
  void poll() {
    if (slots_) slots_->poll();
    if (experts_) experts_->poll();
  }
  Result<void> allocate();
  Result<void> open_engine();
  // Fills the pins of `placement`, and the kept rows into `kept` if there is such a place.
  Result<void> load(const Placement& placement, uint8_t* kept);

  StreamingSourceOptions options_;
  SourceLayout layout_;
  // Before the engine, which writes into them until it is gone.
  Slab pins_, slot_memory_, expert_memory_, kept_, gather_memory_;
  std::unique_ptr<IoEngine> io_;
  std::optional<StreamSlots> slots_;
  std::optional<ExpertCache> experts_;
  std::optional<RowGatherer> gatherer_;
  std::optional<ElasticPins> elastic_;
  std::vector<std::vector<PieceView>> pinned_pieces_;  // by block
  SourceStats stats_;
};

Result<void> Source::allocate() {
  auto slab = [&](uint64_t bytes, const char* what, bool touch = true) {
    return Slab::allocate(bytes, {.what = what, .huge_pages = options_.huge_pages, .touch = touch});
  };
  // Loading writes all of the pins: the workers that pack find their pages while the next read is under way.
  pins_ = RIDGE_TRY(slab(layout_.pin_bytes, "memory for pinned weights", false));
  slot_memory_ = RIDGE_TRY(slab(layout_.slots * layout_.slot_bytes, "memory for stream slots"));
  expert_memory_ = RIDGE_TRY(slab(layout_.expert_slots * layout_.expert_slot_bytes, "memory for experts"));
  kept_ = RIDGE_TRY(slab(layout_.kept_bytes, "memory for embedding rows"));
  gather_memory_ = RIDGE_TRY(slab(layout_.gather_units * layout_.gather_unit, "a buffer for embedding rows"));
  return {};
}

Result<void> Source::open_engine() {
  IoOptions io{.files = options_.program->files, .buffers = {}, .kind = options_.io, .syscalls = options_.syscalls};
  if (slot_memory_.bytes() > 0) io.buffers.push_back(slot_memory_.span());
  if (expert_memory_.bytes() > 0) io.buffers.push_back(expert_memory_.span());
  if (gather_memory_.bytes() > 0) io.buffers.push_back(gather_memory_.span());
  io_ = RIDGE_TRY(make_io_engine(io));
  return {};
}

Result<void> Source::load(const Placement& placement, uint8_t* kept) {
  const uint64_t read_before = io_->bytes_read();
  const auto begin = std::chrono::steady_clock::now();
  // Released when the pins are filled. The slots serve where they are large enough: nothing streams yet.
  Slab buffers =
      RIDGE_TRY(Slab::allocate(2 * layout_.load_unit, {.what = "a buffer for loading"}));  // huge: reads cost half
  const bool own = layout_.load_unit > 0;
  uint8_t* first = own ? buffers.data() : slot_memory_.data();
  uint8_t* second = first == nullptr ? nullptr : first + (own ? layout_.load_unit : layout_.slot_bytes);
  RIDGE_TRY(load_pins({.program = options_.program,
                       .placement = &placement,
                       .layout = &layout_,
                       .io = io_.get(),
                       .pins = pins_.data(),
                       .kept = kept,
                       .buffers = {first, second},
                       .pool = options_.pool,
                       .pack = options_.pack}));
  stats_.load_bytes += io_->bytes_read() - read_before;
  stats_.load += std::chrono::steady_clock::now() - begin;
  return {};
}

uint64_t Source::give_back(uint64_t bytes) {
  if (!elastic_) return 0;
  const uint64_t freed = elastic_->give_back(bytes);
  slots_->replan();
  return freed;
}

Result<uint64_t> Source::take_back(uint64_t bytes) {
  if (!elastic_) return uint64_t{0};
  const std::vector<BlockId> blocks = elastic_->next_back(bytes);
  if (blocks.empty()) return uint64_t{0};
  slots_->clear();  // they serve as buffers
  Placement these{.pinned = std::vector<uint8_t>(options_.program->blocks.size(), 0)};
  for (BlockId block : blocks) these.pinned[block] = 1;
  const uint64_t before = elastic_->given_back();
  if (auto loaded = load(these, nullptr); !loaded.ok()) {
    elastic_->discard_gone();  // what was written before the error
    return loaded.error();
  }
  elastic_->take_back(blocks);
  slots_->replan();
  return before - elastic_->given_back();
}

Result<void> Source::open() {
  RIDGE_TRY(allocate());
  RIDGE_TRY(open_engine());
  RIDGE_TRY(load(options_.placement, kept_.data()));
  const Program& program = *options_.program;
  pinned_pieces_.resize(program.blocks.size());
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (!pinned(b)) continue;
    for (const PiecePlace& place : layout_.blocks[b]) {
      pinned_pieces_[b].push_back({place.layout, pins_.data() + place.position});
    }
  }
  gatherer_.emplace(RowGathererOptions{.program = &program,
                                       .placement = &options_.placement,
                                       .layout = &layout_,
                                       .io = io_.get(),
                                       .pins = pins_.data(),
                                       .kept = kept_.data(),
                                       .buffers = gather_memory_.data()},
                    options_.gathered);
  const StreamSlotsOptions slots{.program = &program,
                                 .placement = &options_.placement,
                                 .layout = &layout_,
                                 .io = io_.get(),
                                 .trace = options_.trace};
  if (layout_.slots > 0) {
    slots_.emplace(slots,
                   SlotRegion{.memory = slot_memory_.data(), .slot_bytes = layout_.slot_bytes, .slots = layout_.slots});
    slots_->restart();
    if (!options_.placement.elastic.empty()) {
      elastic_.emplace(ElasticPinsOptions{.program = &program, .layout = &layout_, .pins = &pins_}, options_.placement);
    }
  }
  if (layout_.expert_slots > 0) {
    experts_.emplace(
        slots,
        SlotRegion{
            .memory = expert_memory_.data(), .slot_bytes = layout_.expert_slot_bytes, .slots = layout_.expert_slots},
        ExpertTraining{.table = options_.tasks, .mode = options_.task_mode, .task = options_.task});
  }
  return {};
}

void Source::want(std::span<const BlockId> blocks) {
  std::vector<BlockId> in_order, chosen;
  for (BlockId block : blocks) {
    if (!pinned(block)) (on_demand(block) ? chosen : in_order).push_back(block);
  }
  if (!in_order.empty()) slots_->want(in_order);
  if (!chosen.empty()) experts_->want(chosen);
}

Result<Lease> Source::acquire(BlockId block) {
  RIDGE_CHECK(block < options_.program->blocks.size(), "a block of this program");
  ++stats_.visits;
  if (pinned(block)) {
    ++stats_.pinned_visits;
    // The device must not fall idle while we compute on pinned blocks.
    poll();
    return Lease(this, block, pinned_pieces_[block]);
  }
  auto pieces = on_demand(block) ? experts_->acquire(block) : slots_->acquire(block);
  return Lease(this, block, RIDGE_TRY(std::move(pieces)));
}

size_t Source::next_ready(std::span<const BlockId> blocks) {
  poll();
  size_t best = 0;
  bool loading = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (pinned(blocks[i])) return i;
    const StreamSlots::State at = state(blocks[i]);
    if (at == StreamSlots::State::ready) return i;
    if (at == StreamSlots::State::loading && !loading) {
      best = i;
      loading = true;
    }
  }
  return best;
}

SourceStats Source::stats() const {
  SourceStats stats = stats_;
  stats.bytes_read = io_->bytes_read() - stats.load_bytes;
  if (slots_) stats.wait += slots_->waited();
  if (!experts_) return stats;
  stats.wait += experts_->waited();
  stats.experts_asked = experts_->counts().asked;
  stats.expert_hits = experts_->counts().hits;
  stats.experts_passed = experts_->counts().passed;
  return stats;
}

}  // namespace

Result<std::unique_ptr<StreamingSource>> StreamingSource::create(const StreamingSourceOptions& options) {
  RIDGE_CHECK(options.program != nullptr && options.pool != nullptr, "a source needs a program and a pool");
  auto source = std::make_unique<Source>(options);
  RIDGE_TRY(source->open());
  return std::unique_ptr<StreamingSource>(std::move(source));
}

SourceMemory StreamingSource::memory(const Program& program, const Placement& placement,
                                     std::span<const TensorId> gathered, bool keep_gathered) {
  return SourceLayout::of(program, placement, gathered, keep_gathered).memory(program);
}

}  // namespace ridge
