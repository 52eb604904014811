#include "memory/pin_loader.h"

#include <algorithm>

#include "base/check.h"
#include "base/progress.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// What one read brings: rows to pack (packed_into is where their panels go), or bytes that land in place (nullptr).
struct Chunk {
  const StoredTensor* tensor = nullptr;
  uint32_t row_begin = 0, row_end = 0;
  uint8_t* in_place = nullptr;
  uint8_t* packed_into = nullptr;

  uint64_t offset() const { return tensor->stored_offset(row_begin); }
  uint64_t bytes() const { return tensor->stored_bytes(row_begin, row_end); }
};

class PinLoader {
 public:
  explicit PinLoader(const PinLoaderOptions& options) : o_(options) {}

  Result<void> run() {
    list_chunks();
    Result<void> done = read_all();
    // What is still under way lands in buffers that are the caller's again, and its error is not that of a later load.
    if (!done.ok()) {
      for (uint32_t t : {0u, 1u}) (void)o_.io->wait(t);
    }
    return done;
  }

 private:
  static uint32_t tag(size_t chunk) { return static_cast<uint32_t>(chunk % 2); }

  Result<void> read_all() {
    uint64_t total = 0;
    for (const Chunk& c : chunks_) total += c.bytes();
    Progress bar("loading weights", total, ProgressUnit::bytes);
    if (!chunks_.empty()) RIDGE_TRY(submit(0));
    for (size_t i = 0; i < chunks_.size(); ++i) {
      if (i + 1 < chunks_.size()) RIDGE_TRY(submit(i + 1));
      RIDGE_TRY(o_.io->wait(tag(i)));
      if (chunks_[i].packed_into != nullptr) pack(chunks_[i], o_.buffers[i % 2] + read_lead(chunks_[i].offset()));
      bar.advance(chunks_[i].bytes());
    }
    return {};
  }

  void list_chunks();
  void add_packed(const StoredTensor& t, const Piece& piece, uint8_t* into);
  Result<void> submit(size_t chunk);
  void pack(const Chunk& chunk, const uint8_t* rows);

  const PinLoaderOptions& o_;
  std::vector<Chunk> chunks_;
};

void PinLoader::list_chunks() {
  const Program& program = *o_.program;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (!o_.placement->pinned[b]) continue;
    for (size_t i = 0; i < program.blocks[b].pieces.size(); ++i) {
      const Piece& piece = program.blocks[b].pieces[i];
      const StoredTensor& t = program.tensors[piece.tensor];
      const PiecePlace& place = o_.layout->blocks[b][i];
      if (piece.row_begin == piece.row_end) continue;
      if (t.layout == Layout::panels) {
        chunks_.push_back({&t, piece.row_begin, piece.row_end, o_.pins + place.into, nullptr});
      } else {
        add_packed(t, piece, o_.pins + place.position);
      }
    }
  }
  if (o_.kept == nullptr) return;
  for (const KeptRows& kept : o_.layout->kept) {
    chunks_.push_back({&program.tensors[kept.tensor], kept.row_begin, kept.row_end, o_.kept + kept.into, nullptr});
  }
}

void PinLoader::add_packed(const StoredTensor& t, const Piece& piece, uint8_t* into) {
  const uint64_t panels = std::max<uint64_t>(1, o_.layout->load_chunk / (kPanelRows * row_bytes(t.type, t.cols)));
  const auto rows = static_cast<uint32_t>(std::min<uint64_t>(panels * kPanelRows, t.rows + kPanelRows));
  for (uint32_t row = piece.row_begin; row < piece.row_end; row += rows) {
    uint32_t end = std::min(piece.row_end, row + rows);
    chunks_.push_back({&t, row, end, nullptr, into + panels_bytes(t.type, row - piece.row_begin, t.cols)});
  }
}

Result<void> PinLoader::submit(size_t chunk) {
  const Chunk& c = chunks_[chunk];
  return o_.io->submit({.file = c.tensor->file,
                        .offset = c.offset(),
                        .bytes = c.bytes(),
                        .into = c.in_place != nullptr ? c.in_place : o_.buffers[chunk % 2],
                        .tag = tag(chunk)});
}

void PinLoader::pack(const Chunk& chunk, const uint8_t* rows) {
  const StoredTensor& t = *chunk.tensor;
  const size_t stride = row_bytes(t.type, t.cols), panel = panel_bytes(t.type, t.cols);
  const size_t count = chunk.row_end - chunk.row_begin;
  const PackFunction pack_one = o_.pack != nullptr && o_.pack[static_cast<size_t>(t.type)] != nullptr
                                    ? o_.pack[static_cast<size_t>(t.type)]
                                    : &pack_panel;
  o_.pool->share(count, kPanelRows, [&](size_t begin, size_t end, int) {
    for (size_t row = begin; row < end; row += kPanelRows) {
      pack_one({.type = t.type,
                .rows = rows + row * stride,
                .row_stride = stride,
                .row_count = std::min(kPanelRows, end - row),
                .cols = t.cols,
                .panel = chunk.packed_into + row / kPanelRows * panel});
    }
  });
}

}  // namespace

Result<void> load_pins(const PinLoaderOptions& options) { return PinLoader(options).run(); }

}  // namespace ridge
