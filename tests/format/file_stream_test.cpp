// Streams hand out every byte once, in order, at any chunk size, and leave nothing in the page cache.
#include "format/file_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>

#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::TempFolder;
using test::write_file;

std::vector<uint8_t> random_bytes(size_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// Reads and skips pieces of random sizes and compares them with the file.
void walk(ByteStream& in, const std::vector<uint8_t>& bytes, size_t largest, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> piece;
  while (in.remaining() > 0) {
    uint64_t at = in.position();
    size_t n = std::min<size_t>(random() % (largest + 1), in.remaining());
    if (random() % 3 == 0) {
      ASSERT_TRUE(in.skip(n).ok());
    } else {
      piece.assign(n, 0);
      Result<void> read = in.read(piece.data(), n);
      ASSERT_TRUE(read.ok()) << read.error().message;
      ASSERT_TRUE(std::equal(piece.begin(), piece.end(), bytes.begin() + static_cast<ptrdiff_t>(at))) << "at " << at;
    }
    ASSERT_EQ(in.position(), at + n);
    ASSERT_EQ(in.remaining(), bytes.size() - at - n);
  }
}

TEST(FileStream, ReadsEveryByteOnce) {
  TempFolder folder;
  for (size_t size : {1u, 4095u, 4096u, 4097u, 300'001u}) {
    std::vector<uint8_t> bytes = random_bytes(size);
    write_file(folder / "f", bytes);
    for (bool direct : {true, false}) {
      for (size_t chunk : {size_t{1}, size_t{8192}, size_t{256 * 1024}}) {
        Result<FileStream> in = FileStream::open(folder / "f", {.chunk_bytes = chunk, .try_direct = direct});
        ASSERT_TRUE(in.ok()) << in.error().message;
        EXPECT_EQ(in.value().size(), size);
        ASSERT_NO_FATAL_FAILURE(walk(in.value(), bytes, 20'000, static_cast<uint32_t>(size)));
        EXPECT_TRUE(direct || !in.value().direct());
      }
    }
  }
}

TEST(FileStream, SurvivesBeingMoved) {
  TempFolder folder;
  std::vector<uint8_t> bytes = random_bytes(20'000);
  write_file(folder / "f", bytes);
  FileStream first = FileStream::open(folder / "f", {.chunk_bytes = 4096}).value();
  ASSERT_TRUE(first.skip(10).ok());
  EXPECT_EQ(first.read_as<uint8_t>().value(), bytes[10]);
  FileStream second = std::move(first);
  EXPECT_EQ(second.position(), 11u);
  ASSERT_NO_FATAL_FAILURE(walk(second, bytes, 100, 5));
}

TEST(FileStream, SaysWhereTheFileEnds) {
  TempFolder folder;
  write_file(folder / "f", random_bytes(100));
  FileStream in = FileStream::open(folder / "f").value();
  ASSERT_TRUE(in.skip(98).ok());
  Result<uint32_t> number = in.read_as<uint32_t>();
  ASSERT_FALSE(number.ok());
  EXPECT_EQ(number.error().code, ErrorCode::bad_input);
  EXPECT_EQ(number.error().offset, 98u);
  EXPECT_EQ(number.error().message,
            folder / "f: 4 bytes were expected at 98, but the file ends at 100: it is cut short; fetch it again");
  EXPECT_FALSE(in.skip(3).ok());
  EXPECT_EQ(in.position(), 98u);
  EXPECT_TRUE(in.skip(2).ok());
  EXPECT_TRUE(in.read(nullptr, 0).ok());
  EXPECT_FALSE(in.skip(~0ull).ok());
}

TEST(FileStream, NoticesAFileThatShrinks) {
  TempFolder folder;
  write_file(folder / "f", random_bytes(20'000));
  FileStream in = FileStream::open(folder / "f", {.chunk_bytes = 4096}).value();
  ASSERT_TRUE(in.skip(1).ok());
  std::filesystem::resize_file(folder / "f", 5000);
  std::vector<uint8_t> rest(19'000);
  Result<void> read = in.read(rest.data(), rest.size());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::io);
  EXPECT_NE(read.error().message.find("became shorter while it was read"), std::string::npos) << read.error().message;
}

TEST(FileStream, RefusesWhatIsNoFile) {
  TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  Result<FileStream> in = FileStream::open(folder / "pipe");  // must not wait for a writer
  ASSERT_FALSE(in.ok());
  EXPECT_EQ(in.error().code, ErrorCode::bad_input);
}

// Pages of the file that lie in the page cache. Looking at them through a mapping does not bring them in.
size_t cached_pages(const std::string& path, size_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY));
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  ::mincore(map, bytes, pages.data());
  ::munmap(map, bytes);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char c) { return (c & 1) != 0; }));
}

TEST(FileStream, LeavesNothingInThePageCache) {
  constexpr size_t kBytes = 2'000'000;
  TempFolder folder;
  write_file(folder / "f", random_bytes(kBytes));
  {
    UniqueFd fd(::open((folder / "f").c_str(), O_RDWR));
    ::fsync(fd.get());
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (cached_pages(folder / "f", kBytes) > 0) GTEST_SKIP() << "needs a temporary folder that is not in memory";
  for (bool direct : {true, false}) {
    FileStream in = FileStream::open(folder / "f", {.try_direct = direct}).value();
    std::vector<uint8_t> all(kBytes - 777'777);
    ASSERT_TRUE(in.read(all.data(), all.size()).ok());
    EXPECT_EQ(cached_pages(folder / "f", kBytes), 0u) << (direct ? "direct" : "buffered");
  }
}

TEST(SpanStream, ReadsAndSkips) {
  std::vector<uint8_t> bytes = random_bytes(5000);
  SpanStream in(bytes, "memory");
  ASSERT_NO_FATAL_FAILURE(walk(in, bytes, 300, 9));
  EXPECT_FALSE(in.read_as<uint8_t>().ok());
  SpanStream empty({}, "memory");
  EXPECT_EQ(empty.remaining(), 0u);
  EXPECT_FALSE(empty.read_as<uint8_t>().ok());
}

}  // namespace
}  // namespace ridge
