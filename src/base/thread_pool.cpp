#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/float_env.h"

namespace ridge {
namespace {

// About 20 µs of polling: longer than the gap between two jobs of one token, far shorter than a person notices.
constexpr int kSpins = 4000;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void bind_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A refused binding costs speed, not correctness.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// What is left of one worker's units, in one word: others may take from its end while it takes from its beginning.
struct alignas(64) Range {
  std::atomic<uint64_t> bounds{0};

  static uint64_t packed(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  void set(uint64_t begin, uint64_t end) { bounds.store(packed(begin, end), std::memory_order_relaxed); }

  // Half of what is left, at least one: the first half for the owner, the last for a helper. False: nothing left.
  bool take(bool owner, size_t& begin, size_t& end) {
    uint64_t seen = bounds.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t from = seen >> 32, to = seen & 0xffffffffu;
      if (from >= to) return false;
      const uint64_t count = (to - from + 1) / 2;
      const uint64_t rest = owner ? packed(from + count, to) : packed(from, to - count);
      if (bounds.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
        begin = owner ? from : to - count;
        end = begin + count;
        return true;
      }
    }
  }
};

}  // namespace

struct ThreadPool::State {
  explicit State(int workers) : size(workers), ranges(static_cast<size_t>(workers)) {}

  // Also where the system refused one of the threads: those that run are then ended like any others.
  ~State() {
    stop.store(true, std::memory_order_release);
    {
      std::lock_guard lock(mutex);
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
    for (auto& thread : threads) thread.join();
    // Threads that the caller starts later inherit its CPUs: left bound, they would all share one.
    if (callers_cpus) (void)pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &*callers_cpus);
  }

  void start_job(FunctionRef<void(int)>* next) {
    job = next;
    pending.store(size - 1, std::memory_order_relaxed);
    {
      // The lock makes a sleeper either see the new generation or be asleep when we notify.
      std::lock_guard lock(mutex);
      generation.fetch_add(1, std::memory_order_release);
    }
    if (sleepers.load(std::memory_order_acquire) > 0) wake.notify_all();
  }

  void wait_done() {
    for (int spins = 0; pending.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < kSpins) {
        relax();
      } else {
        std::this_thread::yield();
      }
    }
  }

  // Returns the generation after `seen`.
  uint64_t wait_for_job(uint64_t seen) {
    for (int spins = 0; spins < kSpins; ++spins) {
      uint64_t now = generation.load(std::memory_order_acquire);
      if (now != seen) return now;
      relax();
    }
    std::unique_lock lock(mutex);
    sleepers.fetch_add(1, std::memory_order_acq_rel);
    wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
    sleepers.fetch_sub(1, std::memory_order_acq_rel);
    return generation.load(std::memory_order_acquire);
  }

  void work(int worker) {
    set_float_environment();
    uint64_t seen = 0;
    for (;;) {
      seen = wait_for_job(seen);
      if (stop.load(std::memory_order_acquire)) return;
      (*job)(worker);
      pending.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  const int size;
  FunctionRef<void(int)>* job = nullptr;
  std::atomic<uint64_t> generation{0};
  alignas(64) std::atomic<int> pending{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
  std::vector<Range> ranges;              // of share()
  std::optional<cpu_set_t> callers_cpus;  // where the caller might run before it was bound
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : state_(std::make_unique<State>(options.threads)) {
  RIDGE_CHECK(options.threads >= 1, "a pool needs at least one thread");
  set_float_environment();
  auto cpu_of = [&](int worker) { return options.cpus[static_cast<size_t>(worker) % options.cpus.size()]; };
  if (!options.cpus.empty()) {
    cpu_set_t before;
    if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0) state_->callers_cpus = before;
    bind_to_cpu(cpu_of(0));
  }
  for (int worker = 1; worker < options.threads; ++worker) {
    int cpu = options.cpus.empty() ? -1 : cpu_of(worker);
    state_->threads.emplace_back([state = state_.get(), worker, cpu] {
      if (cpu >= 0) bind_to_cpu(cpu);
      state->work(worker);
    });
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return state_->size; }

void ThreadPool::run(FunctionRef<void(int worker)> job) {
  if (state_->size == 1) return job(0);
  state_->start_job(&job);
  job(0);
  state_->wait_done();
}

void ThreadPool::split(size_t count, size_t grain, FunctionRef<void(size_t begin, size_t end, int worker)> job) {
  if (count == 0) return;
  size_t workers = static_cast<size_t>(state_->size);
  size_t units = (count + grain - 1) / grain;
  if (workers == 1 || units == 1) return job(0, count, 0);
  run([&](int worker) {
    size_t w = static_cast<size_t>(worker);
    size_t begin = std::min(count, units * w / workers * grain);
    size_t end = std::min(count, units * (w + 1) / workers * grain);
    if (begin < end) job(begin, end, worker);
  });
}

void ThreadPool::share(size_t count, size_t grain, FunctionRef<void(size_t begin, size_t end, int worker)> job) {
  if (count == 0) return;
  RIDGE_CHECK(count < (uint64_t{1} << 32) && grain > 0, "share() counts in 32 bits");
  size_t workers = static_cast<size_t>(state_->size);
  size_t units = (count + grain - 1) / grain;
  if (workers == 1 || units == 1) return job(0, count, 0);
  for (size_t w = 0; w < workers; ++w) {
    state_->ranges[w].set(units * w / workers, units * (w + 1) / workers);
  }
  run([&](int worker) {
    size_t begin = 0, end = 0;
    for (size_t i = 0; i < workers; ++i) {
      size_t victim = (static_cast<size_t>(worker) + i) % workers;
      while (state_->ranges[victim].take(i == 0, begin, end)) {
        job(begin * grain, std::min(count, end * grain), worker);
      }
    }
  });
}

}  // namespace ridge
