// GGUF files: metadata and the list of tensors. Reads versions 2 and 3 and split files; never maps a file.
//
// A hostile file can neither crash the reader nor make it allocate much: every count, length, offset and overlap is
// checked against what the file really holds before anything is allocated for it (gguf_reader.h has the bound).
//
//   Gguf file = RIDGE_TRY(Gguf::open("model.gguf"));
//   uint64_t layers = RIDGE_TRY(file.metadata().require_uint("llama.block_count"));
//   const GgufTensor* t = file.find("output_norm.weight");
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tensor/types.h"

namespace ridge {

// Many strings in one buffer: a vocabulary of 262,144 pieces costs its text plus 4 bytes each.
class StringPool {
 public:
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  void reserve(size_t strings, size_t bytes) {
    ends_.reserve(strings);
    text_.reserve(bytes);
  }
  void push_back(std::string_view s) {
    text_.append(s);
    ends_.push_back(static_cast<uint32_t>(text_.size()));
  }
  size_t text_bytes() const { return text_.size(); }
  void shrink_to_fit() {
    text_.shrink_to_fit();
    ends_.shrink_to_fit();
  }

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
};

// An array of metadata. Integers of any width are int64 (u64 above 2^63 is refused), floats double … but arrays of
// floats and of small integers keep 4 bytes an element, since a vocabulary has many.
using MetadataArray =
    std::variant<StringPool, std::vector<int32_t>, std::vector<float>, std::vector<int64_t>, std::vector<double>>;
using MetadataValue = std::variant<bool, int64_t, uint64_t, double, std::string, MetadataArray>;

// Thread-safe once built. The typed getters return nullopt for an absent key and an error for a wrong type.
class Metadata {
 public:
  const MetadataValue* find(std::string_view key) const;

  Result<uint64_t> require_uint(std::string_view key) const;  // any integer type, ≥ 0
  Result<std::string> require_string(std::string_view key) const;
  Result<std::optional<uint64_t>> uint(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;  // integer or float
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  Result<const StringPool*> strings(std::string_view key) const;  // nullptr if absent
  // Arrays of numbers, converted; absent: empty. A scalar is an array of one (head_count may be either).
  Result<std::vector<uint64_t>> uints(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

  // Moves a large array out (the tokenizer takes its vocabulary without a copy).
  std::optional<MetadataArray> take_array(std::string_view key);
  void erase(std::string_view key);

  const std::map<std::string, MetadataValue, std::less<>>& entries() const { return entries_; }
  std::map<std::string, MetadataValue, std::less<>>& entries() { return entries_; }

  // Prefix of error messages, the file's name.
  std::string where;

 private:
  std::map<std::string, MetadataValue, std::less<>> entries_;
};

struct GgufTensor {
  std::string name;
  std::array<uint64_t, 4> shape{1, 1, 1, 1};  // shape[0] is the row length (fastest); unused dimensions are 1
  uint32_t dims = 0;
  Type type = Type::F32;
  uint32_t file = 0;    // which file of a split model
  uint64_t offset = 0;  // absolute, in that file
  uint64_t bytes = 0;

  uint64_t cols() const { return shape[0]; }
  uint64_t rows() const { return shape[1] * shape[2] * shape[3]; }
  uint64_t elements() const { return cols() * rows(); }
};

struct GgufFile {
  std::string path;
  uint64_t bytes = 0;
};

class Gguf {
 public:
  // `path` may be any part of a split model (name-00001-of-00003.gguf): the others are found beside it.
  static Result<Gguf> open(const std::string& path);

  // A directory of tensors from elsewhere (another format, other names). Bad input if two tensors have one name.
  static Result<Gguf> assemble(Metadata metadata, std::vector<GgufTensor> tensors, std::vector<GgufFile> files);

  uint32_t version() const { return version_; }
  const Metadata& metadata() const { return metadata_; }
  Metadata& metadata() { return metadata_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }
  std::span<const GgufFile> files() const { return files_; }
  const GgufTensor* find(std::string_view name) const;  // nullptr if absent

 private:
  friend class GgufReader;
  friend class RidgePackReader;
  uint32_t version_ = 0;
  Metadata metadata_;
  std::vector<GgufTensor> tensors_;  // file order
  std::vector<uint32_t> by_name_;    // indices sorted by name
  std::vector<GgufFile> files_;
};

// The bytes of a GGUF file in memory, for tests and fuzzing: same checks.
Result<Gguf> parse_gguf(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace ridge
