// Rows of a tensor as floats (embeddings): from the panel where a pinned block holds the row, from rows kept in memory,
// or from the file by small direct reads of which several are under way; a row that is asked for twice is read once.
//
//   RowGatherer gatherer({.program = &program, .placement = &placement, .layout = &layout, .io = io, …}, gathered);
//   RIDGE_TRY(gatherer.gather(tensor, rows, out));       // out [rows.size(), cols]
//
// One thread.
#pragma once

#include <span>
#include <vector>

#include "base/matrix.h"
#include "memory/io_engine.h"
#include "memory/source_layout.h"

namespace ridge {

struct RowGathererOptions {
  const Program* program = nullptr;
  const Placement* placement = nullptr;
  const SourceLayout* layout = nullptr;
  IoEngine* io = nullptr;
  const uint8_t* pins = nullptr;
  const uint8_t* kept = nullptr;
  uint8_t* buffers = nullptr;  // layout->gather_units × layout->gather_unit
};

class RowGatherer {
 public:
  RowGatherer(const RowGathererOptions& options, std::span<const TensorId> gathered);

  Result<void> gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out);

 private:
  // Rows that lie in memory, with the bytes of the first one (its panel, or its row).
  struct Home {
    uint32_t row_begin = 0, row_end = 0;
    Layout layout = Layout::rows;
    const uint8_t* data = nullptr;
  };
  struct Table {
    TensorId tensor = 0;
    std::vector<Home> homes;  // ascending; rows in none of them are in the file
  };
  // One read: wanted_[first, last) are the positions (in ascending row order) that it serves.
  struct RowRead {
    size_t first = 0, last = 0;
    uint32_t row_begin = 0, row_end = 0;  // panels: whole ones
  };

  void add_pinned(Table& table) const;
  static const Home* home_of(const Table& table, uint32_t row);
  void plan_reads(const StoredTensor& t, std::span<const uint32_t> rows);
  Result<void> read(const StoredTensor& t, std::span<const uint32_t> rows, Matrix<float> out);
  Result<void> submit(const StoredTensor& t, size_t read);

  RowGathererOptions options_;
  std::vector<Table> tables_;
  std::vector<size_t> wanted_;  // positions in `rows` whose row is in the file, by row
  std::vector<RowRead> reads_;
};

}  // namespace ridge
