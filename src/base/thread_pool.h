// A small pool of compute threads: every worker runs the same function, the caller is worker 0.
//
// Workers spin for a while after a job and then sleep, so that the many short jobs of one token do not pay for a
// wake-up each, and an idle program costs nothing. Not a task scheduler: no queues, no futures.
//
//   ThreadPool pool({.threads = 2});
//   pool.split(rows, 16, [&](size_t begin, size_t end, int worker) { … });
//
// One thread may call run() or split() at a time; calls must not nest. With `cpus`, the thread that makes the pool is
// bound too, and gets its CPUs back when it destroys the pool: threads that it starts meanwhile inherit the one CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/function_ref.h"

namespace ridge {

struct ThreadPoolOptions {
  int threads = 1;             // ≥ 1, the caller included
  std::vector<int> cpus = {};  // worker i is bound to cpus[i % size]; empty: not bound
};

class ThreadPool {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Runs job(worker) once on every worker, 0 … size() − 1, and returns when all are done.
  void run(FunctionRef<void(int worker)> job);

  // Cuts [0, count) into one contiguous range per worker, each but the last a multiple of `grain`, and runs
  // job(begin, end, worker) for those that are not empty. Which worker does what never changes a result.
  void split(size_t count, size_t grain, FunctionRef<void(size_t begin, size_t end, int worker)> job);

  // The same for work of which `grain` takes microseconds, on cores that are not equally fast or not ours alone: a
  // worker takes half of what is left of its range again and again, and one that has finished takes half of what
  // another has left. job is called more than once by a worker. count < 2^32.
  void share(size_t count, size_t grain, FunctionRef<void(size_t begin, size_t end, int worker)> job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridge
