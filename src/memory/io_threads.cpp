// The I/O engine of threads with pread: O_DIRECT where the file grants it, otherwise through the page cache and out of
// it. Four threads: the storage of phones and small boards is full with two requests, and each thread costs a stack.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>

#include "base/check.h"
#include "base/units.h"
#include "memory/io_backends.h"
#include "memory/request_book.h"

namespace ridge {
namespace {

class ThreadEngine final : public IoEngine {
 public:
  explicit ThreadEngine(BackendOptions options)
      : files_(std::move(options.files)),
        direct_(std::all_of(files_.begin(), files_.end(), [](const DataFile& f) { return f.direct(); })),
        request_bytes_(direct_ ? options.request_bytes : std::min(options.request_bytes, kBufferedRequest)),
        reasons_(std::move(options.reasons)),
        book_(files_, request_bytes_) {}
  ~ThreadEngine() override;

  Result<void> start();
  Result<void> submit(const ReadWish& wish) override;
  Result<void> wait(uint32_t tag) override;
  bool ready(uint32_t tag) override;
  uint64_t bytes_read() const override;
  std::string description() const override;

 private:
  void work();
  static void* enter(void* self) {
    static_cast<ThreadEngine*>(self)->work();
    return nullptr;
  }

  std::vector<DataFile> files_;
  bool direct_;
  uint64_t request_bytes_;
  std::vector<std::string> reasons_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable work_there_, request_over_;
  RequestBook book_;
  bool stop_ = false;
  std::vector<pthread_t> threads_;
};

Result<void> ThreadEngine::start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kReadThreadStack);
  int error = 0;
  for (uint32_t i = 0; i < kReadThreads && error == 0; ++i) {
    pthread_t thread;
    error = pthread_create(&thread, &attributes, &ThreadEngine::enter, this);
    if (error == 0) threads_.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  // Fewer threads read more slowly; none cannot read at all.
  if (!threads_.empty()) return {};
  return io_error(fmt::format("no thread for reading can be started: {}; raise the limit on processes (ulimit -u)",
                              std::generic_category().message(error)));
}

ThreadEngine::~ThreadEngine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_there_.notify_all();
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void ThreadEngine::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_there_.wait(lock, [&] { return stop_ || book_.waiting(); });
    if (stop_) return;
    const uint32_t id = book_.take_next();
    bool over = false;
    while (!over && !stop_) {
      // A copy: the book may grow while we read.
      const Request request = book_.request(id);
      lock.unlock();
      int64_t result = files_[request.file].read(request.next_into(), request.next_bytes(), request.next_offset());
      lock.lock();
      over = book_.finish(id, result);
    }
    request_over_.notify_all();
  }
}

Result<void> ThreadEngine::submit(const ReadWish& wish) {
  {
    std::lock_guard lock(mutex_);
    RIDGE_TRY(book_.add(wish));
  }
  work_there_.notify_all();
  return {};
}

Result<void> ThreadEngine::wait(uint32_t tag) {
  std::unique_lock lock(mutex_);
  request_over_.wait(lock, [&] { return !book_.pending(tag); });
  return book_.settle(tag);
}

bool ThreadEngine::ready(uint32_t tag) {
  std::lock_guard lock(mutex_);
  return !book_.pending(tag);
}

uint64_t ThreadEngine::bytes_read() const {
  std::lock_guard lock(mutex_);
  return book_.bytes_asked();
}

std::string ThreadEngine::description() const {
  const char* mode = "O_DIRECT";
  for (const DataFile& f : files_) {
    if (!f.direct()) mode = f.mode_name();
  }
  return describe(fmt::format("pread, {}, {} with requests of {}", mode, counted(threads_.size(), "thread"),
                              format_bytes(request_bytes_)),
                  reasons_);
}

}  // namespace

Result<std::unique_ptr<IoEngine>> make_thread_engine(BackendOptions options) {
  auto engine = std::make_unique<ThreadEngine>(std::move(options));
  RIDGE_TRY(engine->start());
  return std::unique_ptr<IoEngine>(std::move(engine));
}

}  // namespace ridge
