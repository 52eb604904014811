// Where weights live. The model asks for blocks; it cannot tell memory from storage.
//
// Not for: deciding what stays in memory (plan/), or what a block means (model/).
//
//   RIDGE_TRY(source.begin_pass({.tokens = 1}));
//   Lease lease = RIDGE_TRY(source.acquire(block));       // waits for the bytes
//   PieceView q = lease.pieces()[0];                      // valid while the lease lives
//
// One thread (the one that runs the forward pass) calls a source; its own I/O may use others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/result.h"
#include "program/program.h"

namespace ridge {

// The bytes of one piece: panels ready to compute on, or rows in the file's layout that the caller rearranges panel by
// panel as it uses them (kernels.h: pack). Panels are 64-byte aligned; rows need no alignment.
struct PieceView {
  Layout layout = Layout::panels;
  const uint8_t* data = nullptr;
};

class WeightSource;

// The right to use a block's bytes; while it lives they do not move. Movable, releases itself.
class Lease {
 public:
  Lease() = default;
  Lease(WeightSource* source, BlockId block, std::span<const PieceView> pieces)
      : source_(source), block_(block), pieces_(pieces) {}
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { release(); }

  void release();
  bool holds(BlockId block) const { return source_ != nullptr && block_ == block; }
  std::span<const PieceView> pieces() const { return pieces_; }

 private:
  WeightSource* source_ = nullptr;
  BlockId block_ = 0;
  std::span<const PieceView> pieces_;
};

struct PassInfo {
  uint32_t tokens = 1;
  uint64_t position = 0;
};

// Totals since the source was made.
struct SourceStats {
  uint64_t passes = 0;
  uint64_t bytes_read = 0;  // from storage, as requested from the device (alignment included), loading pins excluded
  uint64_t load_bytes = 0;  // read once to fill the pins
  uint64_t visits = 0, pinned_visits = 0;
  // Unpinned blocks on demand: asked for by a router's choice, found in a slot, read past the layer's cache.
  uint64_t experts_asked = 0, expert_hits = 0, experts_passed = 0;
  std::chrono::nanoseconds wait{0};  // time acquire() stood still for storage
  std::chrono::nanoseconds load{0};  // time to fill the pins
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // A new walk through the program's visits. Read-ahead wraps from the last visit to the first.
  virtual Result<void> begin_pass(const PassInfo& pass) = 0;
  // The block of the next visit (or one held already). I/O error with file, offset and cause.
  virtual Result<Lease> acquire(BlockId block) = 0;
  // Known only now (a router chose): submit all reads.
  virtual void want(std::span<const BlockId> blocks) = 0;
  // Index into `blocks` of one whose bytes are there, or that will be there first.
  virtual size_t next_ready(std::span<const BlockId> blocks) = 0;
  // Whether acquire() of a block that was wanted would wait for nothing.
  virtual bool ready(BlockId) { return true; }
  // Whether it is in memory, or on its way there: using it costs no further reading.
  virtual bool there(BlockId) { return true; }
  // Rows of a tensor as floats, out [rows.size(), cols]: embedding rows.
  virtual Result<void> gather(TensorId tensor, std::span<const uint32_t> rows, Matrix<float> out) = 0;

  virtual SourceStats stats() const = 0;
  virtual const Program& program() const = 0;

 protected:
  friend class Lease;
  virtual void release(BlockId block) = 0;
};

}  // namespace ridge
