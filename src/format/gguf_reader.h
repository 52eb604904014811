// Reads one GGUF file from a stream: header, metadata, list of tensors, and every check of them. Internal to format/;
// callers use Gguf::open and parse_gguf (gguf.h).
//
// The file, all numbers little-endian:
//
//   header    "GGUF" · u32 version · u64 tensors · u64 metadata entries
//   entry     string key · u32 type · value          (string: u64 length, bytes)
//   array     u32 element type · u64 count · elements
//   tensor    string name · u32 dimensions · u64 each (row length first) · u32 type · u64 offset in the data section
//   data      begins at the next multiple of general.alignment (32 unless given)
//
//   SpanStream in(bytes, "model.gguf");
//   Gguf file = RIDGE_TRY(GgufReader(in).read());
//
// Memory: every count and length is held against the bytes that remain before anything is allocated for it. What a file
// can make us allocate is at most five times its metadata (a byte of an array becomes an int32; the 25 bytes of a
// tensor's entry become a GgufTensor) and 2.5 MB for the nodes of the entries. Metadata end within the first 256 MiB,
// and nothing depends on the size of the tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/file_stream.h"
#include "format/gguf.h"

namespace ridge {

class GgufReader {
 public:
  explicit GgufReader(ByteStream& in) : in_(in) {}

  // The stream stands at its beginning.
  Result<Gguf> read();

  // The parts of a split model, in order, become one: metadata of the first, tensors of all.
  static Result<Gguf> join(std::vector<Gguf> parts);
  // Sorts the names for find(). Bad input if one occurs twice.
  static Result<void> index_names(Gguf& gguf);

 private:
  // Where we are, for messages: "metadata entry 3 of 24 ('general.name')".
  struct Place {
    std::string_view section;
    uint64_t index = 0, count = 0;
    std::string name;
  };

  Result<void> read_header();
  Result<void> read_metadata();
  Result<void> read_tensors();

  // Metadata (gguf_metadata.cpp).
  Result<MetadataValue> read_value(uint32_t type);
  Result<MetadataValue> read_bool();
  Result<MetadataArray> read_array();
  Result<MetadataArray> read_strings(uint64_t count);
  template <class Stored, class Kept>
  Result<MetadataArray> read_numbers(uint64_t count);
  Result<uint64_t> read_alignment() const;

  // Tensors (gguf_tensors.cpp).
  Result<GgufTensor> read_tensor();
  Result<void> read_shape(GgufTensor& tensor);
  Result<void> read_type(GgufTensor& tensor);
  Result<void> place_tensor(GgufTensor& tensor, uint64_t data_begin, uint64_t alignment) const;
  Result<void> check_overlaps() const;

  Result<std::string> read_string(uint64_t longest, std::string_view what);
  template <class T>
  Result<T> read_as() {
    RIDGE_TRY(need(sizeof(T)));
    return in_.read_as<T>();
  }
  // The next field of `bytes` bytes is there.
  Result<void> need(uint64_t bytes) const;
  // `count` things of at least `each` bytes are there.
  Result<void> check_claim(uint64_t count, uint64_t each, std::string_view things) const;
  Error damaged(std::string_view problem) const;
  std::string place() const;

  ByteStream& in_;
  Gguf out_;
  Place place_;
  uint64_t tensor_count_ = 0, entry_count_ = 0;
};

}  // namespace ridge
