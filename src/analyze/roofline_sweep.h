// Sweeps: what changes along one axis while everything else stays. Of shapes: the depth in layers, the type of the
// weights, the kind of attention at a matched size. Of scenarios: the context.
//
//   Sweep sweep = RIDGE_TRY(parse_sweep("depth"));
//   for (const ModelShape& s : sweep_shapes(sweep, *find_shape("llama-3.2-1b"))) …
//   for (const Scenario& s : context_scenarios({})) …
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyze/roofline_points.h"
#include "analyze/shape_model.h"

namespace ridge {

enum class Sweep : uint8_t { depth, type, attention, context, threads };
std::string_view name_of(Sweep sweep);
Result<Sweep> parse_sweep(std::string_view name);  // usage error that lists them
bool is_of_shapes(Sweep sweep);                    // depth, type, attention

// Variants of a shape, named after what differs: 1 to 64 layers; F16, Q8_0, Q6_K, Q4_K, Q4_0; MHA, GQA (four query
// heads to each of keys) and MLA, where the feed-forward part takes up what attention has more or less, to the
// nearest 32.
std::vector<ModelShape> sweep_shapes(Sweep sweep, const ModelShape& base);

// Prompts of 128 tokens, then twice as many until the long length, each with a short answer.
std::vector<Scenario> context_scenarios(const ScenarioLengths& lengths);

// Seconds over a count, t = t0 + τ n, by least squares; needs two different counts.
struct TimeFit {
  double t0 = 0, tau = 0;
};
struct TimeSample {
  double count = 0, seconds = 0;
};
std::optional<TimeFit> fit_time(const std::vector<TimeSample>& samples);

}  // namespace ridge
