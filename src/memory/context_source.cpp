#include "memory/context_source.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/units.h"
#include "memory/slab.h"
#include "memory/source_layout.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

SourceLayout layout_of(const Program& program) {
  return SourceLayout::of(program, {.pinned = std::vector<uint8_t>(program.blocks.size(), 0), .slots = 1}, {}, false);
}

// Where a block's panels lie: one piece after the other.
uint64_t panel_place(const Program& program, const Piece& piece, uint64_t& end) {
  const StoredTensor& t = program.tensors[piece.tensor];
  const uint64_t begin = round_up(end, kOverread);
  end = begin + panels_bytes(t.type, piece.row_end - piece.row_begin, t.cols);
  return begin;
}

uint64_t panel_bytes_of(const Program& program, const Block& block) {
  uint64_t end = 0;
  for (const Piece& piece : block.pieces) panel_place(program, piece, end);
  return end + kOverread;
}

class Contexts final : public ContextSource {
 public:
  explicit Contexts(const ContextSourceOptions& options) : o_(options), layout_(layout_of(*options.program)) {}

  Result<void> open() {
    io_ =
        RIDGE_TRY(make_io_engine({.files = o_.program->files, .buffers = {}, .kind = o_.io, .syscalls = o_.syscalls}));
    return {};
  }

  Result<void> begin_pass(const PassInfo&) override {
    ++stats_.passes;
    return {};
  }
  Result<Lease> acquire(BlockId block) override;
  void want(std::span<const BlockId>) override {}
  size_t next_ready(std::span<const BlockId>) override { return 0; }
  Result<void> gather(TensorId, std::span<const uint32_t>, Matrix<float>) override {
    return io_error("rows of a tensor are not read where each block is loaded by itself");
  }
  SourceStats stats() const override {
    SourceStats stats = stats_;
    stats.bytes_read = io_->bytes_read();
    return stats;
  }
  const Program& program() const override { return *o_.program; }

 protected:
  void release(BlockId block) override;

 private:
  Result<void> load(const Block& block, std::span<const PiecePlace> places);
  Result<void> init(const Block& block, std::span<const PiecePlace> places);
  void pack(const StoredTensor& t, const Piece& piece, const uint8_t* rows, uint8_t* panels);

  ContextSourceOptions o_;
  SourceLayout layout_;
  Slab read_, panels_;  // before the engine, which writes into them until it is gone
  std::unique_ptr<IoEngine> io_;
  std::vector<PieceView> pieces_;
  uint32_t next_tag_ = 0;
  bool held_ = false;
  SourceStats stats_;
};

Result<Lease> Contexts::acquire(BlockId id) {
  RIDGE_CHECK(id < program().blocks.size() && !held_, "one block at a time");
  ++stats_.visits;
  const Block& block = program().blocks[id];
  const Clock::time_point begin = Clock::now();
  RIDGE_TRY(load(block, layout_.blocks[id]));
  const Clock::time_point loaded = Clock::now();
  RIDGE_TRY(init(block, layout_.blocks[id]));
  const Clock::time_point ready = Clock::now();
  stats_.wait += ready - begin;
  if (o_.times != nullptr) o_.times->add(block.name, {.load = loaded - begin, .init = ready - loaded});
  held_ = true;
  return Lease(this, id, pieces_);
}

Result<void> Contexts::load(const Block& block, std::span<const PiecePlace> places) {
  const uint32_t tag = next_tag_++;
  // The device writes all of it.
  read_ = RIDGE_TRY(Slab::allocate(layout_.slot_bytes, {.what = "memory for a block", .touch = false}));
  Result<void> done;
  for (const JoinedPieces& read : joined_pieces(program(), block)) {
    if (!done.ok()) break;
    done = io_->submit({.file = program().tensors[block.pieces[read.first].tensor].file,
                        .offset = read.offset,
                        .bytes = read.bytes,
                        .into = read_.data() + places[read.first].into,
                        .tag = tag});
  }
  // What was submitted before an error still arrives.
  const auto arrived = io_->wait(tag);
  return done.ok() ? arrived : done;
}

Result<void> Contexts::init(const Block& block, std::span<const PiecePlace> places) {
  panels_ = RIDGE_TRY(Slab::allocate(panel_bytes_of(program(), block), {.what = "memory for a block", .touch = false}));
  pieces_.clear();
  uint64_t end = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const Piece& piece = block.pieces[i];
    const StoredTensor& t = program().tensors[piece.tensor];
    const uint8_t* rows = read_.data() + places[i].position;
    uint8_t* panels = panels_.data() + panel_place(program(), piece, end);
    if (t.layout == Layout::panels) {
      std::copy_n(rows, t.stored_bytes(piece.row_begin, piece.row_end), panels);
    } else {
      pack(t, piece, rows, panels);
    }
    pieces_.push_back({Layout::panels, panels});
  }
  read_.reset();
  return {};
}

void Contexts::pack(const StoredTensor& t, const Piece& piece, const uint8_t* rows, uint8_t* panels) {
  const size_t count = piece.row_end - piece.row_begin, stride = row_bytes(t.type, t.cols);
  const size_t panel = panel_bytes(t.type, t.cols);
  const size_t type = static_cast<size_t>(t.type);
  const PackFunction function = o_.pack != nullptr && o_.pack[type] != nullptr ? o_.pack[type] : pack_panel;
  o_.pool->share((count + kPanelRows - 1) / kPanelRows, 1, [&](size_t first, size_t last, int) {
    for (size_t p = first; p < last; ++p) {
      function({.type = t.type,
                .rows = rows + p * kPanelRows * stride,
                .row_stride = stride,
                .row_count = std::min<size_t>(kPanelRows, count - p * kPanelRows),
                .cols = t.cols,
                .panel = panels + p * panel});
    }
  });
}

void Contexts::release(BlockId block) {
  const Clock::time_point begin = Clock::now();
  panels_.reset();
  held_ = false;
  const Clock::duration took = Clock::now() - begin;
  stats_.wait += took;
  if (o_.times != nullptr) o_.times->add(program().blocks[block].name, {.release = took});
}

}  // namespace

Result<std::unique_ptr<ContextSource>> ContextSource::create(const ContextSourceOptions& options) {
  RIDGE_CHECK(options.program != nullptr && options.pool != nullptr, "a source needs a program and a pool");
  auto source = std::make_unique<Contexts>(options);
  RIDGE_TRY(source->open());
  return std::unique_ptr<ContextSource>(std::move(source));
}

uint64_t ContextSource::memory_bytes(const Program& program) {
  uint64_t panels = 0;
  for (const Block& block : program.blocks) panels = std::max(panels, panel_bytes_of(program, block));
  return Slab::charge(layout_of(program).slot_bytes) + Slab::charge(panels) + io_engine_memory(0);
}

}  // namespace ridge
