#include "format/gguf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/gguf_reader.h"

namespace ridge {
namespace {

// "folder/name-00002-of-00003.gguf", taken apart.
struct SplitName {
  std::string_view prefix;  // "folder/name"
  uint64_t number = 0, count = 0;
};

constexpr uint64_t kMostParts = 99'999;  // five digits

std::string part_path(std::string_view prefix, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-00001-of-00003.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  SplitName name{.prefix = path.substr(0, path.size() - kPattern.size())};
  std::string_view tail = path.substr(name.prefix.size());
  std::from_chars(tail.data() + 1, tail.data() + 6, name.number);
  std::from_chars(tail.data() + 10, tail.data() + 15, name.count);
  // Whatever was not in the pattern does not come out the same again.
  if (part_path(name.prefix, name.number, name.count) != path) return std::nullopt;
  return name;
}

Result<Gguf> read_file(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  return GgufReader(in).read();
}

// 0 and 1 both mean a file of its own: tools that merge parts leave 0 behind.
Result<uint64_t> split_count(const Gguf& file) { return RIDGE_TRY(file.metadata().uint("split.count")).value_or(1); }

// The part must say of itself that it is number `index` (from 0) of `count`.
Result<void> check_part(const Gguf& part, uint64_t index, uint64_t count) {
  const std::string& path = part.files()[0].path;
  uint64_t own_count = RIDGE_TRY(split_count(part));
  uint64_t own_index = RIDGE_TRY(part.metadata().require_uint("split.no"));
  if (own_count == count && own_index == index) return {};
  return bad_input(
      fmt::format("{}: calls itself part {} of {}, expected part {} of {}: the parts do not belong together or "
                  "were renamed; fetch them again",
                  path, format_count(own_index + 1), format_count(own_count), index + 1, count));
}

Result<Gguf> open_split(const std::string& path, Gguf opened, uint64_t count) {
  if (count > kMostParts) {
    return bad_input(
        fmt::format("{}: metadata key 'split.count' is {}, expected at most {}: the file is damaged; fetch it "
                    "again",
                    path, format_count(count), format_count(kMostParts)));
  }
  std::optional<SplitName> name = parse_split_name(path);
  if (!name || name->number < 1 || name->number > count || name->count != count) {
    return bad_input(
        fmt::format("{}: is one of {} parts of a split model, but is not named like {}; give it its own name back",
                    path, count, part_path("name", 1, count)));
  }
  // The parts are collected one by one: a count alone allocates nothing.
  std::vector<Gguf> parts;
  for (uint64_t i = 0; i < count; ++i) {
    if (i + 1 == name->number) {
      parts.push_back(std::move(opened));
    } else {
      std::string other = part_path(name->prefix, i + 1, count);
      if (::access(other.c_str(), F_OK) != 0) {
        return bad_input(fmt::format("{}: part {} of {} of this split model is missing; put all parts into one folder",
                                     other, i + 1, count));
      }
      parts.push_back(RIDGE_TRY(read_file(other)));
    }
    RIDGE_TRY(check_part(parts.back(), i, count));
  }
  return GgufReader::join(std::move(parts));
}

}  // namespace

Result<Gguf> Gguf::open(const std::string& path) {
  Gguf file = RIDGE_TRY(read_file(path));
  uint64_t count = RIDGE_TRY(split_count(file));
  if (count <= 1) return file;
  return open_split(path, std::move(file), count);
}

Result<Gguf> parse_gguf(std::span<const uint8_t> bytes, const std::string& name) {
  SpanStream in(bytes, name);
  Gguf file = RIDGE_TRY(GgufReader(in).read());
  uint64_t count = RIDGE_TRY(split_count(file));
  if (count <= 1) return file;
  return bad_input(fmt::format("{}: is one of {} parts of a split model; open it from its folder, where the others are",
                               name, format_count(count)));
}

Result<Gguf> Gguf::assemble(Metadata metadata, std::vector<GgufTensor> tensors, std::vector<GgufFile> files) {
  Gguf gguf;
  gguf.metadata_ = std::move(metadata);
  gguf.tensors_ = std::move(tensors);
  gguf.files_ = std::move(files);
  RIDGE_TRY(GgufReader::index_names(gguf));
  return gguf;
}

const GgufTensor* Gguf::find(std::string_view name) const {
  auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                             [&](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (it == by_name_.end() || tensors_[*it].name != name) return nullptr;
  return &tensors_[*it];
}

Result<Gguf> GgufReader::join(std::vector<Gguf> parts) {
  Gguf all = std::move(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    for (GgufTensor& tensor : parts[i].tensors_) {
      tensor.file = static_cast<uint32_t>(i);
      all.tensors_.push_back(std::move(tensor));
    }
    all.files_.push_back(std::move(parts[i].files_.front()));
    parts[i] = {};
  }
  std::optional<uint64_t> expected = RIDGE_TRY(all.metadata_.uint("split.tensors.count"));
  if (expected && *expected != all.tensors_.size()) {
    return bad_input(
        fmt::format("{}: the {} parts hold {} tensors, expected {} (split.tensors.count): a part is damaged or of "
                    "another model; fetch them again",
                    all.files_[0].path, all.files_.size(), format_count(all.tensors_.size()), format_count(*expected)));
  }
  RIDGE_TRY(index_names(all));
  return all;
}

}  // namespace ridge
