#include "memory/row_gatherer.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/panel.h"
#include "tensor/types.h"

namespace ridge {
namespace {

// Tags of gathered rows: apart from those of the slots.
constexpr uint32_t kFirstTag = 0x80000000;

// Bytes in the file of rows [begin, end); with panels, of whole ones.
uint64_t range_bytes(const StoredTensor& t, uint32_t begin, uint32_t end) {
  if (t.layout == Layout::panels) return t.stored_bytes(begin, end);
  return static_cast<uint64_t>(end - begin) * row_bytes(t.type, t.cols);
}

// One row as floats. `data` holds `first` as its first row.
void to_floats(const StoredTensor& t, Layout layout, const uint8_t* data, uint32_t first, uint32_t row, float* out) {
  if (layout == Layout::panels) {
    const size_t panel = (row - first) / kPanelRows;
    dequantize_panel_row(t.type, data + panel * panel_bytes(t.type, t.cols), t.cols, (row - first) % kPanelRows, out);
    return;
  }
  type_info(t.type).dequantize(data + (row - first) * row_bytes(t.type, t.cols), out, t.cols);
}

}  // namespace

RowGatherer::RowGatherer(const RowGathererOptions& options, std::span<const TensorId> gathered) : options_(options) {
  for (TensorId id : gathered) {
    Table table{.tensor = id, .homes = {}};
    add_pinned(table);
    for (const KeptRows& kept : options_.layout->kept) {
      if (kept.tensor != id) continue;
      table.homes.push_back(
          {kept.row_begin, kept.row_end, options_.program->tensors[id].layout, options_.kept + kept.position});
    }
    std::sort(table.homes.begin(), table.homes.end(),
              [](const Home& a, const Home& b) { return a.row_begin < b.row_begin; });
    tables_.push_back(std::move(table));
  }
}

void RowGatherer::add_pinned(Table& table) const {
  const Program& program = *options_.program;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    if (!options_.placement->pinned[b]) continue;
    for (size_t i = 0; i < program.blocks[b].pieces.size(); ++i) {
      const Piece& piece = program.blocks[b].pieces[i];
      if (piece.tensor != table.tensor) continue;
      table.homes.push_back(
          {piece.row_begin, piece.row_end, Layout::panels, options_.pins + options_.layout->blocks[b][i].position});
    }
  }
}

const RowGatherer::Home* RowGatherer::home_of(const Table& table, uint32_t row) {
  auto after = std::upper_bound(table.homes.begin(), table.homes.end(), row,
                                [](uint32_t r, const Home& h) { return r < h.row_begin; });
  if (after == table.homes.begin()) return nullptr;
  const Home& home = *std::prev(after);
  return row < home.row_end ? &home : nullptr;
}

Result<void> RowGatherer::gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out) {
  const StoredTensor& t = options_.program->tensors[tensor];
  auto table = std::find_if(tables_.begin(), tables_.end(), [&](const Table& x) { return x.tensor == tensor; });
  RIDGE_CHECK(table != tables_.end(), "gather() serves the tensors that the source was told of");
  RIDGE_CHECK(out.rows >= rows.size() && out.cols == t.cols, "a gathered matrix has one row for each row asked for");
  wanted_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    RIDGE_CHECK(rows[i] < t.rows, "gather() of a row that the tensor lacks");
    if (const Home* home = home_of(*table, rows[i])) {
      to_floats(t, home->layout, home->data, home->row_begin, rows[i], out.row(i));
    } else {
      wanted_.push_back(i);
    }
  }
  if (wanted_.empty()) return {};
  std::stable_sort(wanted_.begin(), wanted_.end(), [&](size_t a, size_t b) { return rows[a] < rows[b]; });
  plan_reads(t, rows);
  return read(t, rows, out);
}

// Neighbours that fit in one buffer share a read.
void RowGatherer::plan_reads(const StoredTensor& t, std::span<const uint32_t> rows) {
  reads_.clear();
  for (size_t i = 0; i < wanted_.size(); ++i) {
    uint32_t begin = rows[wanted_[i]], end = begin + 1;
    if (t.layout == Layout::panels) {
      begin -= begin % static_cast<uint32_t>(kPanelRows);
      end = std::min(t.rows, begin + static_cast<uint32_t>(kPanelRows));
    }
    if (!reads_.empty()) {
      RowRead& last = reads_.back();
      const uint64_t bytes = range_bytes(t, last.row_begin, std::max(end, last.row_end));
      if (read_span(t.stored_offset(last.row_begin), bytes) <= options_.layout->gather_unit) {
        last.last = i + 1;
        last.row_end = std::max(last.row_end, end);
        continue;
      }
    }
    reads_.push_back({i, i + 1, begin, end});
  }
}

Result<void> RowGatherer::submit(const StoredTensor& t, size_t read) {
  const RowRead& r = reads_[read];
  const size_t buffer = read % options_.layout->gather_units;
  return options_.io->submit({.file = t.file,
                              .offset = t.stored_offset(r.row_begin),
                              .bytes = range_bytes(t, r.row_begin, r.row_end),
                              .into = options_.buffers + buffer * options_.layout->gather_unit,
                              .tag = kFirstTag + static_cast<uint32_t>(buffer),
                              .urgent = true});
}

Result<void> RowGatherer::read(const StoredTensor& t, std::span<const uint32_t> rows, Matrix<float> out) {
  const size_t buffers = options_.layout->gather_units;
  RIDGE_CHECK(buffers > 0, "a source whose gathered rows are in the file has buffers for them");
  size_t submitted = 0;
  Result<void> outcome;
  for (size_t i = 0; i < reads_.size(); ++i) {
    while (outcome.ok() && submitted < reads_.size() && submitted < i + buffers) {
      outcome = submit(t, submitted);
      if (outcome.ok()) ++submitted;
    }
    if (i >= submitted) break;
    // After an error the reads under way still end here: their buffers are used again.
    auto done = options_.io->wait(kFirstTag + static_cast<uint32_t>(i % buffers));
    if (!done.ok() && outcome.ok()) outcome = std::move(done);
    if (!outcome.ok()) continue;
    const RowRead& r = reads_[i];
    const uint8_t* data =
        options_.buffers + i % buffers * options_.layout->gather_unit + read_lead(t.stored_offset(r.row_begin));
    for (size_t w = r.first; w < r.last; ++w) {
      const uint32_t row = rows[wanted_[w]];
      float* target = out.row(wanted_[w]);
      if (w > r.first && rows[wanted_[w - 1]] == row) {
        std::memcpy(target, out.row(wanted_[w - 1]), t.cols * sizeof(float));
      } else {
        to_floats(t, t.layout, data, r.row_begin, row, target);
      }
    }
  }
  return outcome;
}

}  // namespace ridge
