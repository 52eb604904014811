#include "analyze/engine_reads.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/units.h"
#include "machine/probe_stats.h"
#include "memory/io_engine.h"
#include "memory/slab.h"

namespace ridge {
namespace {

// As stream slots: half as much again as is in flight, so that a finished one is refilled while the device is busy.
constexpr uint64_t kSlotBytes = kMiB;

uint32_t slot_count() {
  const IoOptions io;
  return static_cast<uint32_t>(io.depth * io.request_bytes / kSlotBytes * 3 / 2);
}

class Reader {
 public:
  Reader(IoEngine& io, const Slab& slab, uint64_t file_bytes)
      : io_(io), slab_(slab), pieces_(file_bytes / kSlotBytes) {}

  Result<void> fill() {
    for (uint32_t slot = 0; slot < slot_count(); ++slot) RIDGE_TRY(submit(slot));
    return {};
  }
  // GB/s over at least this time; every slot is busy before and after.
  Result<double> run(std::chrono::nanoseconds least) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point end = begin;
    uint64_t bytes = 0;
    for (; end - begin < least; end = Clock::now()) {
      RIDGE_TRY(io_.wait(next_));
      RIDGE_TRY(submit(next_));
      next_ = (next_ + 1) % slot_count();
      bytes += kSlotBytes;
    }
    return static_cast<double>(bytes) / std::chrono::duration<double>(end - begin).count() / 1e9;
  }
  Result<void> drain() {
    for (uint32_t slot = 0; slot < slot_count(); ++slot) RIDGE_TRY(io_.wait(slot));
    return {};
  }

 private:
  Result<void> submit(uint32_t slot) {
    const uint64_t offset = piece_++ % pieces_ * kSlotBytes;
    return io_.submit(
        {.file = 0, .offset = offset, .bytes = kSlotBytes, .into = slab_.data() + slot * kSlotBytes, .tag = slot});
  }

  IoEngine& io_;
  const Slab& slab_;
  uint64_t pieces_, piece_ = 0;
  uint32_t next_ = 0;
};

}  // namespace

uint64_t engine_reads_file_bytes() { return slot_count() * kSlotBytes; }

Result<StoragePoint> measure_engine_reads(const std::string& path, const EngineReadsOptions& options) {
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  if (error || file_bytes < engine_reads_file_bytes()) {
    return bad_input(fmt::format("{}: {} is too little to read as the engine does: name a file of at least {}", path,
                                 format_bytes(error ? 0 : file_bytes), format_bytes(engine_reads_file_bytes())));
  }
  const Slab slab = RIDGE_TRY(Slab::allocate(engine_reads_file_bytes(), {.what = "the buffers of the storage probe"}));
  const IoOptions io{.files = {path}, .buffers = {slab.span()}};
  const std::unique_ptr<IoEngine> engine = RIDGE_TRY(make_io_engine(io));
  Reader reader(*engine, slab, file_bytes);
  RIDGE_TRY(reader.fill());
  const std::chrono::milliseconds time(options.quick ? 50 : 200);
  (void)RIDGE_TRY(reader.run(time));  // a device that idled takes a while
  std::vector<double> samples;
  for (int i = 0; i < 5; ++i) samples.push_back(RIDGE_TRY(reader.run(time)));
  RIDGE_TRY(reader.drain());
  return StoragePoint{
      .request_bytes = io.request_bytes, .depth = static_cast<int>(io.depth), .gb_per_s = summarize(samples)};
}

}  // namespace ridge
