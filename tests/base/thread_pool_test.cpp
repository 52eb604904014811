#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#include "base/float_env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ridge {
namespace {

const int kPoolSizes[] = {1, 2, 3, 5, 8};

TEST(ThreadPool, RunsTheJobOnceOnEveryWorker) {
  for (int threads : kPoolSizes) {
    ThreadPool pool({.threads = threads});
    ASSERT_EQ(pool.size(), threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    pool.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
    for (int n : calls) EXPECT_EQ(n, 1);
  }
}

TEST(ThreadPool, TheCallerIsWorkerZero) {
  ThreadPool pool({.threads = 3});
  std::vector<std::thread::id> ids(3);
  pool.run([&](int worker) { ids[static_cast<size_t>(worker)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
}

TEST(ThreadPool, ShareCoversEveryIndexOnceInGrains) {
  for (int threads : kPoolSizes) {
    ThreadPool pool({.threads = threads});
    for (size_t grain : {1u, 3u, 16u}) {
      for (size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 100u, 1000u}) {
        std::vector<std::atomic<int>> hits(count);
        pool.share(count, grain, [&](size_t begin, size_t end, int worker) {
          EXPECT_LT(begin, end);
          EXPECT_LE(end, count);
          EXPECT_LT(worker, threads);
          EXPECT_EQ(begin % grain, 0u);
          EXPECT_TRUE(end % grain == 0 || end == count);
          for (size_t i = begin; i < end; ++i) hits[i].fetch_add(1);
        });
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(hits[i].load(), 1) << "index " << i << " of " << count;
      }
    }
  }
}

TEST(ThreadPool, ShareLetsAnIdleWorkerHelp) {
  ThreadPool pool({.threads = 2});
  std::atomic<int> done{0}, helped{0};
  // Worker 0 stands still in its first piece until the other has done everything else.
  pool.share(64, 1, [&](size_t begin, size_t end, int worker) {
    const int pieces = static_cast<int>(end - begin);
    if (worker == 0 && begin == 0) {
      while (done.load() < 64 - pieces) std::this_thread::yield();
    } else if (begin < 32) {
      helped.fetch_add(pieces);
    }
    done.fetch_add(pieces);
  });
  EXPECT_EQ(done.load(), 64);
  // Half of worker 0's range was still to be had; all of it, where that worker was given no CPU until then.
  EXPECT_GE(helped.load(), 16);
}

TEST(ThreadPool, SplitCoversEveryIndexOnceInGrains) {
  for (int threads : kPoolSizes) {
    ThreadPool pool({.threads = threads});
    for (size_t grain : {1u, 3u, 16u}) {
      for (size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 100u, 1000u}) {
        std::vector<int> hits(count);
        std::atomic<bool> grains_kept{true};
        pool.split(count, grain, [&](size_t begin, size_t end, int worker) {
          EXPECT_LT(begin, end);
          EXPECT_LE(end, count);
          EXPECT_LT(worker, threads);
          if (begin % grain != 0 || (end % grain != 0 && end != count)) grains_kept = false;
          for (size_t i = begin; i < end; ++i) ++hits[i];
        });
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(hits[i], 1) << "index " << i << " of " << count;
        EXPECT_TRUE(grains_kept);
      }
    }
  }
}

TEST(ThreadPool, SplitSharesTheWorkEvenly) {
  ThreadPool pool({.threads = 4});
  std::vector<size_t> sizes(4);
  pool.split(1024, 16, [&](size_t begin, size_t end, int worker) { sizes[static_cast<size_t>(worker)] = end - begin; });
  for (size_t size : sizes) EXPECT_EQ(size, 256u);
}

// What one job wrote, the next one and the caller read without further synchronisation.
TEST(ThreadPool, ManyShortJobsSeeEachOthersWrites) {
  ThreadPool pool({.threads = 4});
  std::vector<uint64_t> values(4, 0);
  uint64_t expected = 0;
  for (int job = 0; job < 5'000; ++job) {
    pool.run([&](int worker) { values[static_cast<size_t>(worker)] += values.size() - static_cast<size_t>(worker); });
    ++expected;
  }
  for (size_t w = 0; w < 4; ++w) EXPECT_EQ(values[w], expected * (4 - w));
}

TEST(ThreadPool, NeighboursMayReadWhatTheLastJobWrote) {
  ThreadPool pool({.threads = 3});
  std::vector<uint64_t> now(3, 1), next(3);
  for (int job = 0; job < 2'000; ++job) {
    pool.run([&](int worker) {
      size_t w = static_cast<size_t>(worker);
      next[w] = (now[(w + 1) % 3] + now[(w + 2) % 3]) % 1'000'003;
    });
    std::swap(now, next);
  }
  EXPECT_EQ(now[0], now[1]);
  EXPECT_EQ(now[1], now[2]);
}

// Pauses longer than the workers spin, so that they fall asleep and must be woken.
TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool({.threads = 3});
  std::atomic<int> calls{0};
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(job % 4));
    pool.run([&](int) { calls.fetch_add(1); });
    ASSERT_EQ(calls.load(), 3 * (job + 1));
  }
}

