// The I/O engine of io_uring: one thread keeps the device's queue full, so that cores stay with the computing. Buffers
// and files are registered (no page is looked up per read); where the kernel refuses that, reads are unregistered.
#include "memory/io_backends.h"

#if RIDGE_HAVE_URING

#include <fmt/format.h>
#include <liburing.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/log.h"
#include "base/units.h"
#include "memory/request_book.h"

namespace ridge {
namespace {

// The kernel takes no registered buffer above 1 GiB.
constexpr uint64_t kRegisteredMost = kGiB;

std::string reason(int error) { return std::generic_category().message(error); }

class UringEngine final : public IoEngine {
 public:
  explicit UringEngine(BackendOptions& options)
      : depth_(options.depth),
        request_bytes_(options.request_bytes),
        calls_(options.syscalls),
        files_(std::move(options.files)),
        reasons_(std::move(options.reasons)),
        book_(files_, request_bytes_) {}
  ~UringEngine() override;

  void start(const io_uring& ring, std::span<const std::span<uint8_t>> buffers);
  Result<void> submit(const ReadWish& wish) override;
  Result<void> wait(uint32_t tag) override;
  bool ready(uint32_t tag) override;
  uint64_t bytes_read() const override { return book_.bytes_asked(); }
  std::string description() const override;

 private:
  void register_buffers(std::span<const std::span<uint8_t>> buffers);
  void register_files();
  void prepare(io_uring_sqe* sqe, uint32_t id);
  void start_waiting();
  Result<void> hand_over();
  void collect();
  void take(const io_uring_cqe& completion);
  Result<void> wait_for_one();

