// Any bytes as a tokenizer.json: refused, or a tokenizer that can be used. Good seeds are small files of both kinds;
// the bytes themselves serve as the text, and as a prompt with weights.
#include <cstdint>

#include "base/check.h"
#include "format/tokenizer_json.h"
#include "text/prompt_weights.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RIDGE_CHECK(!parse_prompt_weights(text.substr(0, 4096)).empty(), "every text is a prompt");
  Result<Metadata> metadata = parse_tokenizer_json({data, size}, "fuzz.json");
  if (!metadata.ok()) {
    RIDGE_CHECK(metadata.error().code == ErrorCode::bad_input, "a file fails as input");
    return 0;
  }
  auto tokenizer = Tokenizer::from_metadata(metadata.value());
  if (!tokenizer.ok()) return 0;
  const auto ids = tokenizer.value()->encode(text.substr(0, 512), {.add_special = true, .parse_special = true});
  for (TokenId id : ids) {
    RIDGE_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.value()->size(), "ids are inside of the vocabulary");
  }
  static_cast<void>(tokenizer.value()->decode(ids, {.show_special = true}));
  return 0;
}
