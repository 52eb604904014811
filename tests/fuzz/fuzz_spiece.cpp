// Any bytes as a spiece.model: refused, or a tokenizer that can be used. Good seeds are small models
// (tests/data/unigram-ties); the bytes themselves serve as the text.
#include <cstdint>

#include "base/check.h"
#include "format/spiece.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  Result<Metadata> metadata = parse_spiece({data, size}, "fuzz.model");
  if (!metadata.ok()) {
    RIDGE_CHECK(metadata.error().code == ErrorCode::bad_input, "a file fails as input");
    return 0;
  }
  auto tokenizer = Tokenizer::from_metadata(metadata.value());
  if (!tokenizer.ok()) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (bool parse : {false, true}) {
    const auto ids = tokenizer.value()->encode(text.substr(0, 512), {.add_special = true, .parse_special = parse});
    for (TokenId id : ids) {
      RIDGE_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.value()->size(), "ids are inside of the vocabulary");
    }
    static_cast<void>(tokenizer.value()->decode(ids, {.show_special = true}));
  }
  return 0;
}
