#include "format/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/units.h"
#include "format/gguf_magic.h"
#include "format/quote.h"

namespace ridge {
namespace {

// Limits far above every model known (the largest has 50,000 tensors, 100 entries and 20 MB of metadata), and low
// enough that a hostile file costs a bounded amount of memory.
constexpr uint64_t kMaxTensors = 262'144;
constexpr uint64_t kMaxEntries = 16'384;
constexpr uint64_t kMaxMetadataBytes = 256 * kMiB;

constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 1;       // a key of one byte, a type, a value of one byte
constexpr uint64_t kSmallestTensor = 8 + 1 + 4 + 4 + 8;  // a name of one byte, no dimensions, type, offset

}  // namespace

Result<Gguf> GgufReader::read() {
  RIDGE_TRY(read_header());
  out_.metadata_.where = in_.name();
  out_.files_.push_back({in_.name(), in_.size()});
  RIDGE_TRY(read_metadata());
  RIDGE_TRY(read_tensors());
  RIDGE_TRY(index_names(out_));
  return std::move(out_);
}

Result<void> GgufReader::read_header() {
  place_ = {.section = "the header", .name = {}};
  const std::string& name = in_.name();
  if (in_.size() == 0)
    return bad_input(fmt::format("{}: the file is empty, expected a GGUF model; fetch it again", name), 0);

  std::array<uint8_t, 16> first{};
  auto shown = static_cast<size_t>(std::min<uint64_t>(first.size(), in_.size()));
  RIDGE_TRY(in_.read(first.data(), shown));
  std::string_view magic(reinterpret_cast<const char*>(first.data()), std::min<size_t>(4, shown));
  if (!std::string_view("GGUF").starts_with(magic)) {
    return bad_input(fmt::format("{}: not a GGUF file: {}", name, describe_foreign_file({first.data(), shown})), 0);
  }
  if (in_.size() < 24) return need(24);

  uint32_t version = 0;
  std::memcpy(&version, first.data() + 4, sizeof version);
  if ((version & 0xFFFF) == 0 && version != 0) {
    return bad_input(
        fmt::format("{}: a big-endian GGUF file; Ridge reads little-endian ones: fetch or convert the model as such",
                    name),
        4);
  }
  if (version != 2 && version != 3) {
    return bad_input(fmt::format("{}: GGUF version {}; Ridge reads versions 2 and 3: fetch or convert the model anew",
                                 name, version),
                     4);
  }
  out_.version_ = version;
  std::memcpy(&tensor_count_, first.data() + 8, sizeof tensor_count_);
  entry_count_ = RIDGE_TRY(read_as<uint64_t>());
  RIDGE_TRY(check_claim(entry_count_, kSmallestEntry, "metadata entries"));
  RIDGE_TRY(check_claim(tensor_count_, kSmallestTensor, "tensors"));
  if (entry_count_ > kMaxEntries || tensor_count_ > kMaxTensors) {
    return damaged(fmt::format("claims {} metadata entries and {} tensors; Ridge reads at most {} and {}",
                               format_count(entry_count_), format_count(tensor_count_), format_count(kMaxEntries),
                               format_count(kMaxTensors)));
  }
  return {};
}

Result<void> GgufReader::need(uint64_t bytes) const {
  if (bytes > in_.remaining()) {
    return bad_input(fmt::format("{}: the file ends at {}, inside {}: it is cut short; fetch it again", in_.name(),
                                 format_count(in_.size()), place()),
                     in_.position());
  }
  if (in_.position() + bytes > kMaxMetadataBytes) {
    return damaged(
        fmt::format("lies beyond the first {}, where all metadata is expected", format_bytes(kMaxMetadataBytes)));
  }
  return {};
}

Result<void> GgufReader::check_claim(uint64_t count, uint64_t each, std::string_view things) const {
  if (count > in_.remaining() / each) {
    return bad_input(
        fmt::format("{}: {} claims {} {}, but only {} bytes follow: the file is cut short or damaged; fetch it "
                    "again",
                    in_.name(), place(), format_count(count), things, format_count(in_.remaining())),
        in_.position());
  }
  return need(count * each);
}

Result<std::string> GgufReader::read_string(uint64_t longest, std::string_view what) {
  uint64_t length = RIDGE_TRY(read_as<uint64_t>());
  RIDGE_TRY(check_claim(length, 1, what));
  if (length > longest) {
    return damaged(
        fmt::format("claims {} {}; at most {} are allowed", format_count(length), what, format_count(longest)));
  }
  std::string text(static_cast<size_t>(length), '\0');
  RIDGE_TRY(in_.read(text.data(), text.size()));
  return text;
}

Error GgufReader::damaged(std::string_view problem) const {
  return bad_input(fmt::format("{}: {} {}: the file is damaged; fetch it again", in_.name(), place(), problem),
                   in_.position());
}

std::string GgufReader::place() const {
  if (place_.count == 0) return std::string(place_.section);
  std::string text =
      fmt::format("{} {} of {}", place_.section, format_count(place_.index + 1), format_count(place_.count));
  if (!place_.name.empty()) text += fmt::format(" ({})", ridge::quoted(place_.name));
  return text;
}

}  // namespace ridge
