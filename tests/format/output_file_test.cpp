// Output files are whole or not there, and every failure is said.
#include "format/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "format/npy.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST(OutputFile, AppearsOnlyWhenCommitted) {
  TempFolder folder;
  OutputFile out = OutputFile::create(folder / "f").value();
  ASSERT_TRUE(out.write("hello ").ok());
  ASSERT_TRUE(out.write(bytes_of("world")).ok());
  EXPECT_EQ(out.position(), 11u);
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
  EXPECT_LE(folder.entries(), 1u);  // none, or where the file system has no unnamed files the partial one
  ASSERT_TRUE(out.commit().ok());
  EXPECT_EQ(read_file(folder / "f"), bytes_of("hello world"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, LeavesNothingBehindWithoutCommit) {
  TempFolder folder;
  write_file(folder / "f", bytes_of("old"));
  {
    OutputFile out = OutputFile::create(folder / "f").value();
    ASSERT_TRUE(out.write("new").ok());
    OutputFile moved = std::move(out);
    OutputFile other = OutputFile::create(folder / "g").value();
    other = std::move(moved);
  }
  EXPECT_EQ(read_file(folder / "f"), bytes_of("old"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, ReplacesAnExistingFileAndAStalePartialOne) {
  TempFolder folder;
  write_file(folder / "f", bytes_of("something old and long"));
  write_file(folder / ("f.partial-" + std::to_string(::getpid())), bytes_of("left over, and longer than what comes"));
  OutputFile out = OutputFile::create(folder / "f").value();
  ASSERT_TRUE(out.write("new").ok());
  ASSERT_TRUE(out.commit().ok());
  EXPECT_EQ(read_file(folder / "f"), bytes_of("new"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, WritesAnywhere) {
  TempFolder folder;
  OutputFile out = OutputFile::create(folder / "f").value();
  ASSERT_TRUE(out.preallocate(10'000).ok());
  ASSERT_TRUE(out.write("head").ok());
  ASSERT_TRUE(out.write_at(8192, bytes_of("far")).ok());
  ASSERT_TRUE(out.write("er").ok());
  ASSERT_TRUE(out.commit().ok());
  std::vector<uint8_t> expected(10'000);
  for (size_t i = 0; i < 6; ++i) expected[i] = static_cast<uint8_t>("header"[i]);
  for (size_t i = 0; i < 3; ++i) expected[8192 + i] = static_cast<uint8_t>("far"[i]);
  EXPECT_EQ(read_file(folder / "f"), expected);
}

TEST(OutputFile, RefusesWhereNoFileCanBe) {
  TempFolder folder;
  Result<OutputFile> absent = OutputFile::create(folder / "no/such/f");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::io);
  EXPECT_EQ(absent.error().message,
            folder / "no/such/f: cannot be created: No such file or directory; create the folder first");
  EXPECT_EQ(OutputFile::create(folder.path()).error().message,
            folder.path() + ": is a folder; give the path of a file");
  // A rename onto the device would replace it for everybody.
  EXPECT_EQ(OutputFile::create("/dev/null").error().message,
            "/dev/null: is a pipe or device, not a regular file; give the path of a file");
  EXPECT_FALSE(OutputFile::create("").ok());
}

TEST(OutputFile, FindsAFullDiskBeforeTheWork) {
  TempFolder folder;
  Result<NpyWriter> npy = NpyWriter::create(folder / "f.npy", 1u << 30, 1u << 30);  // 4 EiB
  ASSERT_FALSE(npy.ok());
  EXPECT_EQ(npy.error().code, ErrorCode::io);
  EXPECT_NE(npy.error().message.find("free some space or write elsewhere"), std::string::npos) << npy.error().message;
  Result<NpyWriter> overflow = NpyWriter::create(folder / "f.npy", 1ull << 40, 1ull << 40);
  ASSERT_FALSE(overflow.ok());
  EXPECT_EQ(overflow.error().code, ErrorCode::io);
  EXPECT_EQ(folder.entries(), 0u);
}

// While it lives, files of this process cannot grow beyond `bytes`: the nearest to a full disk that a test may make.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(OutputFile, ReportsEveryFailedWrite) {
  TempFolder folder;
  {
    OutputFile out = OutputFile::create(folder / "f").value();
    FileSizeLimit limit(1000);
    ASSERT_TRUE(out.write(std::string(900, 'x')).ok());
    Result<void> written = out.write(std::string(200, 'y'));  // the first 100 bytes still fit
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::io);
    EXPECT_EQ(written.error().offset, 1000u);
    EXPECT_EQ(written.error().message,
              folder / "f: writing at 1,000 failed: File too large; write to a file system that holds larger files");
    EXPECT_FALSE(out.preallocate(2000).ok());
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(OutputFile, ReportsAFailedRename) {
  TempFolder folder;
  OutputFile out = OutputFile::create(folder / "f").value();
  ASSERT_TRUE(out.write("x").ok());
  std::filesystem::create_directory(folder / "f");  // meanwhile somebody took the name
  Result<void> committed = out.commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().message, folder / "f: cannot be put in place: Is a directory");
  EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace ridge
