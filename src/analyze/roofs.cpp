#include "analyze/roofs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "machine/bandwidth_loop.h"
#include "machine/compute_probe.h"
#include "machine/cpu.h"
#include "model/operators.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastSeconds = 5e-3;

// Seconds from the first start to the last end of job(worker): workers start together, so waking them does not count.
double time_together(ThreadPool& pool, const std::function<void(int worker)>& job) {
  std::vector<Clock::time_point> starts(static_cast<size_t>(pool.size())), ends(starts);
  std::atomic<int> arrived{0};
  pool.run([&](int worker) {
    arrived.fetch_add(1);
    while (arrived.load() < pool.size()) {
    }
    size_t w = static_cast<size_t>(worker);
    starts[w] = Clock::now();
    job(worker);
    ends[w] = Clock::now();
  });
  auto first = *std::min_element(starts.begin(), starts.end());
  auto last = *std::max_element(ends.begin(), ends.end());
  return std::max(1e-9, std::chrono::duration<double>(last - first).count());
}

// Rounds per second of job(worker, rounds), which takes at least kLeastSeconds in the end.
double rounds_per_s(ThreadPool& pool, uint64_t rounds, const std::function<void(int worker, uint64_t rounds)>& job) {
  constexpr uint64_t kMostRounds = uint64_t{1} << 40;
  for (;;) {
    double took = time_together(pool, [&](int worker) { job(worker, rounds); });
    if (took >= kLeastSeconds || rounds >= kMostRounds) return static_cast<double>(rounds) / took;
    rounds = static_cast<uint64_t>(static_cast<double>(rounds) * std::clamp(1.2 * kLeastSeconds / took, 2.0, 100.0));
  }
}

}  // namespace

MemoryReads::MemoryReads(ThreadPool& pool, std::span<const Stretch> stretches) : pool_(&pool) {
  constexpr uint64_t kStep = kReadLoopWords * sizeof(uint64_t);
  uint64_t workers = static_cast<uint64_t>(pool.size());
  parts_.resize(workers);
  for (const Stretch& stretch : stretches) {
    uint64_t steps = stretch.bytes / kStep;
    for (uint64_t w = 0; w < workers; ++w) {
      uint64_t begin = steps * w / workers, end = steps * (w + 1) / workers;
      // Panels are aligned for words, and reading them as such is only looking at bytes.
      const auto* words = static_cast<const uint64_t*>(static_cast<const void*>(stretch.data + begin * kStep));
      if (begin < end) parts_[w].push_back({words, (end - begin) * kReadLoopWords});
    }
    bytes_ += steps * kStep;
  }
}

std::vector<MemoryReads::Stretch> weight_stretches(const Engine& engine, std::optional<Operator> op) {
  const Plan& plan = engine.plan();
  const TensorId head = engine.model().head().id;
  std::vector<MemoryReads::Stretch> stretches;
  if (plan.placement.streams()) return stretches;
  for (BlockId b = 0; b < plan.program.blocks.size(); ++b) {
    auto lease = engine.machinery().source->acquire(b);
    if (!lease.ok()) return {};
    for (size_t i = 0; i < plan.program.blocks[b].pieces.size(); ++i) {
      const Piece& piece = plan.program.blocks[b].pieces[i];
      if (op && operator_of(plan.program, piece.tensor, head) != *op) continue;
      const StoredTensor& tensor = plan.program.tensors[piece.tensor];
      uint64_t bytes = panels_bytes(tensor.type, piece.row_end - piece.row_begin, tensor.cols);
      stretches.push_back({lease.value().pieces()[i].data, bytes});
    }
  }
  return stretches;
}

std::vector<MemoryReads::Stretch> cache_stretches(const Engine& engine, uint64_t positions) {
  KvCache& cache = *engine.machinery().cache;
  std::vector<MemoryReads::Stretch> stretches;
  const std::vector<KvLayer>& layers = engine.model().kv_layers();
  for (uint32_t il = 0; il < layers.size(); ++il) {
    const uint64_t count = std::min<uint64_t>(positions, cache.capacity(il));
    for (uint32_t h = 0; h < layers[il].kv_heads; ++h) {
      stretches.push_back(
          {static_cast<const uint8_t*>(cache.key(il, h)), count * kv_bytes(cache.type(), layers[il].key_dim)});
      stretches.push_back(
          {static_cast<const uint8_t*>(cache.value(il, h)), count * kv_bytes(cache.type(), layers[il].value_dim)});
    }
  }
  return stretches;
}

double MemoryReads::measure() const {
  CpuFeatures features = cpu_info().features;
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (ReadLoop loop : {best_read_loop(features), fetching_read_loop(features)}) {
    double passes = rounds_per_s(*pool_, 1, [&](int worker, uint64_t rounds) {
      uint64_t sum = 0;
      for (uint64_t round = 0; round < rounds; ++round) {
        for (const Part& part : parts_[static_cast<size_t>(worker)]) sum += loop(part.words, part.count);
      }
      sink += sum;  // keeps the loads alive
    });
    best = std::max(best, passes * static_cast<double>(bytes_) / 1e9);
  }
  return best;
}

ComputePeaks measure_peaks(ThreadPool& pool, Numerics numerics) {
  const CpuFeatures features = cpu_info().features;
  auto peak = [&](std::string_view type) { return peak_gops(pool, best_loop(type, features), kLeastSeconds); };
  ComputePeaks peaks{.int8_gops = peak("int8"), .float_gops = peak("f32")};
  if (numerics == Numerics::fast) peaks.float_gops = std::max(peaks.float_gops, peak("bf16"));
  return peaks;
}

}  // namespace ridge
