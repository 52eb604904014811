#include <fmt/format.h>

#include <limits>

#include "format/gguf.h"
#include "format/quote.h"

namespace ridge {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // clang 14 does not deduce it for itself

std::string_view kind(const MetadataValue& value) {
  return std::visit(Overloaded{[](bool) { return "a boolean"; }, [](int64_t) { return "an integer"; },
                               [](uint64_t) { return "an integer"; }, [](double) { return "a floating-point number"; },
                               [](const std::string&) { return "a string"; },
                               [](const MetadataArray& array) {
                                 if (std::holds_alternative<StringPool>(array)) return "an array of strings";
                                 if (std::holds_alternative<std::vector<float>>(array) ||
                                     std::holds_alternative<std::vector<double>>(array)) {
                                   return "an array of floating-point numbers";
                                 }
                                 return "an array of integers";
                               }},
                    value);
}

Error wrong_type(const Metadata& metadata, std::string_view key, const MetadataValue& value,
                 std::string_view expected) {
  return bad_input(fmt::format("{}: metadata key {} is {}, expected {}; convert the model again", metadata.where,
                               ridge::quoted(key), kind(value), expected));
}

Error negative(const Metadata& metadata, std::string_view key, int64_t value) {
  return bad_input(
      fmt::format("{}: metadata key {} holds {}, expected a whole number of at least 0; convert the model again",
                  metadata.where, ridge::quoted(key), value));
}

Error missing(const Metadata& metadata, std::string_view key, std::string_view expected) {
  return bad_input(fmt::format("{}: metadata key {} is missing, expected {}; convert the model again", metadata.where,
                               ridge::quoted(key), expected));
}

}  // namespace

const MetadataValue* Metadata::find(std::string_view key) const {
  auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

Result<uint64_t> Metadata::require_uint(std::string_view key) const {
  std::optional<uint64_t> value = RIDGE_TRY(uint(key));
  if (!value) return missing(*this, key, "an integer");
  return *value;
}

Result<std::string> Metadata::require_string(std::string_view key) const {
  std::optional<std::string> value = RIDGE_TRY(string(key));
  if (!value) return missing(*this, key, "a string");
  return *std::move(value);
}

Result<std::optional<uint64_t>> Metadata::uint(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (const auto* n = std::get_if<uint64_t>(value)) return std::optional<uint64_t>(*n);
  const auto* n = std::get_if<int64_t>(value);
  if (n == nullptr) return wrong_type(*this, key, *value, "an integer");
  if (*n < 0) return negative(*this, key, *n);
  return std::optional<uint64_t>(static_cast<uint64_t>(*n));
}

Result<std::optional<double>> Metadata::number(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* x = std::get_if<double>(value)) return std::optional<double>(*x);
  if (const auto* n = std::get_if<int64_t>(value)) return std::optional<double>(static_cast<double>(*n));
  if (const auto* n = std::get_if<uint64_t>(value)) return std::optional<double>(static_cast<double>(*n));
  return wrong_type(*this, key, *value, "a number");
}

Result<std::optional<bool>> Metadata::boolean(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional<bool>(*b);
  return wrong_type(*this, key, *value, "a boolean");
}

Result<std::optional<std::string>> Metadata::string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (const auto* s = std::get_if<std::string>(value)) return std::optional<std::string>(*s);
  return wrong_type(*this, key, *value, "a string");
}

Result<const StringPool*> Metadata::strings(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return static_cast<const StringPool*>(nullptr);
  const auto* array = std::get_if<MetadataArray>(value);
  const auto* pool = array == nullptr ? nullptr : std::get_if<StringPool>(array);
  if (pool == nullptr) return wrong_type(*this, key, *value, "an array of strings");
  return pool;
}

Result<std::vector<uint64_t>> Metadata::uints(std::string_view key) const {
  using Out = std::vector<uint64_t>;
  const MetadataValue* value = find(key);
  if (value == nullptr) return Out();
  if (const auto* b = std::get_if<bool>(value)) return Out{*b ? 1u : 0u};
  const auto* array = std::get_if<MetadataArray>(value);
  if (array == nullptr) return Out{RIDGE_TRY(require_uint(key))};
  auto convert = [&](const auto& numbers) -> Result<Out> {
    Out out;
    out.reserve(numbers.size());
    for (int64_t n : numbers) {
      if (n < 0) return negative(*this, key, n);
      out.push_back(static_cast<uint64_t>(n));
    }
    return out;
  };
  if (const auto* small = std::get_if<std::vector<int32_t>>(array)) return convert(*small);
  if (const auto* wide = std::get_if<std::vector<int64_t>>(array)) return convert(*wide);
  return wrong_type(*this, key, *value, "an integer or an array of integers");
}

Result<std::vector<double>> Metadata::numbers(std::string_view key) const {
  using Out = std::vector<double>;
  const MetadataValue* value = find(key);
  if (value == nullptr) return Out();
  if (const auto* b = std::get_if<bool>(value)) return Out{*b ? 1.0 : 0.0};
  const auto* array = std::get_if<MetadataArray>(value);
  if (array == nullptr) return Out{*RIDGE_TRY(number(key))};
  return std::visit(Overloaded{[&](const StringPool&) -> Result<Out> {
                                 return wrong_type(*this, key, *value, "a number or an array of numbers");
                               },
                               [](const auto& numbers) -> Result<Out> {
                                 Out out;
                                 out.reserve(numbers.size());
                                 for (auto x : numbers) out.push_back(static_cast<double>(x));
                                 return out;
                               }},
                    *array);
}

std::optional<MetadataArray> Metadata::take_array(std::string_view key) {
  auto it = entries_.find(key);
  if (it == entries_.end()) return std::nullopt;
  auto* array = std::get_if<MetadataArray>(&it->second);
  if (array == nullptr) return std::nullopt;
  std::optional<MetadataArray> taken(std::move(*array));
  entries_.erase(it);
  return taken;
}

void Metadata::erase(std::string_view key) {
  auto it = entries_.find(key);
  if (it != entries_.end()) entries_.erase(it);
}

}  // namespace ridge
