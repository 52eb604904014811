#include "sim/device_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge::sim {
namespace {

constexpr double kMibPerGib = 1024;

// Peak of a run as contexts and weights, for the interval: the largest that were there at once, by the fit's own sum.
std::optional<double> interval_of(const LadderFit& fit, const ContextDevice& device, double peak_mib) {
  double weights = 0;
  for (const Context& c : device.contexts) weights += c.weight_mib;
  const double n = static_cast<double>(device.contexts.size());
  const double each = fit.context_mib(weights / n);
  if (each <= 0) return std::nullopt;
  const double contexts = std::max(0.0, peak_mib - fit.base_mib) / each;
  return fit.interval(contexts, contexts * weights / n);
}

void add_extrapolations(std::vector<StudyRow>& rows, const ContextDevice& device, const LadderFit& fit) {
  const Published& p = device.published;
  const size_t n = device.contexts.size();
  double weights = 0;
  for (const Context& c : device.contexts) weights += c.weight_mib;
  if (auto mapping = extrapolated_mapping_mib(device)) {
    rows.push_back({fmt::format("device mappings of all {}", n), "GiB", *mapping / kMibPerGib, p.mapping_gib,
                    fmt::format("in proportion to those of {}", device.mapping_contexts)});
  }
  rows.push_back({fmt::format("added PSS of all {}", n), "GiB", extrapolated_added_mib(device) / kMibPerGib,
                  p.added_pss_gib, "the last two rungs' growth goes on"});
  const double all = fit.mib(static_cast<double>(n), weights);
  const auto interval = fit.interval(static_cast<double>(n), weights);
  rows.push_back({fmt::format("added PSS of all {}, fit", n), "GiB", all / kMibPerGib, std::nullopt,
                  interval ? fmt::format("± {:.1f} (95 %), over {} rungs and pools", *interval / kMibPerGib, fit.points)
                           : fmt::format("over {} rungs", fit.points)});
  rows.push_back({fmt::format("FP16 weights of all {}", n), "GiB", weights / kMibPerGib, std::nullopt,
                  fmt::format("the rest is overhead of the runtime: {:.1f} times as much in all", all / weights)});
}

// The LRU line: every capacity below the number of contexts, each a run.
uint64_t lru_hits_below_all(const ContextDevice& device, const LadderFit& fit, uint32_t passes) {
  uint64_t most = 0;
  for (uint32_t capacity = 1; capacity < device.contexts.size(); ++capacity) {
    most = std::max(most, run_lifecycle(device, fit, {.passes = passes, .policy = "lru", .pinned = capacity}).hits);
  }
  return most;
}

std::vector<StudyRow> document_of(const ContextDevice& device, const LadderFit& fit, uint32_t passes) {
  const Published& p = device.published;
  const uint32_t n = static_cast<uint32_t>(device.contexts.size());
  const LifecycleRun once = run_lifecycle(device, fit, {.passes = 1});
  const LifecycleRun none = run_lifecycle(device, fit, {.passes = passes});
  const LifecycleRun resident = run_lifecycle(device, fit, {.passes = passes, .policy = "lru", .pinned = n});
  std::vector<StudyRow> rows;
  rows.push_back({"loads, inits and releases of a pass", "s", once.lifecycle_s, p.pass_lifecycle_s, ""});
  rows.push_back({"calls of an image", "", static_cast<double>(none.calls), p.lifecycles,
                  fmt::format("{} contexts, {} computed steps", n, passes)});
  rows.push_back({fmt::format("hits of LRU, any capacity below {}", n), "",
                  static_cast<double>(lru_hits_below_all(device, fit, passes)), p.lru_hits,
                  "the most over all of them"});
  rows.push_back({"lifecycles of an image", "s", none.lifecycle_s, p.lifecycle_s, "load, run, release"});
  rows.push_back({"all resident saves", "s", none.passes_s - resident.passes_s, p.resident_saving_s, ""});
  rows.push_back({"image, load-run-release", "s", none.image_s(device), p.image_s, "other_s was chosen to match it"});
  rows.push_back({"image, all resident", "s", resident.image_s(device), p.resident_image_s, ""});
  const uint32_t pins = static_cast<uint32_t>(p.pinned_contexts.value_or(16));
  if (pins < n) {
    const LifecycleOptions pinned{.passes = passes, .policy = "pin-leading", .pinned = pins};
    const ContextDevice mean = averaged(device);
    const double by_mean =
        run_lifecycle(mean, fit, {.passes = passes}).passes_s - run_lifecycle(mean, fit, pinned).passes_s;
    const LifecycleRun by_kind = run_lifecycle(device, fit, pinned);
    rows.push_back({fmt::format("pins of contexts 0 to {} save", pins - 1), "s", by_mean, p.pinned_saving_s,
                    "each as dear as the mean"});
    rows.push_back({fmt::format("pins of contexts 0 to {} save", pins - 1), "s", none.passes_s - by_kind.passes_s,
                    std::nullopt, "each as dear as its kind"});
    double weights = 0;
    for (uint32_t i = 0; i < pins; ++i) weights += device.contexts[i].weight_mib;
    rows.push_back({"their added PSS, fit", "MiB", fit.mib(pins, weights), p.pinned_mib,
                    "the pins alone, as the document counts"});
  }
  add_extrapolations(rows, device, fit);
  return rows;
}

struct Case {
  std::string group, what;
  LifecycleOptions options;
};

std::vector<Case> cases_of(const ContextDevice& device, uint32_t passes) {
  const uint32_t n = static_cast<uint32_t>(device.contexts.size());
  std::vector<Case> out;
  out.push_back({"as published", "load, run, release", {.passes = passes}});
  out.push_back({"as published", "all resident", {.passes = passes, .policy = "lru", .pinned = n}});
  auto pins = [&](uint32_t count, const char* policy, const char* words) {
    count = std::min(count, n);
    out.push_back({"pins", fmt::format("{} {}", count, words), {.passes = passes, .policy = policy, .pinned = count}});
  };
  pins(16, "pin-leading", "leading");
  pins(16, "pin-worth", "by seconds per MiB");
  pins(20, "pin-worth", "by seconds per MiB");
  for (DriverLock lock : {DriverLock::none, DriverLock::init, DriverLock::init_and_release}) {
    const char* words = lock == DriverLock::none   ? ""
                        : lock == DriverLock::init ? ", init excludes run"
                                                   : ", init and release exclude run";
    for (uint32_t contexts : {2u, 3u, 4u}) {
      out.push_back({"read ahead",
                     fmt::format("{} contexts{}", contexts, words),
                     {.passes = passes, .contexts = contexts, .lock = lock}});
    }
  }
  for (uint32_t contexts : {2u, 3u}) {
    out.push_back({"pins and read ahead",
                   fmt::format("8 by seconds per MiB, {} contexts, init excludes run", contexts),
                   {.passes = passes,
                    .policy = "pin-worth",
                    .pinned = std::min(8u, n),
                    .contexts = contexts,
                    .lock = DriverLock::init}});
  }
  for (uint32_t images : {2u, 4u}) {
    out.push_back(
        {"lock-step", fmt::format("{} images, load, run, release", images), {.passes = passes, .images = images}});
  }
  out.push_back({"lock-step",
                 "2 images, read ahead with 2 contexts, init excludes run",
                 {.passes = passes, .contexts = 2, .lock = DriverLock::init, .images = 2}});
  return out;
}

}  // namespace

