// Memory that is taken once and kept: slots, pins, buffers. The only allocator of weights in Ridge.
//
// A slab is an anonymous mapping, touched when it is made, so that a run never meets a page fault that fails: what does
// not fit is a does_not_fit error before the first token. Large slabs are 2 MiB aligned and on huge pages where
// offered. Not for: small objects (those are ordinary members and vectors).
//
//   Slab slots = RIDGE_TRY(Slab::allocate(2 * slot_bytes, {.what = "the stream slots"}));
//   uint8_t* first = slots.data();           // zeros; 4 KiB aligned, 2 MiB aligned if large
//   uint64_t charged = Slab::charge(2 * slot_bytes);
//
// Thread-safe: immutable once made; the bytes are whoever's they are.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

namespace ridge {

inline constexpr uint64_t kSmallPage = 4096;
inline constexpr uint64_t kHugePage = 2 * 1024 * 1024;

struct SlabOptions {
  const char* what = "a buffer";  // for the error message: "the stream slots"
  bool huge_pages = true;         // ask for them where the slab is large enough to hold one
  bool touch = true;              // make every page present now; false for what is about to be written from end to end
};

class Slab {
 public:
  // Error: does_not_fit when the kernel has no room. `bytes` 0 gives an empty slab.
  static Result<Slab> allocate(uint64_t bytes, const SlabOptions& options);

  // The most the kernel can charge for a slab of `bytes`: whole pages (2 MiB ones if large) and their page tables.
  static uint64_t charge(uint64_t bytes);

  Slab() = default;
  Slab(Slab&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Slab& operator=(Slab&& other) noexcept;
  ~Slab() { reset(); }

  // These whole pages go back to the kernel; they are zeros again when they are next touched.
  void discard(uint64_t offset, uint64_t bytes) const;
  void reset();  // gives everything back; the only way before the destructor
  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }  // as mapped: rounded up to pages
  std::span<uint8_t> span() const { return {data_, bytes_}; }

 private:
  Slab(uint8_t* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace ridge
