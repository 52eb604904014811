// What users of other engines filed, on a small model (docs/cases.md).
#include "base/units.h"
#include "tests/golden.h"
#include "tests/memory/fixture.h"

namespace ridge {
namespace {

class Cases : public testing::Test {
 protected:
  void SetUp() override {
    RIDGE_SKIP_WITHOUT(source(), "needs ../shared");
    // A copy of its own, so that nobody else's reads are seen in the page cache.
    path_ = folder_ / "model.gguf";
    std::ifstream in(source(), std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    test::write_clean_file(path_, bytes);
  }
  static std::string source() { return golden::folder() + "/tiny/qwen3.gguf"; }

  std::unique_ptr<Engine> open(std::optional<uint64_t> most_pinned, int threads = 1) {
    auto engine = Engine::open(
        {.path = path_, .context = 64, .threads = threads, .most_pinned = most_pinned, .need_tokenizer = false});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }

  // With the blocks at its ends.
  static uint64_t embedding_bytes(const Engine& engine) {
    const StoredTensor& t = engine.plan().program.tensors[engine.model().embedding().id];
    return t.stored_bytes(0, t.rows) + 2 * kIoAlign;
  }

  test::TempFolder folder_;
  std::string path_;
};

// "Loading reads the whole file, although most of it does not fit": what will stream is not read at the start.
TEST_F(Cases, AStartReadsWhatItKeepsAndNoMore) {
  auto streamed = open(0);
  ASSERT_TRUE(streamed->plan().placement.streams());
  const Program& program = streamed->plan().program;
  const SourceStats nothing = streamed->source().stats();
  // Rows of norms and the like, each in a block of 4 KiB or two; and what the first token needs first.
  const uint64_t vectors = 2 * kIoAlign * program.tensors.size();
  EXPECT_LE(nothing.load_bytes, embedding_bytes(*streamed)) << "nothing is pinned; embedding rows may be kept";
  EXPECT_LE(nothing.bytes_read,
            vectors + streamed->plan().placement.slots * (program.largest_block_storage() + 16 * kIoAlign));

  auto resident = open(std::nullopt);
  const SourceStats all = resident->source().stats();
  const uint64_t weights = resident->plan().program.storage_bytes();
  EXPECT_GE(all.load_bytes, weights);
  EXPECT_LE(all.load_bytes,
            weights + embedding_bytes(*resident) + 2 * kIoAlign * resident->plan().program.tensors.size())
      << "each weight is read once";
}

// "The page cache is full of weights": it is left as it was.
TEST_F(Cases, ThePageCacheStaysClean) {
  for (std::optional<uint64_t> most_pinned : {std::optional<uint64_t>{0}, std::optional<uint64_t>{}}) {
    auto engine = open(most_pinned);
    for (TokenId id : {1, 2, 3}) ASSERT_TRUE(engine->decode(id).ok());
    EXPECT_EQ(test::cached_pages(path_), 0u);
  }
}

// "Sixteen threads each fault their own pages in": compute threads never touch the file, so their number does not
// change what is read.
TEST_F(Cases, SixteenThreadsReadWhatOneReads) {
  auto read_with = [&](int threads) {
    auto engine = open(0, threads);
    EXPECT_EQ(engine->threads(), threads);
    for (TokenId id : {1, 2, 3}) EXPECT_TRUE(engine->decode(id).ok());
    const uint64_t begin = engine->source().stats().bytes_read;
    for (TokenId id : {4, 5, 6, 7}) EXPECT_TRUE(engine->decode(id).ok());
    return engine->source().stats().bytes_read - begin;
  };
  const uint64_t one = read_with(1);
  EXPECT_GT(one, 0u);
  EXPECT_EQ(read_with(16), one);
}

}  // namespace
}  // namespace ridge
