#include "engine/image_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "format/quote.h"

namespace ridge {
namespace {

// One list of settings for both ways. `visit(name, field)`.
template <class Options, class Visit>
void for_each_setting(Options& o, Visit visit) {
  visit("warmup", o.rule.warmup);
  visit("window", o.rule.window);
  visit("flex", o.rule.flex);
  visit("stop", o.rule.stop);
  visit("tail", o.rule.tail);
  visit("round-window", o.rule.rounds_window);
  visit("blend", o.blend);
  visit("degree", o.degree);
  visit("lambda", o.lambda);
  visit("history", o.history);
  visit("start-sigma", o.start_sigma);
  visit("fixed-steps", o.fixed_steps);
  visit("taylor", o.taylor_factor);
  visit("penalise-constant", o.penalises_constant);
  visit("jitter", o.jitter);
}

template <class Number>
bool read(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}
bool read(std::string_view text, bool& out) {
  out = text == "yes";
  return out || text == "no";
}
bool read(std::string_view text, std::optional<double>& out) {
  out.reset();
  return text == "gap" || read(text, out.emplace());
}

// The shortest decimal that reads back as the same number.
template <class Number>
std::string written(Number value) {
  return fmt::format("{}", value);
}
std::string written(bool value) { return value ? "yes" : "no"; }
std::string written(const std::optional<double>& value) { return value ? written(*value) : "gap"; }

std::string_view kind_of(const std::optional<double>&) { return "gap or a number"; }
std::string_view kind_of(bool) { return "yes or no"; }
std::string_view kind_of(uint32_t) { return "a whole number"; }
std::string_view kind_of(double) { return "a number"; }

Result<void> set(SpectrumOptions& options, std::string_view name, std::string_view value) {
  bool known = false;
  std::string names;
  std::string_view wanted;
  for_each_setting(options, [&](std::string_view each, auto& field) {
    names += (names.empty() ? "" : ", ") + std::string(each);
    if (each != name) return;
    known = true;
    if (!read(value, field)) wanted = kind_of(field);
  });
  if (!known) return usage_error(fmt::format("--spectrum: {} is no setting: give one of {}", in_quotes(name), names));
  if (wanted.empty()) return {};
  return usage_error(
      fmt::format("--spectrum: {}={} has no value of its kind: give {}", name, in_quotes(value), wanted));
}

ForecastOptions preset(ForecastForm form) {
  return {form, form == ForecastForm::latent ? spectrum_sampler_preset() : spectrum_hidden_preset()};
}

}  // namespace

Result<ForecastOptions> parse_forecast(std::string_view text) {
  ForecastOptions options = preset(ForecastForm::latent);
  for (bool first = true; !text.empty() || first; first = false) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      RIDGE_TRY(set(options.spectrum, word.substr(0, equals), word.substr(equals + 1)));
    } else if (first && (word == "hidden" || word == "latent" || text.empty())) {
      options = preset(word == "hidden" ? ForecastForm::hidden : ForecastForm::latent);
    } else {
      return usage_error(
          fmt::format("--spectrum: {} is no setting: give latent or hidden first, then name=value, parted by commas",
                      in_quotes(word)));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (const std::string_view broken = broken_setting(options.spectrum); !broken.empty()) {
    return usage_error(fmt::format("--spectrum: {}", broken));
  }
  return options;
}

std::string text_of(const ForecastOptions& options) {
  std::string out = options.form == ForecastForm::latent ? "latent" : "hidden";
  for_each_setting(options.spectrum,
                   [&](const char* name, const auto& field) { out += fmt::format(",{}={}", name, written(field)); });
  return out;
}

std::vector<bool> forecast_steps(const ForecastOptions& options, std::span<const float> sigmas) {
  const auto steps = static_cast<uint32_t>(sigmas.size() - 1);
  SpectrumSchedule schedule(options.spectrum.rule, steps);
  std::vector<bool> computed(steps);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    computed[i] = kept < 2 || sigmas[i] > options.spectrum.start_sigma || schedule.wants(i);
    schedule.done(i, computed[i]);
    kept += computed[i];
  }
  return computed;
}

}  // namespace ridge
