// Tables of a TOML file, read key by key with one-line errors. Every key is known or refused: a typing error must not
// become a default.
//
//   const TomlFile file = RIDGE_TRY(TomlFile::read(path, "docs/simulator.md"));
//   Table top = file.top();
//   double seconds = RIDGE_TRY(top.number("load_s", Sign::not_negative));
//   RIDGE_TRY(top.finish());                        // "'loads_s' is not known: expected one of …"
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/result.h"

namespace ridge::sim {

constexpr double kLargestNumber = 1e12;  // seconds, bytes, rates: anything larger is a typing error

enum class Sign : uint8_t { positive, not_negative, any };

// One table of the file, with the words for its errors. Remembers which keys were asked for.
class Table {
 public:
  // `path` and `page` (of the documentation) are for its errors, `where` names it in them; all three outlive it.
  Table(const toml::table& table, std::string_view path, std::string_view page, std::string where)
      : table_(table), path_(path), page_(page), where_(std::move(where)) {}

  bool has(std::string_view key) const { return table_.get(key) != nullptr; }

  Result<double> number(std::string_view key, Sign sign) {
    known_.insert(std::string(key));
    const toml::node* node = table_.get(key);
    const auto value = node == nullptr ? std::nullopt : node->value<double>();
    const bool good = value && node->is_number() && std::isfinite(*value) && std::abs(*value) <= kLargestNumber &&
                      (sign == Sign::any || *value > 0 || (sign == Sign::not_negative && *value == 0));
    if (good) return *value;
    if (sign == Sign::positive) return error(key, "a number above 0");
    return error(key, sign == Sign::any ? "a number" : "a number from 0 on");
  }
  Result<uint32_t> whole(std::string_view key, int64_t most) {
    known_.insert(std::string(key));
    auto value = table_[key].value_exact<int64_t>();
    if (!value || *value < 1 || *value > most) return error(key, fmt::format("a whole number from 1 to {}", most));
    return static_cast<uint32_t>(*value);
  }
  Result<std::string> text(std::string_view key) {
    known_.insert(std::string(key));
    auto value = table_[key].value_exact<std::string>();
    if (!value || value->empty()) return error(key, "a text in quotes");
    return *std::move(value);
  }
  Result<std::vector<std::string>> texts(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<std::string> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr || array->empty()) return error(key, "a list of texts, such as [\"self\", \"ffn\"]");
    for (const toml::node& node : *array) {
      auto value = node.value_exact<std::string>();
      if (!value) return error(key, "a list of texts, and nothing else in it");
      out.push_back(*std::move(value));
    }
    return out;
  }
  Result<Table> table(std::string_view key) {
    known_.insert(std::string(key));
    const toml::table* inner = table_[key].as_table();
    if (inner == nullptr) return error(key, "a table");
    return Table(*inner, path_, page_, where_.empty() ? std::string(key) : where_ + "." + std::string(key));
  }
  Result<std::vector<Table>> tables(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<Table> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return error(key, "a list of tables");
    for (size_t i = 0; i < array->size(); ++i) {
      const toml::table* inner = array->get(i)->as_table();
      if (inner == nullptr) return error(key, "a list of tables, and nothing else in it");
      const std::string name = fmt::format("{}[{}]", key, i + 1);
      out.emplace_back(*inner, path_, page_, where_.empty() ? name : where_ + "." + name);
    }
    return out;
  }
  // After everything was read: a key that nobody asked for is an error.
  Result<void> finish() const {
    for (const auto& [key, node] : table_) {
      if (known_.contains(std::string(key.str()))) continue;
      return wrong(node.source(), fmt::format("'{}' is not known", name(key.str())),
                   fmt::format("one of {}", known_names()));
    }
    return {};
  }
  Error error(std::string_view key, std::string_view expected) const {
    const toml::node* node = table_.get(key);
    return wrong(node == nullptr ? toml::source_region{} : node->source(),
                 fmt::format("'{}' is {}", name(key), node == nullptr ? "missing" : "wrong"), expected);
  }

 private:
  std::string name(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  std::string known_names() const {
    std::string names;
    for (const std::string& k : known_) names += (names.empty() ? "" : ", ") + k;
    return names;
  }
  Error wrong(const toml::source_region& source, std::string_view what, std::string_view expected) const {
    const std::string line = source.begin.line > 0 ? fmt::format("line {}: ", source.begin.line) : "";
    return bad_input(fmt::format("{}: {}{}: expected {}; {} explains the keys", path_, line, what, expected, page_));
  }

  const toml::table& table_;
  std::string_view path_, page_;
  std::string where_;
  std::set<std::string> known_;
};

// A file of at most 4 MiB. Bad input: not TOML.
class TomlFile {
 public:
  static Result<TomlFile> read(const std::string& path, std::string_view page);
  Table top() const { return Table(table_, path_, page_, ""); }

 private:
  TomlFile(toml::table table, std::string path, std::string_view page)
      : table_(std::move(table)), path_(std::move(path)), page_(page) {}
  toml::table table_;
  std::string path_;
  std::string_view page_;
};

}  // namespace ridge::sim
