// Safetensors files: the list of tensors and where their bytes lie. Reads single files and models in parts (an
// index.json beside them); never maps a file, and reads nothing but headers.
//
// A hostile file can neither crash the reader nor make it allocate more than its own size and 24 MiB: the header is
// read as it is parsed, names cost what they cost in the file, and the number of tensors is bounded.
//
//   file      u64 length of the header, little-endian · header, JSON · data
//   header    {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__": {…}}
//             offsets count from the first byte after the header; the data leave no holes and do not overlap
//
//   Safetensors file = RIDGE_TRY(Safetensors::open("anima.safetensors"));
//   const SafeTensor* t = file.find("net.x_embedder.proj.1.weight");
//   for (uint64_t n : t->dimensions()) …
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/output_file.h"

namespace ridge {

enum class SafeType : uint8_t { BOOL, U8, I8, F8_E4M3, F8_E5M2, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };
std::string_view name_of(SafeType type);
uint64_t bytes_of(SafeType type);

struct SafeTensor {
  std::string name;
  SafeType type = SafeType::F32;
  uint8_t dims = 0;
  std::array<uint64_t, 6> shape{};  // row-major: the last dimension is the fastest
  uint32_t file = 0;                // which part of the model
  uint64_t offset = 0;              // absolute, in that file
  uint64_t bytes = 0;

  std::span<const uint64_t> dimensions() const { return {shape.data(), dims}; }
  uint64_t elements() const;
};

struct SafeFile {
  std::string path;
  uint64_t bytes = 0;
};

// Thread-safe once built.
class Safetensors {
 public:
  // A .safetensors file, or the .index.json of a model in parts. Bad input says what is wrong, and where.
  static Result<Safetensors> open(const std::string& path);

  std::span<const SafeTensor> tensors() const { return tensors_; }  // in the order of their data
  std::span<const SafeFile> files() const { return files_; }
  const SafeTensor* find(std::string_view name) const;  // nullptr if absent
  const std::string& where() const { return files_.front().path; }

 private:
  friend class SafetensorsReader;
  static Result<Safetensors> open_parts(const std::string& index_path);
  Result<void> index_names();

  std::vector<SafeTensor> tensors_;
  std::vector<uint32_t> by_name_;
  std::vector<SafeFile> files_;
};

// The bytes of one file in memory, for tests and fuzzing: same checks.
Result<Safetensors> parse_safetensors(std::span<const uint8_t> bytes, const std::string& name);

// Whether a file begins like safetensors (a length and a brace); false too where it cannot be read.
bool is_safetensors(const std::string& path);

// All bytes of a tensor. Bad input if it has more than `most` elements.
Result<std::vector<uint8_t>> read_tensor(const Safetensors& file, const SafeTensor& tensor, uint64_t most);
// The values of a tensor of F32, F16 or BF16 as floats, of I32 or I64 as integers. Bad input for another type, or more
// than `most` elements. Small tensors only: the whole of it is read.
Result<std::vector<float>> read_floats(const Safetensors& file, const SafeTensor& tensor, uint64_t most);
Result<std::vector<int32_t>> read_integers(const Safetensors& file, const SafeTensor& tensor, uint64_t most);

// Writes float32 and int32 tensors; the file is either whole or not there (output_file.h).
//
//   auto out = RIDGE_TRY(SafetensorsWriter::create(path, {{"sigmas", SafeType::F32, {9}}}));
//   RIDGE_TRY(out.append(values));        // tensor by tensor, in the order of the list, each whole
//   RIDGE_TRY(out.finish());
class SafetensorsWriter {
 public:
  struct Item {
    std::string name;
    SafeType type = SafeType::F32;
    std::vector<uint64_t> shape;
  };
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<Item> items);

  Result<void> append(std::span<const float> values);
  Result<void> append(std::span<const int32_t> values);
  Result<void> finish();

 private:
  SafetensorsWriter(OutputFile file, std::vector<Item> items) : file_(std::move(file)), items_(std::move(items)) {}
  Result<void> append_bytes(SafeType type, std::span<const uint8_t> bytes);

  OutputFile file_;
  std::vector<Item> items_;
  size_t next_ = 0;
};

}  // namespace ridge
