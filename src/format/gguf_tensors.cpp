// The tensor half of GgufReader: the list of tensors and where their data lies.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "format/gguf_reader.h"
#include "format/quote.h"

namespace ridge {
namespace {

constexpr uint64_t kLongestName = 1024;  // ggml: 63

struct ForeignType {
  uint32_t number;
  std::string_view name;
};

// Types of other programs and versions, named in the refusal.
constexpr ForeignType kForeignTypes[] = {
    {4, "Q4_2, withdrawn"},
    {5, "Q4_3, withdrawn"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32"},
    {27, "I64"},
    {28, "F64"},
    {31, "Q4_0_4_4, withdrawn"},
    {32, "Q4_0_4_8, withdrawn"},
    {33, "Q4_0_8_8, withdrawn"},
    {40, "NVFP4"},
    {41, "Q1_0"},
    {42, "Q2_0"},
};

std::string name_of_unknown(uint32_t number) {
  for (const ForeignType& t : kForeignTypes) {
    if (t.number == number) return fmt::format("{} ({})", number, t.name);
  }
  return fmt::format("{}", number);
}

std::string known_types() {
  std::string list;
  for (const TypeInfo& t : all_types()) list += fmt::format("{}{}", list.empty() ? "" : ", ", t.name);
  return list;
}

}  // namespace

Result<void> GgufReader::read_tensors() {
  uint64_t alignment = RIDGE_TRY(read_alignment());
  out_.tensors_.reserve(static_cast<size_t>(tensor_count_));
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    place_ = {.section = "tensor entry", .index = i, .count = tensor_count_, .name = {}};
    out_.tensors_.push_back(RIDGE_TRY(read_tensor()));
  }
  uint64_t data_begin = round_up(in_.position(), alignment);
  for (GgufTensor& tensor : out_.tensors_) RIDGE_TRY(place_tensor(tensor, data_begin, alignment));
  return check_overlaps();
}

Result<GgufTensor> GgufReader::read_tensor() {
  GgufTensor tensor;
  tensor.name = RIDGE_TRY(read_string(kLongestName, "bytes of a tensor's name"));
  if (tensor.name.empty()) return damaged("has an empty name");
  place_.name = tensor.name;
  RIDGE_TRY(read_shape(tensor));
  RIDGE_TRY(read_type(tensor));
  tensor.offset = RIDGE_TRY(read_as<uint64_t>());  // within the data section, until place_tensor
  return tensor;
}

Result<void> GgufReader::read_shape(GgufTensor& tensor) {
  tensor.dims = RIDGE_TRY(read_as<uint32_t>());
  if (tensor.dims > tensor.shape.size()) {
    return damaged(fmt::format("has {} dimensions, expected at most {}", tensor.dims, tensor.shape.size()));
  }
  uint64_t elements = 1;
  for (uint32_t d = 0; d < tensor.dims; ++d) {
    tensor.shape[d] = RIDGE_TRY(read_as<uint64_t>());
    if (tensor.shape[d] == 0) return damaged(fmt::format("has a dimension of 0 (number {})", d + 1));
    if (__builtin_mul_overflow(elements, tensor.shape[d], &elements) || elements > INT64_MAX) {
      return damaged(fmt::format("has the shape {}, whose product overflows", fmt::join(tensor.shape, " × ")));
    }
  }
  return {};
}

Result<void> GgufReader::read_type(GgufTensor& tensor) {
  uint32_t number = RIDGE_TRY(read_as<uint32_t>());
  const TypeInfo* info = find_type(number);
  if (info == nullptr) {
    return bad_input(
        fmt::format("{}: tensor {} is of type {}, which Ridge cannot compute with; it knows {}: fetch the model "
                    "in one of these",
                    in_.name(), ridge::quoted(tensor.name), name_of_unknown(number), known_types()),
        in_.position() - sizeof number);
  }
  tensor.type = info->type;
  if (tensor.cols() % info->block != 0) {
    return damaged(fmt::format("has rows of {} elements, expected a multiple of {} for {}", format_count(tensor.cols()),
                               info->block, info->name));
  }
  uint64_t blocks = tensor.elements() / info->block;
  if (__builtin_mul_overflow(blocks, static_cast<uint64_t>(info->bytes), &tensor.bytes)) {
    return damaged(fmt::format("has the shape {}, whose size in bytes overflows", fmt::join(tensor.shape, " × ")));
  }
  return {};
}

// Makes the offset absolute and checks that the data lies within the file.
Result<void> GgufReader::place_tensor(GgufTensor& tensor, uint64_t data_begin, uint64_t alignment) const {
  auto failed = [&](std::string_view problem) {
    return bad_input(fmt::format("{}: tensor {} {}; fetch it again", in_.name(), ridge::quoted(tensor.name), problem),
                     data_begin);
  };
  if (tensor.offset % alignment != 0) {
    return failed(fmt::format("begins at {} of the data, expected a multiple of {}: the file is damaged",
                              format_count(tensor.offset), format_count(alignment)));
  }
  uint64_t begin = 0, end = 0;
  if (__builtin_add_overflow(data_begin, tensor.offset, &begin) || __builtin_add_overflow(begin, tensor.bytes, &end)) {
    return failed(
        fmt::format("begins at {} of the data and has {} bytes, more than any file holds: the file is damaged",
                    format_count(tensor.offset), format_count(tensor.bytes)));
  }
  if (end > in_.size()) {
    return failed(fmt::format("ends at {}, past the end of the file ({}): the file is cut short", format_count(end),
                              format_count(in_.size())));
  }
  tensor.offset = begin;
  return {};
}

Result<void> GgufReader::check_overlaps() const {
  const std::vector<GgufTensor>& tensors = out_.tensors_;
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].offset < tensors[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& left = tensors[order[i - 1]];
    const GgufTensor& right = tensors[order[i]];
    if (left.offset + left.bytes <= right.offset) continue;
    return bad_input(
        fmt::format("{}: tensors {} (bytes {} to {}) and {} (from {}) overlap: the file is damaged; fetch it again",
                    in_.name(), ridge::quoted(left.name), format_count(left.offset),
                    format_count(left.offset + left.bytes), ridge::quoted(right.name), format_count(right.offset)),
        right.offset);
  }
  return {};
}

Result<void> GgufReader::index_names(Gguf& gguf) {
  const std::vector<GgufTensor>& tensors = gguf.tensors_;
  gguf.by_name_.resize(tensors.size());
  std::iota(gguf.by_name_.begin(), gguf.by_name_.end(), 0u);
  std::sort(gguf.by_name_.begin(), gguf.by_name_.end(),
            [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < tensors.size(); ++i) {
    const GgufTensor& tensor = tensors[gguf.by_name_[i]];
    if (tensors[gguf.by_name_[i - 1]].name != tensor.name) continue;
    return bad_input(fmt::format("{}: two tensors are called {}: the file is damaged; fetch it again",
                                 gguf.files_[tensor.file].path, ridge::quoted(tensor.name)));
  }
  return {};
}

}  // namespace ridge
