#include "machine/storage_probe.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "machine/probe_stats.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

// A page-aligned buffer for one point, touched, in huge pages where there are any (a request of 4 MiB then is one run
// of memory to the device, not a thousand); unmapped by the destructor.
class Buffer {
 public:
  explicit Buffer(uint64_t bytes)
      : bytes_(bytes), data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (!ok()) return;
    (void)::madvise(data_, bytes_, MADV_HUGEPAGE);
    std::memset(data_, 1, bytes_);
  }
  ~Buffer() {
    if (ok()) ::munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool ok() const { return data_ != MAP_FAILED; }
  std::span<std::byte> part(size_t index, uint64_t bytes) const {
    return {static_cast<std::byte*>(data_) + index * bytes, bytes};
  }

 private:
  uint64_t bytes_;
  void* data_;
};

struct Run {
  uint64_t bytes = 0;
  double seconds = 0;
};

// Every worker keeps one request in flight, in file order, until the time is up; `wrap` starts again at the end of the
// file, which only reads past the page cache may do.
Result<Run> run_once(ThreadPool& pool, const StorageFile& file, const Buffer& buffer, uint64_t request,
                     std::chrono::nanoseconds run_time, bool wrap) {
  uint64_t requests = file.bytes() / request;
  std::atomic<uint64_t> next{0}, done{0};
  std::mutex mutex;
  std::optional<Error> failure;
  auto start = Clock::now();
  pool.run([&](int worker) {
    do {
      uint64_t index = next.fetch_add(1);
      if (index >= requests && !wrap) return;
      auto read = file.read(buffer.part(static_cast<size_t>(worker), request), index % requests * request);
      if (!read.ok()) {
        std::lock_guard lock(mutex);
        if (!failure) failure = read.error();
        return;
      }
      done.fetch_add(request);
    } while (Clock::now() - start < run_time);
  });
  if (failure) return *failure;
  return Run{done.load(), std::chrono::duration<double>(Clock::now() - start).count()};
}

Result<Measured> measure_shape(ThreadPool& pool, const StorageFile& file, const StoragePlan& plan, StorageShape shape,
                               bool direct) {
  Buffer buffer(shape.request_bytes * static_cast<uint64_t>(shape.depth));
  if (!buffer.ok()) {
    return does_not_fit(fmt::format("probe: no {} of memory for storage requests ({}); free some memory and try again",
                                    format_bytes(shape.request_bytes * static_cast<uint64_t>(shape.depth)),
                                    std::strerror(errno)));
  }
  // A slow card takes seconds for one run: then fewer runs must do.
  auto give_up = Clock::now() + 4 * plan.runs * plan.run_time;
  std::vector<double> rates;
  for (int run = 0; run < plan.runs; ++run) {
    if (rates.size() >= 2 && Clock::now() > give_up) break;
    if (!direct) file.drop_cache();
    Run result = RIDGE_TRY(run_once(pool, file, buffer, shape.request_bytes, plan.run_time, direct));
    rates.push_back(static_cast<double>(result.bytes) / std::max(result.seconds, 1e-9) / 1e9);
  }
  return summarize(rates);
}

// Shapes of equal depth share a pool.
Result<void> measure_shapes(const StorageFile& file, const StoragePlan& plan, const std::vector<StorageShape>& shapes,
                            bool direct, Progress& bar, std::vector<StoragePoint>& points) {
  std::map<int, std::vector<uint64_t>> by_depth;
  for (const StorageShape& shape : shapes) by_depth[shape.depth].push_back(shape.request_bytes);
  for (const auto& [depth, requests] : by_depth) {
    ThreadPool pool({.threads = depth});
    for (uint64_t request : requests) {
      StorageShape shape{request, depth};
      points.push_back({request, depth, direct, RIDGE_TRY(measure_shape(pool, file, plan, shape, direct))});
      bar.advance(1);
    }
  }
  return {};
}

std::vector<StorageShape> grid(const std::vector<uint64_t>& requests, const std::vector<int>& depths,
                               const StoragePlanOptions& options) {
  std::vector<StorageShape> shapes;
  for (uint64_t request : requests) {
    for (int depth : depths) {
      uint64_t in_flight = request * static_cast<uint64_t>(depth);
      if (in_flight <= options.file_bytes && in_flight <= options.most_bytes) shapes.push_back({request, depth});
    }
  }
  return shapes;
}

}  // namespace

StoragePlan storage_plan(const StoragePlanOptions& options) {
  StoragePlan plan;
  // The engine keeps 32 requests of 256 KiB in flight (memory/io_engine.h): that shape belongs to every plan.
  if (options.quick) {
    plan.direct = grid({64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB}, {1, 32}, options);
    plan.buffered = grid({kMiB}, {1}, options);
    plan.runs = 3;
    plan.run_time = std::chrono::milliseconds(30);
  } else {
    plan.direct = grid({4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB}, {1, 2, 4, 8, 16, 32}, options);
    plan.buffered = grid({64 * kKiB, kMiB, 4 * kMiB}, {1, 4}, options);
    plan.runs = 5;
    plan.run_time = std::chrono::milliseconds(50);
  }
  return plan;
}

uint64_t point_count(const StoragePlan& plan) { return plan.direct.size() + plan.buffered.size(); }

Result<std::vector<StoragePoint>> measure_storage(StorageFile& file, const StoragePlan& plan, Progress& bar) {
  std::vector<StoragePoint> points;
  file.drop_cache();
  if (file.set_direct(true)) {
    RIDGE_TRY(measure_shapes(file, plan, plan.direct, true, bar, points));
    file.set_direct(false);
    RIDGE_TRY(measure_shapes(file, plan, plan.buffered, false, bar, points));
    return points;
  }
  note(
      fmt::format("{}: O_DIRECT is refused here ({}): storage is measured through the page cache, emptied before each "
                  "run; the figures may still contain cached data",
                  file.path(), file.refusal()));
  RIDGE_TRY(measure_shapes(file, plan, plan.direct, false, bar, points));
  return points;
}

}  // namespace ridge
