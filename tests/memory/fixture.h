// A small model file with tensors of several types at odd offsets, and its program: what the tests of weight sources
// read.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "base/units.h"
#include "memory/streaming_source.h"
#include "memory/syscalls.h"
#include "tensor/panel.h"
#include "tests/temp_folder.h"

namespace ridge::test {

namespace fs = std::filesystem;

// A sanitizer's own memory drowns what a test would measure.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// Written and flushed, so that its pages are clean and may leave the cache.
inline void write_clean_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

inline std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, count - i));
  }
  return bytes;
}

// Pages of a file that are in the page cache.
inline size_t cached_pages(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY);
  auto bytes = static_cast<size_t>(fs::file_size(path));
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  std::vector<unsigned char> present((bytes + 4095) / 4096);
  ::mincore(map, bytes, present.data());
  ::munmap(map, bytes);
  return static_cast<size_t>(
      std::count_if(present.begin(), present.end(), [](unsigned char p) { return (p & 1) != 0; }));
}

struct Model {
  Program program;
  std::vector<uint8_t> bytes;  // the file
  TensorId embedding = 0;      // gathered; in no block
  TensorId head = 0;           // gathered and in blocks (a tied head)
};

// `layers` layers of two blocks each and a head of three blocks. Sizes are odd on purpose.
class ModelBuilder {
 public:
  explicit ModelBuilder(Layout layout) : layout_(layout) {}

  Model build(const std::string& path, uint32_t layers, uint32_t scale = 1) {
    model_.program.files = {path};
    model_.bytes = random_bytes(777, 1);  // a header
    model_.embedding = add_tensor("embedding", Type::Q8_0, 203, 96, Layout::rows);
    constexpr Type kTypes[] = {Type::Q4_0, Type::Q8_0, Type::F16, Type::Q4_1, Type::F32};
    for (uint32_t l = 0; l < layers; ++l) {
      Type type = kTypes[l % 5];
      std::string name = "blk." + std::to_string(l);
      TensorId q = add_tensor(name + ".q", type, 96 * scale, 64, layout_);
      TensorId k = add_tensor(name + ".k", Type::Q8_0, 40 * scale, 64, layout_);
      TensorId up = add_tensor(name + ".up", type, 250 * scale, 96, layout_);
      add_block(name + ".attn", {whole(q), whole(k)});
      add_block(name + ".ffn", {whole(up)});
    }
    model_.head = add_tensor("head", Type::Q4_0, 203, 96, layout_);
    add_block("head/0", {{model_.head, 0, 80}});
    add_block("head/1", {{model_.head, 80, 160}});
    add_block("head/2", {{model_.head, 160, 203}});
    write_clean_file(path, model_.bytes);
    return std::move(model_);
  }

 private:
  Piece whole(TensorId t) const { return {t, 0, model_.program.tensors[t].rows}; }

  // The values of a tensor depend on its name alone, so that both layouts hold the same weights.
  TensorId add_tensor(const std::string& name, Type type, uint32_t rows, uint32_t cols, Layout layout) {
    size_t row = row_bytes(type, cols);
    std::vector<uint8_t> data = random_bytes(rows * row, static_cast<uint32_t>(std::hash<std::string>{}(name)));
    if (layout == Layout::panels) {
      std::vector<uint8_t> panels(panels_bytes(type, rows, cols));
      pack_rows(type, data.data(), rows, cols, panels.data());
      data = std::move(panels);
      model_.bytes.resize(round_up(model_.bytes.size(), 4096));
    } else {
      model_.bytes.resize(round_up(model_.bytes.size(), 32));  // as GGUF aligns
    }
    StoredTensor t{.name = name,
                   .type = type,
                   .rows = rows,
                   .cols = cols,
                   .file = 0,
                   .offset = model_.bytes.size(),
                   .layout = layout};
    model_.bytes.insert(model_.bytes.end(), data.begin(), data.end());
    model_.program.tensors.push_back(t);
    return static_cast<TensorId>(model_.program.tensors.size() - 1);
  }

  void add_block(const std::string& name, std::vector<Piece> pieces) {
    Program& p = model_.program;
    Block block{.name = name, .pieces = std::move(pieces)};
    for (const Piece& piece : block.pieces) {
      const StoredTensor& t = p.tensors[piece.tensor];
      block.storage_bytes += t.stored_bytes(piece.row_begin, piece.row_end);
      block.memory_bytes += panels_bytes(t.type, piece.row_end - piece.row_begin, t.cols);
    }
    p.visits.push_back(
        {.block = static_cast<BlockId>(p.blocks.size()), .cost = {.storage_bytes = block.storage_bytes}});
    p.blocks.push_back(std::move(block));
  }

