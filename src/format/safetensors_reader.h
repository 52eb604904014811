// Reads the header of one safetensors file from a stream, with every check of it. Internal to format/; callers use
// Safetensors::open and parse_safetensors (safetensors.h).
//
// The header is JSON of a fixed form, so this is no JSON parser in general: it reads strings with escapes, lists of
// whole numbers, and skips the strings of "__metadata__". Nothing nests deeper than the form does.
//
//   SpanStream in(bytes, "anima.safetensors");
//   Safetensors file = RIDGE_TRY(SafetensorsReader(in).read());
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/file_stream.h"
#include "format/safetensors.h"

namespace ridge {

class SafetensorsReader {
 public:
  explicit SafetensorsReader(ByteStream& in) : in_(in) {}

  // The stream stands at its beginning.
  Result<Safetensors> read();

  // The parts of a model, in order, become one. Bad input if two tensors have one name.
  static Result<Safetensors> join(std::vector<Safetensors> parts);

 private:
  Result<void> read_header();
  Result<void> read_entry(std::string name);
  Result<void> read_metadata();
  Result<void> read_shape(SafeTensor& tensor);
  Result<void> read_offsets(SafeTensor& tensor);
  Result<void> place(SafeTensor& tensor) const;
  Result<void> check_data();

  // JSON: white space is skipped before each of these.
  Result<char> peek();
  Result<void> expect(char wanted);
  Result<bool> list_goes_on(char end);  // after an element: true at a comma, false at the end
  Result<std::string> read_string(size_t longest, std::string_view what);
  Result<void> skip_string();
  Result<uint64_t> read_number(std::string_view what);

  Result<char> next();
  Result<bool> read_character(std::string& out);  // of a string; false at its end
  Result<void> read_escape(std::string& out);
  Error damaged(std::string_view problem) const;

  ByteStream& in_;
  Safetensors out_;
  uint64_t header_end_ = 0;
  std::optional<char> ahead_;
  std::string current_;  // the tensor at work, for messages
};

}  // namespace ridge
