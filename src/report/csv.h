// Rows of comma-separated values (RFC 4180).
//
//   text = csv_table({{{"model", "m"}, {"tokens", 64}}});    // "model,tokens\r\nm,64\r\n"
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace ridge {

// A line of names, that of the first row, then one line per row; all rows have the same names in the same order. null
// is an empty field. No rows: an empty text.
std::string csv_table(std::span<const nlohmann::ordered_json> rows);

}  // namespace ridge
