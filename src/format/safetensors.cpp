#include "format/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/units.h"
#include "format/quote.h"
#include "format/safetensors_reader.h"
#include "tensor/half.h"

namespace ridge {
namespace {

constexpr uint64_t kMostIndexBytes = 16 * kMiB;
constexpr size_t kMostParts = 256;
constexpr std::string_view kIndexSuffix = ".index.json";

Result<Safetensors> read_file(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  return SafetensorsReader(in).read();
}

// Keeps nothing but the names of files in "weight_map", so that a hostile index costs no tree.
class IndexHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::string> parts;
  bool well_formed = true;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    if (depth_ != 2 || !in_map_) return true;
    if (std::find(parts.begin(), parts.end(), value) == parts.end()) parts.push_back(value);
    return parts.size() <= kMostParts;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) in_map_ = value == "weight_map";
    return true;
  }
  bool start_object(size_t) override { return ++depth_ < 16; }
  bool start_array(size_t) override { return ++depth_ < 16; }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    well_formed = false;
    return false;
  }

 private:
  bool leave() {
    --depth_;
    return true;
  }
  int depth_ = 0;
  bool in_map_ = false;
};

Result<std::string> read_index(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > kMostIndexBytes) {
    return bad_input(fmt::format("{}: an index of {} bytes, expected at most {}; give the .safetensors file itself",
                                 path, format_count(in.size()), format_count(kMostIndexBytes)));
  }
  std::string text(in.size(), '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));
  return text;
}

std::string shape_text(const SafeTensor& t) { return fmt::format("[{}]", fmt::join(t.dimensions(), ", ")); }

template <class T>
T value_at(const std::vector<uint8_t>& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
  return value;
}

Error wrong_type(const Safetensors& file, const SafeTensor& t, std::string_view expected) {
  return bad_input(fmt::format("{}: tensor {} is of type {}, expected {}", file.files()[t.file].path,
                               ridge::in_quotes(t.name), name_of(t.type), expected),
                   t.offset);
}

}  // namespace

uint64_t SafeTensor::elements() const { return bytes / bytes_of(type); }

Result<Safetensors> Safetensors::open(const std::string& path) {
  if (path.ends_with(kIndexSuffix)) return open_parts(path);
  return read_file(path);
}

Result<Safetensors> Safetensors::open_parts(const std::string& index_path) {
  const std::string text = RIDGE_TRY(read_index(index_path));
  IndexHandler index;
  const bool whole = nlohmann::json::sax_parse(text, &index);
  if (!whole || index.parts.empty()) {
    return bad_input(fmt::format("{}: {}; fetch it again", index_path,
                                 !index.well_formed    ? "is no JSON"
                                 : index.parts.empty() ? "names no files in its weight_map"
                                                       : "is no index of a model: it names too many files"));
  }
  std::sort(index.parts.begin(), index.parts.end());
  const std::string folder = index_path.substr(0, index_path.rfind('/') + 1);  // "" where there is no slash
  std::vector<Safetensors> parts;
  for (const std::string& part : index.parts) {
    if (part.find('/') != std::string::npos || !part.ends_with(".safetensors")) {
      return bad_input(fmt::format("{}: names the file {}, expected a .safetensors file beside it", index_path,
                                   ridge::in_quotes(part)));
    }
    parts.push_back(RIDGE_TRY(read_file(folder + part)));
  }
  return SafetensorsReader::join(std::move(parts));
}

Result<Safetensors> SafetensorsReader::join(std::vector<Safetensors> parts) {
  Safetensors all;
  for (Safetensors& one : parts) {
    for (SafeTensor& t : one.tensors_) {
      t.file = static_cast<uint32_t>(all.files_.size());
      all.tensors_.push_back(std::move(t));
    }
    all.files_.push_back(std::move(one.files_.front()));
    one = {};
  }
  RIDGE_TRY(all.index_names());
  return all;
}

Result<void> Safetensors::index_names() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return tensors_[a].name < tensors_[b].name; });
  for (size_t i = 1; i < by_name_.size(); ++i) {
    const SafeTensor& t = tensors_[by_name_[i]];
    if (tensors_[by_name_[i - 1]].name != t.name) continue;
    return bad_input(fmt::format("{}: two tensors are called {}: the file is damaged; fetch it again",
                                 files_[t.file].path, ridge::in_quotes(t.name)));
  }
  return {};
}

const SafeTensor* Safetensors::find(std::string_view name) const {
  auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                             [&](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  return it == by_name_.end() || tensors_[*it].name != name ? nullptr : &tensors_[*it];
}

Result<Safetensors> parse_safetensors(std::span<const uint8_t> bytes, const std::string& name) {
  SpanStream in(bytes, name);
  return SafetensorsReader(in).read();
}

bool is_safetensors(const std::string& path) {
  if (path.ends_with(kIndexSuffix)) return true;
  auto in = FileStream::open(path);
  if (!in.ok() || in.value().size() < 10) return false;
  uint8_t first[9] = {};
  return in.value().read(first, sizeof first).ok() && first[8] == '{' && std::memcmp(first, "GGUF", 4) != 0;
}

Result<std::vector<uint8_t>> read_tensor(const Safetensors& file, const SafeTensor& t, uint64_t most) {
  if (t.elements() > most) {
    return bad_input(fmt::format("{}: tensor {} of shape {} has more than {} values", file.files()[t.file].path,
                                 ridge::in_quotes(t.name), shape_text(t), format_count(most)),
                     t.offset);
  }
  FileStream in = RIDGE_TRY(FileStream::open(file.files()[t.file].path));
  RIDGE_TRY(in.skip(t.offset));
  std::vector<uint8_t> bytes(t.bytes);
  RIDGE_TRY(in.read(bytes.data(), bytes.size()));
  return bytes;
}

Result<std::vector<float>> read_floats(const Safetensors& file, const SafeTensor& t, uint64_t most) {
  const bool known = t.type == SafeType::F32 || t.type == SafeType::F16 || t.type == SafeType::BF16;
  if (!known) return wrong_type(file, t, "F32, F16 or BF16");
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_tensor(file, t, most));
  std::vector<float> out(t.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = t.type == SafeType::F32   ? value_at<float>(bytes, i)
             : t.type == SafeType::F16 ? f16_to_f32(value_at<uint16_t>(bytes, i))
                                       : bf16_to_f32(value_at<uint16_t>(bytes, i));
  }
  return out;
}

Result<std::vector<int32_t>> read_integers(const Safetensors& file, const SafeTensor& t, uint64_t most) {
  if (t.type != SafeType::I32 && t.type != SafeType::I64) return wrong_type(file, t, "I32 or I64");
  const std::vector<uint8_t> bytes = RIDGE_TRY(read_tensor(file, t, most));
  std::vector<int32_t> out(t.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t value = t.type == SafeType::I32 ? value_at<int32_t>(bytes, i) : value_at<int64_t>(bytes, i);
    if (value < INT32_MIN || value > INT32_MAX) {
      return bad_input(fmt::format("{}: tensor {} holds {}, expected 32 bits", file.files()[t.file].path,
                                   ridge::in_quotes(t.name), value),
                       t.offset);
    }
    out[i] = static_cast<int32_t>(value);
  }
  return out;
}

}  // namespace ridge
