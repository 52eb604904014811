#include "sim/toml_table.h"

#include "base/units.h"
#include "format/file_stream.h"

namespace ridge::sim {
namespace {

constexpr uint64_t kLargestProfile = 4 * kMiB;

Result<std::string> whole_text(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > kLargestProfile) {
    return bad_input(fmt::format("{}: larger than 4 MiB, so this is no device profile; name one of profiles/", path));
  }
  std::string text(in.size(), '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));
  return text;
}

}  // namespace

Result<TomlFile> TomlFile::read(const std::string& path, std::string_view page) {
  const std::string text = RIDGE_TRY(whole_text(path));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return bad_input(
        fmt::format("{}: line {}: not TOML: {}; correct it", path, error.source().begin.line, error.description()));
  }
  return TomlFile(std::move(parsed).table(), path, page);
}

}  // namespace ridge::sim
