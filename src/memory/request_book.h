// The requests of an I/O engine: wishes cut into reads of one size, what each read said, and what is left of each tag.
// All retrying and all error messages live here, once for every engine.
//
// Not for: starting reads (io_uring.cpp, io_threads.cpp). Not thread-safe: an engine with threads locks around it.
//
//   book.add(wish);
//   while (book.waiting()) start(book.request(book.take_next()));
//   if (!book.finish(id, result)) start_again(id);
//   if (!book.pending(tag)) return book.settle(tag);
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/data_file.h"
#include "memory/io_engine.h"

namespace ridge {

struct Request {
  uint32_t file = 0, tag = 0;
  uint64_t offset = 0;  // of the first byte, a multiple of kIoAlign
  uint32_t bytes = 0;   // to ask for, a multiple of kIoAlign
  uint32_t needed = 0;  // that must arrive; the rest may lie past the end of the file
  uint32_t done = 0;    // that have arrived
  uint8_t* into = nullptr;
  bool urgent = false;
  uint8_t io_failures = 0;
  uint8_t stalls = 0;    // reads in a row that brought nothing new
  uint16_t repeats = 0;  // EINTR and EAGAIN

  uint8_t* next_into() const { return into + done; }
  uint64_t next_offset() const { return offset + done; }
  uint32_t next_bytes() const { return bytes - done; }
};

class RequestBook {
 public:
  RequestBook(std::span<const DataFile> files, uint64_t request_bytes);

  // Cuts the wish into requests and queues them. Bad input: the wish ends past the end of its file.
  Result<void> add(const ReadWish& wish);

  bool waiting() const { return !queue_.empty(); }
  uint32_t take_next();
  Request& request(uint32_t id) { return requests_[id]; }
  const DataFile& file(const Request& request) const { return files_[request.file]; }

  // What a read of this request said: bytes or −errno. True: the request is over, its id is free; false: start it
  // again.
  bool finish(uint32_t id, int64_t result);
  // The request cannot be started at all.
  void fail(uint32_t id, Error error);

  bool pending(uint32_t tag) const;
  // When nothing of the tag is pending: its first error, or whether its files are still what they were. Forgets the
  // tag.
  Result<void> settle(uint32_t tag);

  uint64_t bytes_asked() const { return bytes_asked_; }

 private:
  struct Tag {
    uint32_t tag = 0;
    uint32_t pending = 0;
    std::optional<Error> error;
    std::vector<uint32_t> files;
  };

  Tag* find(uint32_t tag);
  Tag& tag_of(uint32_t tag);
  void over(uint32_t id);
  bool repeat_or_fail(uint32_t id, int error);
  bool end_of_file(uint32_t id, uint64_t end);

  std::span<const DataFile> files_;
  uint64_t request_bytes_;
  std::vector<Request> requests_;
  std::vector<uint32_t> free_;
  std::deque<uint32_t> queue_;
  std::vector<Tag> tags_;  // few at a time
  uint64_t bytes_asked_ = 0;
};

}  // namespace ridge