StudyRun study_run(const ContextDevice& device, const LadderFit& fit, double gate_mib,
                   const LifecycleOptions& options) {
  const LifecycleRun run = run_lifecycle(device, fit, options);
  StudyRun row{.options = options, .image_s = run.image_s(device)};
  row.waited_s = run.result.waited / run.images;
  row.added_mib = run.peak_mib;
  row.interval_mib = interval_of(fit, device, run.peak_mib);
  row.hit_ratio = static_cast<double>(run.hits) / static_cast<double>(run.calls);
  row.passes_gate = row.added_mib <= gate_mib;
  return row;
}

DeviceStudy study_device(const ContextDevice& device, const StudyOptions& options) {
  DeviceStudy study;
  study.fit = fit_ladder(device);
  study.gate_mib = gate_mib(device);
  study.fixed_s = device.fixed_s();
  study.document = document_of(device, study.fit, options.computed_steps);
  study.device = options.merge > 1 ? merged(device, options.merge) : device;
  const double passes = options.computed_steps;
  study.bound_s = device.other_s + passes * pass_bound_s(study.device, DriverLock::none);
  study.locked_bound_s = device.other_s + passes * pass_bound_s(study.device, DriverLock::init);
  const double before = run_lifecycle(device, study.fit, {.passes = options.computed_steps}).image_s(device);
  for (const Case& c : cases_of(study.device, options.computed_steps)) {
    StudyRun run = study_run(study.device, study.fit, study.gate_mib, c.options);
    run.group = c.group;
    run.what = c.what;
    run.saved_s = before - run.image_s;
    study.runs.push_back(std::move(run));
  }
  return study;
}

}  // namespace ridge::sim
