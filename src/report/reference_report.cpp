#include "report/reference_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "report/image_report.h"

namespace ridge {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double ratio(const ReferenceReport& r) { return r.seconds > 0 ? r.exact_seconds / r.seconds : 0; }

}  // namespace

std::string reference_table(const ReferenceReport& r) {
  std::string out = fmt::format("{:>4}  {:>7}  {:<9}  {}\n", "step", "sigma", "", "relative error of the latent");
  for (const ReferenceStep& s : r.steps) {
    out += fmt::format("{:>4}  {:>7.4f}  {:<9}  {:.3e}\n", s.step, s.sigma, s.computed ? "computed" : "predicted",
                       mean(s.latent_errors));
  }
  out += fmt::format("steps: {:.2f} s, exact {:.2f} s: {:.2f} ×\n", r.seconds, r.exact_seconds, ratio(r));
  for (size_t i = 0; i < r.pictures.size(); ++i) {
    out += fmt::format("seed {}, against the exact picture: {}", r.seeds[i], image_table(r.pictures[i]));
  }
  return out;
}

nlohmann::ordered_json reference_json(const ReferenceReport& r) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), pictures = steps;
  for (const ReferenceStep& s : r.steps) {
    steps.push_back(
        {{"step", s.step}, {"sigma", s.sigma}, {"computed", s.computed}, {"latent_errors", s.latent_errors}});
  }
  for (size_t i = 0; i < r.pictures.size(); ++i) {
    pictures.push_back({{"seed", r.seeds[i]}, {"quality", image_json(r.pictures[i])}});
  }
  return {{"steps", steps},
          {"pictures", pictures},
          {"exact_seconds", r.exact_seconds},
          {"seconds", r.seconds},
          {"speed_up", ratio(r)}};
}

}  // namespace ridge
