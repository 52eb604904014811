#include "report/csv.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

std::string csv_field(const Json& value) {
  const std::string text = value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_table(std::span<const Json> rows) {
  std::string text;
  for (const Json& row : rows) {
    std::string names, values;
    for (const auto& [name, value] : row.items()) {
      names += (names.empty() ? "" : ",") + name;
      values += (values.empty() ? "" : ",") + csv_field(value);
    }
    if (text.empty()) text = names + "\r\n";
    text += values + "\r\n";
  }
  return text;
}

}  // namespace ridge
