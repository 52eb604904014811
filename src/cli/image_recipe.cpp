#include "cli/image_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace ridge::cli {
namespace {

using nlohmann::ordered_json;
constexpr uint32_t kVersion = 1;

// One list of fields for both ways. `visit(name, field)`.
template <class Recipe, class Visit>
void for_each_field(Recipe& r, Visit visit) {
  visit("prompt", r.prompt);
  visit("negative", r.negative);
  visit("width", r.width);
  visit("height", r.height);
  visit("steps", r.steps);
  visit("cfg", r.cfg);
  visit("shift", r.shift);
  visit("sampler", r.sampler);
  visit("seed", r.seed);
  visit("model", r.parts.model);
  visit("text_encoder", r.parts.text_encoder);
  visit("vae", r.parts.vae);
  visit("tokenizer_qwen", r.parts.tokenizer_qwen);
  visit("tokenizer_t5", r.parts.tokenizer_t5);
  visit("init", r.init);
  visit("strength", r.strength);
  visit("mask", r.mask);
  visit("loras", r.loras);
  visit("spectrum", r.spectrum);
}

// Whether the value is of the field's kind; then it is read.
bool read(const ordered_json& value, std::string& out) {
  if (value.is_string()) out = value.get<std::string>();
  return value.is_string();
}
bool read(const ordered_json& value, double& out) {
  if (value.is_number()) out = value.get<double>();
  return value.is_number();
}
bool read(const ordered_json& value, std::vector<std::string>& out) {
  const bool strings =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const ordered_json& v) { return v.is_string(); });
  if (strings) out = value.get<std::vector<std::string>>();
  return strings;
}
bool read(const ordered_json& value, uint64_t& out) {
  if (value.is_number_unsigned()) out = value.get<uint64_t>();
  return value.is_number_unsigned();
}
bool read(const ordered_json& value, uint32_t& out) {
  uint64_t wide = 0;
  if (!read(value, wide) || wide > std::numeric_limits<uint32_t>::max()) return false;
  out = static_cast<uint32_t>(wide);
  return true;
}
bool read(const ordered_json& value, ForecastOptions& out) {
  if (!value.is_string()) return false;
  Result<ForecastOptions> forecast = parse_forecast(value.get<std::string>());
  if (forecast.ok()) out = forecast.value();
  return forecast.ok();
}
bool read(const ordered_json& value, SamplerKind& out) {
  if (!value.is_string()) return false;
  Result<SamplerKind> kind = parse_sampler(value.get<std::string>());
  if (kind.ok()) out = kind.value();
  return kind.ok();
}

// What a picture need not have.
template <class Field>
struct IsOptional : std::false_type {};
template <class Value>
struct IsOptional<std::optional<Value>> : std::true_type {};

template <class Value>
bool read(const ordered_json& value, std::optional<Value>& out) {
  return read(value, out.emplace());
}

ordered_json written(SamplerKind kind) { return name_of(kind); }
ordered_json written(const ForecastOptions& forecast) { return text_of(forecast); }
template <class Field>
ordered_json written(const Field& field) {
  return field;
}

}  // namespace

std::string recipe_text(const ImageRecipe& recipe) {
  ordered_json out{{"version", kVersion}};
  for_each_field(recipe, [&](const char* name, const auto& field) {
    if constexpr (IsOptional<std::decay_t<decltype(field)>>::value) {
      if (field) out[name] = written(*field);
    } else {
      out[name] = written(field);
    }
  });
  // Names of files may be no UTF-8; prompts have been checked.
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<ImageRecipe> parse_recipe(std::string_view text, std::string_view where) {
  const ordered_json all = ordered_json::parse(text, nullptr, false);
  if (!all.is_object()) return bad_input(fmt::format("{}: its text '{}' is no JSON object", where, kRecipeKey));
  uint32_t version = 0;
  if (!all.contains("version") || !read(all["version"], version) || version != kVersion) {
    return bad_input(fmt::format("{}: its text '{}' is of another version than {}: use the ridge that made the picture",
                                 where, kRecipeKey, kVersion));
  }
  ImageRecipe out;
  const char* broken = nullptr;
  for_each_field(out, [&](const char* name, auto& field) {
    constexpr bool kOptional = IsOptional<std::decay_t<decltype(field)>>::value;
    if (broken != nullptr || (!all.contains(name) && kOptional)) return;
    if (!all.contains(name) || !read(all[name], field)) broken = name;
  });
  if (broken == nullptr) return out;
  return bad_input(
      fmt::format("{}: in its text '{}' the field '{}' is missing or of a wrong kind", where, kRecipeKey, broken));
}

}  // namespace ridge::cli