  uint32_t depth_;
  uint64_t request_bytes_;
  Syscalls* calls_;
  std::vector<DataFile> files_;
  std::vector<std::string> reasons_;
  RequestBook book_;
  std::vector<uint32_t> again_;  // requests to start before all others
  std::vector<iovec> registered_;
  bool files_registered_ = false, registering_failed_ = false;
  io_uring ring_{};
  uint32_t prepared_ = 0;   // in the submission queue, not yet the kernel's
  uint32_t in_flight_ = 0;  // the kernel's
};

void UringEngine::start(const io_uring& ring, std::span<const std::span<uint8_t>> buffers) {
  ring_ = ring;
  again_.reserve(depth_);
  register_buffers(buffers);
  register_files();
}

void UringEngine::register_buffers(std::span<const std::span<uint8_t>> buffers) {
  std::vector<iovec> parts;
  uint64_t total = 0;
  for (std::span<uint8_t> buffer : buffers) {
    for (uint64_t at = 0; at < buffer.size(); at += kRegisteredMost) {
      parts.push_back({buffer.data() + at, std::min<uint64_t>(kRegisteredMost, buffer.size() - at)});
    }
    total += buffer.size();
  }
  if (parts.empty()) return;
  int result = calls_->uring_register_buffers(&ring_, parts.data(), static_cast<unsigned>(parts.size()));
  if (result >= 0) {
    registered_ = std::move(parts);
    return;
  }
  registering_failed_ = true;
  std::string hint;
  rlimit locked{};
  if (result == -ENOMEM && ::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur < total) {
    hint = fmt::format(": the limit on locked memory is {}, the buffers are {} (ulimit -l raises it)",
                       format_bytes(locked.rlim_cur), format_bytes(total));
  }
  reasons_.push_back(
      fmt::format("buffers are not registered ({}{}): each read costs a little more CPU", reason(-result), hint));
  note_once("io_uring buffers", reasons_.back());
}

void UringEngine::register_files() {
  std::vector<int> fds;
  for (const DataFile& file : files_) fds.push_back(file.fd());
  int result = calls_->uring_register_files(&ring_, fds.data(), static_cast<unsigned>(fds.size()));
  files_registered_ = result >= 0;
  if (files_registered_) return;
  reasons_.push_back(fmt::format("files are not registered ({}): each read costs a little more CPU", reason(-result)));
  note_once("io_uring files", reasons_.back());
}

UringEngine::~UringEngine() {
  // The kernel writes into our buffers until it says that it is done.
  while (in_flight_ > 0) {
    io_uring_cqe* completion = nullptr;
    int result = ::io_uring_wait_cqe(&ring_, &completion);
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result != 0) break;
    --in_flight_;
    ::io_uring_cqe_seen(&ring_, completion);
  }
  ::io_uring_queue_exit(&ring_);
}

void UringEngine::prepare(io_uring_sqe* sqe, uint32_t id) {
  const Request& request = book_.request(id);
  uint8_t* into = request.next_into();
  const int fd = files_registered_ ? static_cast<int>(request.file) : files_[request.file].fd();
  auto holds = [&](const iovec& b) {
    auto* begin = static_cast<uint8_t*>(b.iov_base);
    return into >= begin && into + request.next_bytes() <= begin + b.iov_len;
  };
  auto buffer = std::find_if(registered_.begin(), registered_.end(), holds);
  if (buffer == registered_.end()) {
    ::io_uring_prep_read(sqe, fd, into, request.next_bytes(), request.next_offset());
  } else {
    ::io_uring_prep_read_fixed(sqe, fd, into, request.next_bytes(), request.next_offset(),
                               static_cast<int>(buffer - registered_.begin()));
  }
  if (files_registered_) sqe->flags |= IOSQE_FIXED_FILE;
  ::io_uring_sqe_set_data64(sqe, id);
}

// Fills the submission queue from what waits.
void UringEngine::start_waiting() {
  while (prepared_ + in_flight_ < depth_ && (!again_.empty() || book_.waiting())) {
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    if (sqe == nullptr) return;
    uint32_t id;
    if (again_.empty()) {
      id = book_.take_next();
    } else {
      id = again_.back();
      again_.pop_back();
    }
    prepare(sqe, id);
    ++prepared_;
  }
}

Result<void> UringEngine::hand_over() {
  start_waiting();
  if (prepared_ == 0) return {};
  int result = calls_->uring_submit(&ring_);
  if (result == -EINTR || result == -EAGAIN || result == -EBUSY)
    return {};  // still prepared: the next call tries again
  if (result < 0)
    return io_error(fmt::format("io_uring takes no more requests: {}; use --io threads", reason(-result)));
  in_flight_ += static_cast<uint32_t>(result);
  prepared_ -= static_cast<uint32_t>(result);
  return {};
}

void UringEngine::take(const io_uring_cqe& completion) {
  --in_flight_;
  auto id = static_cast<uint32_t>(::io_uring_cqe_get_data64(&completion));
  if (!book_.finish(id, calls_->uring_result(completion.res))) again_.push_back(id);
}

// Everything that is complete by now.
void UringEngine::collect() {
  io_uring_cqe* completion = nullptr;
  while (in_flight_ > 0 && ::io_uring_peek_cqe(&ring_, &completion) == 0 && completion != nullptr) {
    take(*completion);
    ::io_uring_cqe_seen(&ring_, completion);
  }
}

Result<void> UringEngine::submit(const ReadWish& wish) {
  RIDGE_TRY(book_.add(wish));
  collect();
  return hand_over();
}

Result<void> UringEngine::wait_for_one() {
  io_uring_cqe* completion = nullptr;
  int result = ::io_uring_wait_cqe(&ring_, &completion);
  if (result == -EINTR || result == -EAGAIN) return {};
  if (result != 0) return io_error(fmt::format("waiting for io_uring failed: {}; use --io threads", reason(-result)));
  return {};
}

Result<void> UringEngine::wait(uint32_t tag) {
  constexpr int kMostRefusals = 1000;
  int refusals = 0;
  for (;;) {
    collect();
    RIDGE_TRY(hand_over());
    if (!book_.pending(tag)) return book_.settle(tag);
    if (in_flight_ > 0) {
      refusals = 0;
      RIDGE_TRY(wait_for_one());
    } else if (++refusals == kMostRefusals) {
      return io_error("io_uring refuses every request (EAGAIN): the system is short of memory; use --io threads");
    } else {
      ::sched_yield();
    }
  }
}

bool UringEngine::ready(uint32_t tag) {
  collect();
  // A refusal comes again at wait(), which reports it.
  (void)hand_over();
  return !book_.pending(tag);
}

std::string UringEngine::description() const {
  // Without buffers to register (everything was loaded into panels) there is nothing to say of them.
  const char* buffers = !registered_.empty()  ? "registered buffers, "
                        : registering_failed_ ? "unregistered buffers, "
                                              : "";
  return describe(fmt::format("io_uring, O_DIRECT, {}{} requests of {}", buffers, depth_, format_bytes(request_bytes_)),
                  reasons_);
}

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(BackendOptions& options) {
  io_uring ring{};
  int result = options.syscalls->uring_setup(options.depth, &ring);
  if (result < 0) {
    const char* cause = result == -EPERM || result == -EACCES
                            ? "is not permitted here (a container's seccomp profile, or "
                              "kernel.io_uring_disabled)"
                        : result == -ENOSYS ? "is unknown to this kernel"
                                            : "cannot be set up";
    options.reasons.push_back(
        fmt::format("io_uring {} ({}): reading with {} threads instead", cause, reason(-result), kReadThreads));
    return nullptr;
  }
  auto engine = std::make_unique<UringEngine>(options);
  engine->start(ring, options.buffers);
  return engine;
}

}  // namespace ridge

#else

namespace ridge {

std::unique_ptr<IoEngine> make_uring_engine(BackendOptions& options) {
  options.reasons.emplace_back(
      "io_uring is not part of this build (liburing was absent): reading with threads instead");
  return nullptr;
}

}  // namespace ridge

#endif
