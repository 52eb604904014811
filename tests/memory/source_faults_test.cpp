// Every read of a run fails once in every way, and a thousand runs in which reads are late and fail by chance: the
// bytes are right or the error is, and nothing hangs.
#include <unistd.h>

#include "base/splitmix.h"
#include "tests/memory/source_fixture.h"

namespace ridge {
namespace {

using test::FaultySyscalls;
using test::kPins;
using test::StreamingSourceTest;

// A read takes a sanitizer ten times as long. ThreadSanitizer gets all schedules, AddressSanitizer a tenth of them, and
// both every few reads.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 100;
#else
constexpr uint64_t kSchedules = 1000;
#endif
constexpr int kFewReads = 6;

struct Fault {
  const char* name;
  int64_t (*answer)(int64_t got);
  bool lasts;                          // also for every read after it
  std::optional<ErrorCode> told = {};  // nothing: it heals
};

const Fault kFaults[] = {
    {"interrupted", [](int64_t) -> int64_t { return -EINTR; }, false},
    {"try again", [](int64_t) -> int64_t { return -EAGAIN; }, false},
    {"half", [](int64_t got) -> int64_t { return got > 1 ? (got + 1) / 2 : got; }, false},
    {"one I/O error", [](int64_t) -> int64_t { return -EIO; }, false},
    {"a broken device", [](int64_t) -> int64_t { return -EIO; }, true, ErrorCode::io},
    {"a device that is gone", [](int64_t) -> int64_t { return -ENODEV; }, true, ErrorCode::io},
    {"an early end", [](int64_t) -> int64_t { return 0; }, true, ErrorCode::bad_input},
};

class SourceFaults : public StreamingSourceTest {
 protected:
  // A source, and one pass over it. The first error, if there was one; the bytes that came are right.
  std::optional<Error> run(Syscalls& calls, IoKind io, int passes = 1) {
    StreamingSourceOptions o = options(rows_, kPins.at("every second"));
    o.io = io;
    o.syscalls = &calls;
    auto source = StreamingSource::create(o);
    if (!source.ok()) return source.error();
    for (int pass = 0; pass < passes; ++pass) {
      if (auto begun = source.value()->begin_pass({}); !begun.ok()) return begun.error();
      for (BlockId b = 0; b < blocks(); ++b) {
        auto lease = source.value()->acquire(b);
        if (!lease.ok()) return lease.error();
        EXPECT_TRUE(test::block_bytes(rows_.program, b, lease.value()) == expected_[b]) << "block " << b;
      }
    }
    return std::nullopt;
  }
};

TEST_F(SourceFaults, EveryReadFailsInEveryWay) {
  for (IoKind io : {IoKind::uring, IoKind::threads, IoKind::buffered}) {
    FaultySyscalls clean;
    std::atomic<int> reads{0};
    clean.fault = [&](int64_t got, int) { return ++reads, got; };
    ASSERT_FALSE(run(clean, io));
    ASSERT_GT(reads, 10);
    for (const Fault& fault : kFaults) {
      bool told = false;
      for (int at = 0; at < reads; at += test::kSanitized ? std::max(1, reads / kFewReads) : 1) {
        FaultySyscalls calls;
        calls.fault = [&](int64_t got, int call) {
          return call == at || (fault.lasts && call > at) ? fault.answer(got) : got;
        };
        const std::optional<Error> error = run(calls, io);
        const std::string what = std::string(fault.name) + " at read " + std::to_string(at) + " by " +
                                 std::string(name_of(io)) + (error ? ": " + error->message : "");
        if (!fault.told) {
          EXPECT_FALSE(error) << what;
          continue;
        }
        // The first read asks whether O_DIRECT works and has another way; the last ones are ahead of what was needed.
        if (!error) continue;
        told = true;
        EXPECT_EQ(error->code, *fault.told) << what;
        EXPECT_NE(error->message.find("model"), std::string::npos) << what;
      }
      EXPECT_EQ(told, fault.told.has_value()) << fault.name << " by " << name_of(io);
    }
  }
}

// Reads of random length of time, of which some fail: decided by the seed and the number of the read.
class RandomDisk : public Syscalls {
 public:
  RandomDisk(uint64_t seed, bool breaks) : seed_(seed), breaks_(breaks) {}

  int64_t read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor) override {
    return change(Syscalls::read(fd, into, bytes, offset, flavor));
  }
  int uring_result(int result) override { return static_cast<int>(change(result)); }

 private:
  int64_t change(int64_t got) {
    constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // of the generator: each read has a state of its own
    uint64_t state = seed_ + kStep * count_++;
    const uint64_t z = splitmix64(state);
    if (z % 4 == 0) ::usleep(static_cast<unsigned>(z >> 8) % 200);
    switch ((z >> 32) % 32) {
      case 0:
        return -EINTR;
      case 1:
        return -EAGAIN;
      case 2:
        return got > 1 ? (got + 1) / 2 : got;
      case 3:
        return breaks_ ? -EIO : got;
      case 4:
        return breaks_ && (z >> 40) % 8 == 0 ? -ENODEV : got;
      default:
        return got;
    }
  }

  const uint64_t seed_;
  const bool breaks_;
  std::atomic<uint64_t> count_{0};
};

TEST_F(SourceFaults, AThousandRandomSchedules) {
  int failed = 0;
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    const bool breaks = seed % 2 == 1;
    RandomDisk disk(seed, breaks);
    constexpr IoKind kEngines[] = {IoKind::uring, IoKind::threads, IoKind::buffered};
    const std::optional<Error> error = run(disk, kEngines[seed % 3], 2);
    if (!error) continue;
    ++failed;
    ASSERT_TRUE(breaks) << "seed " << seed << ": " << error->message;
    ASSERT_EQ(error->code, ErrorCode::io) << "seed " << seed << ": " << error->message;
  }
  // A disk that breaks fails some runs, and leaves some whole.
  EXPECT_GT(failed, static_cast<int>(kSchedules / 20));
  EXPECT_LT(failed, static_cast<int>(kSchedules / 2));
}

}  // namespace
}  // namespace ridge