  Layout layout_;
  Model model_;

 public:
  static void pack_rows(Type type, const uint8_t* rows, size_t count, size_t cols, uint8_t* into) {
    size_t row = row_bytes(type, cols), panel = panel_bytes(type, cols);
    std::vector<uint8_t> aligned(panel + 64);
    uint8_t* at = aligned.data() + (64 - reinterpret_cast<uintptr_t>(aligned.data()) % 64) % 64;
    for (size_t r = 0; r < count; r += 16) {
      pack_panel({type, rows + r * row, row, std::min<size_t>(16, count - r), cols, at});
      std::memcpy(into + r / 16 * panel, at, panel);
    }
  }
};

// The panels of a piece, from whatever a source gives.
inline std::vector<uint8_t> panels_of(const Program& program, const Piece& piece, const PieceView& view) {
  const StoredTensor& t = program.tensors[piece.tensor];
  size_t rows = piece.row_end - piece.row_begin;
  std::vector<uint8_t> panels(panels_bytes(t.type, rows, t.cols));
  if (view.layout == Layout::panels) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u) << "panels are aligned";
    std::memcpy(panels.data(), view.data, panels.size());
  } else {
    ModelBuilder::pack_rows(t.type, view.data, rows, t.cols, panels.data());
  }
  return panels;
}

inline std::vector<uint8_t> block_bytes(const Program& program, BlockId block, const Lease& lease) {
  std::vector<uint8_t> all;
  EXPECT_EQ(lease.pieces().size(), program.blocks[block].pieces.size());
  for (size_t i = 0; i < lease.pieces().size(); ++i) {
    std::vector<uint8_t> one = panels_of(program, program.blocks[block].pieces[i], lease.pieces()[i]);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline Placement placement_of(const Program& program, const std::function<bool(BlockId)>& pinned) {
  Placement p;
  for (BlockId b = 0; b < program.blocks.size(); ++b) p.pinned.push_back(pinned(b) ? 1 : 0);
  p.slot_bytes = program.largest_block_storage();
  return p;
}

// System calls that fail when a test says so. Counters are atomic: engines call from several threads.
class FaultySyscalls : public Syscalls {
 public:
  int open(const char* path, int flags) override {
    if (refuse_direct_open && (flags & O_DIRECT) != 0) return -EINVAL;
    return Syscalls::open(path, flags);
  }
  int64_t read(int fd, void* into, size_t bytes, uint64_t offset, ReadFlavor flavor) override {
    if (flavor == ReadFlavor::dont_cache && refuse_dont_cache) return -EOPNOTSUPP;
    if (flavor == ReadFlavor::plain && refuse_direct_read && (::fcntl(fd, F_GETFL) & O_DIRECT) != 0) return -EINVAL;
    int64_t got = Syscalls::read(fd, into, bytes, offset, flavor);
    return armed ? change(got) : got;
  }
  int uring_setup(unsigned entries, io_uring* ring) override {
    return setup_error != 0 ? setup_error : Syscalls::uring_setup(entries, ring);
  }
  int uring_register_buffers(io_uring* ring, const iovec* buffers, unsigned count) override {
    return buffers_error != 0 ? buffers_error : Syscalls::uring_register_buffers(ring, buffers, count);
  }
  int uring_register_files(io_uring* ring, const int* fds, unsigned count) override {
    return files_error != 0 ? files_error : Syscalls::uring_register_files(ring, fds, count);
  }
  int uring_submit(io_uring* ring) override {
    if (submit_refusals > 0) {
      --submit_refusals;
      return -EAGAIN;
    }
    return Syscalls::uring_submit(ring);
  }
  int uring_result(int result) override { return armed ? static_cast<int>(change(result)) : result; }

  bool refuse_direct_open = false, refuse_direct_read = false, refuse_dont_cache = false;
  int setup_error = 0, buffers_error = 0, files_error = 0;
  int submit_refusals = 0;
  std::atomic<bool> armed{true};  // reads pass unchanged while false
  // What a read that gave `got` is said to have given.
  std::function<int64_t(int64_t got, int call)> fault;

 private:
  int64_t change(int64_t got) {
    std::lock_guard lock(mutex_);
    return fault ? fault(got, calls_++) : got;
  }
  std::mutex mutex_;
  int calls_ = 0;
};

}  // namespace ridge::test