TEST(ThreadPool, WaitsForTheSlowestWorker) {
  ThreadPool pool({.threads = 3});
  for (int slow = 0; slow < 3; ++slow) {
    std::atomic<int> done{0};
    pool.run([&](int worker) {
      if (worker == slow) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      done.fetch_add(1);
    });
    EXPECT_EQ(done.load(), 3);
  }
}

TEST(ThreadPool, CanBeMadeAndDestroyedManyTimes) {
  std::atomic<int> calls{0};
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool({.threads = 4});
    if (round % 2 == 0) pool.run([&](int) { calls.fetch_add(1); });
  }
  EXPECT_EQ(calls.load(), 200);
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(ThreadPool, BindsWorkersAndGivesTheCallerItsCpusBack) {
  std::vector<int> before = allowed_cpus();
  {
    ThreadPool pool({.threads = 4, .cpus = before});
    std::vector<std::vector<int>> seen(4);
    pool.run([&](int worker) { seen[static_cast<size_t>(worker)] = allowed_cpus(); });
    for (size_t w = 0; w < 4; ++w) EXPECT_EQ(seen[w], std::vector<int>{before[w % before.size()]}) << "worker " << w;
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(ThreadPool, ACpuThatIsNotThereIsNoError) {
  ThreadPool pool({.threads = 2, .cpus = {CPU_SETSIZE - 1}});
  std::atomic<int> calls{0};
  pool.run([&](int) { calls.fetch_add(1); });
  EXPECT_EQ(calls.load(), 2);
}

TEST(ThreadPool, WorkersKeepDenormalsAndRoundToNearest) {
#if defined(__x86_64__)
  constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
  _mm_setcsr(_mm_getcsr() | kFlushAndDenormalsAreZero);  // as a library may have left it
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = 1u << 24;
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
  std::fesetround(FE_UPWARD);
  ThreadPool pool({.threads = 3});
  std::vector<float> halves(3);
  std::vector<int> rounding(3, -1);
  pool.run([&](int worker) {
    volatile float smallest_normal = 1.17549435e-38f;
    halves[static_cast<size_t>(worker)] = smallest_normal * 0.5f;
    rounding[static_cast<size_t>(worker)] = std::fegetround();
  });
  for (float half : halves) EXPECT_GT(half, 0.0f);
  for (int mode : rounding) EXPECT_EQ(mode, FE_TONEAREST);
}

TEST(ThreadPoolDeathTest, NoThreadsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ThreadPool({.threads = 0}), testing::ExitedWithCode(70), "at least one thread");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space of their own
// The stacks of the last threads do not fit: those that run already are ended before the refusal is passed on.
TEST(ThreadPoolDeathTest, ARefusedThreadEndsTheOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto exhaust = [] {
    const rlimit limit{512 << 20, 512 << 20};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
    try {
      ThreadPool pool({.threads = 256});
    } catch (const std::system_error&) {
      std::_Exit(ThreadPool({.threads = 3}).size());
    }
    std::_Exit(2);
  };
  EXPECT_EXIT(exhaust(), testing::ExitedWithCode(3), "");
}
#endif

}  // namespace
}  // namespace ridge
