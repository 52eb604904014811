#include "cli/image_defaults.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/units.h"
#include "cli/common.h"

namespace ridge::cli {

std::string defaults_file(const std::string& folder) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / "defaults.json").string();
}

Result<std::string> default_size(const std::string& folder) {
  constexpr const char* kUsual = "512x512";
  const std::string path = defaults_file(folder);
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return std::string(kUsual);
  const std::string text = RIDGE_TRY(
      read_text(path, {.most_bytes = 64 * kKiB, .too_long = "longer than 64 KiB: it is no defaults.json of a bundle"}));
  // The library's parser nests as deep as the text, which the limit bounds; this form does not nest.
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto size = json.is_object() ? json.find("size") : json.end();
  if (!json.is_object() || size == json.end() || !size->is_string()) {
    return bad_input(fmt::format(
        "{}: is no object with a text \"size\", such as {{\"size\": \"128x128\"}}; mend it, or give --size", path));
  }
  return size->get<std::string>();
}

}  // namespace ridge::cli
