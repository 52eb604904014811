// libFuzzer target for tokenizers. The first byte of the input chooses:
//   even: the rest is a text, encoded and decoded with small whole vocabularies; bytes must come back
//   odd:  the rest describes a vocabulary (texts, kinds, scores, merges, ids), built if it can be, then used
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "tests/text/tokenizer_vocabularies.h"
#include "text/pretokenize.h"

namespace ridge {
namespace {

void use(const Tokenizer& t, std::string_view text) {
  for (bool parse : {false, true}) {
    const auto ids = t.encode(text, {.add_special = true, .parse_special = parse});
    for (bool show : {false, true}) {
      const DecodeOptions options = {.show_special = show};
      DetokenizeStream stream(t, options);
      std::string streamed;
      for (TokenId id : ids) {
        RIDGE_CHECK(id >= 0 && static_cast<size_t>(id) < t.size(), "ids are inside of the vocabulary");
        streamed += stream.push(id);
      }
      streamed += stream.finish();
      RIDGE_CHECK(streamed == t.decode(ids, options), "the stream prints what decode prints");
    }
  }
}

std::unique_ptr<Tokenizer> built(Metadata metadata) {
  auto tokenizer = Tokenizer::from_metadata(metadata);
  RIDGE_CHECK(tokenizer.ok(), "the small vocabularies are whole");
  return std::move(tokenizer).value();
}

void fuzz_text(std::string_view text) {
  static const std::unique_ptr<Tokenizer> tokenizers[] = {
      built(small_bpe_metadata("gpt-2")),     built(small_bpe_metadata("smollm")),
      built(small_bpe_metadata("llama-bpe")), built(small_bpe_metadata("qwen2")),
      built(small_bpe_metadata("gpt-4o")),    built(small_bpe_metadata("tekken")),
      built(small_bpe_metadata("default")),   built(small_bpe_metadata("deepseek-llm")),
  };
  static const std::unique_ptr<Tokenizer> spm = built(small_spm_metadata());
  for (const auto& t : tokenizers) {
    use(*t, text);
    const auto ids = t->encode(text, {.add_special = false});
    RIDGE_CHECK(t->decode(ids, {.show_special = true}) == text, "byte-level BPE gives the bytes back");
  }
  use(*spm, text);
}

// Pieces of the input, each with a length byte in front.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto b = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return b;
  }
  std::string_view piece() {
    const std::string_view p = bytes_.substr(0, byte() % 16);
    bytes_.remove_prefix(p.size());
    return p;
  }

 private:
  std::string_view bytes_;
};

void fuzz_vocabulary(std::string_view input) {
  Reader in(input);
  const uint8_t flags = in.byte();
  SmallVocabulary v = (flags & 1) != 0 ? small_spm_vocabulary() : small_bpe_vocabulary();
  if ((flags & 2) != 0) v = {};
  for (int n = in.byte() % 32; n > 0; --n) {
    const std::string_view text = in.piece();
    v.add(std::string(text), static_cast<TokenKind>(in.byte() % 8), static_cast<float>(in.byte()) - 128.0f);
  }
  for (int n = in.byte() % 16; n > 0; --n) v.merges.emplace_back(in.piece());

  Metadata metadata;
  put_vocabulary(metadata, v);
  auto& entries = metadata.entries();
  entries["tokenizer.ggml.model"] = std::string((flags & 1) != 0 ? "llama" : "gpt2");
  entries["tokenizer.ggml.pre"] = std::string((flags & 4) != 0 ? "llama-bpe" : "default");
  entries["general.name"] = std::string((flags & 8) != 0 ? "phi-3" : "");
  if ((flags & 16) != 0) v.scores.resize(in.byte());
  entries["tokenizer.ggml.scores"] = MetadataArray(std::move(v.scores));
  entries["tokenizer.ggml.merges"] = MetadataArray(pool_of(v.merges));
  for (const char* key : {"bos", "eos", "eot", "unknown"}) {
    entries[std::string("tokenizer.ggml.") + key + "_token_id"] = static_cast<int64_t>(in.byte()) - 1;
  }
  entries["tokenizer.ggml.add_bos_token"] = (flags & 32) != 0;
  entries["tokenizer.ggml.add_eos_token"] = (flags & 64) != 0;
  auto tokenizer = Tokenizer::from_metadata(metadata);
  if (tokenizer.ok()) use(*tokenizer.value(), input);
}

}  // namespace
}  // namespace ridge

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) == 0) {
    ridge::fuzz_text(rest);
  } else {
    ridge::fuzz_vocabulary(rest);
  }
  return 0;
}
