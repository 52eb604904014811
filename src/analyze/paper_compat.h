// RooflineBench as its released code computes it (arXiv:2602.11506 v3; docs/roofline.md, "The paper's figures"), so
// that its published figures come out, and the physical values of the same measurements beside them.
//
// The formulas of the code, with P prompt tokens and no generated ones:
//   W = L · (cache + attention + linear)        multiply-adds counted once; no feed-forward part, no head
//   Q = peak memory · seconds of the whole process    a unit of byte-seconds, not bytes
//   OI = W / Q, performance = W / seconds, so performance / OI is the peak memory, whatever was measured
//
// Not for: anything but this comparison.
//
//   CompatPoint c = compat_point(*find_paper_row("M1 Pro", "qwen2.5-1.5b", "F16"), 1);     // LISO
//   PhysicalPoint p = physical_point(…);
#pragma once

#include <string>
#include <vector>

#include "analyze/compat_point.h"
#include "analyze/paper_data.h"
#include "analyze/roofline_points.h"
#include "analyze/shape_model.h"

namespace ridge {

// Multiply-adds that the paper's Table 2 counts for a layer and a prompt; `cache` are elements, counted as if they were
// operations.
struct CompatOps {
  double cache = 0, attention = 0, linear = 0;
  double sum() const { return cache + attention + linear; }
};
// Whether to count as the code does (half the key/value heads; a latent of the hidden size where the code means the
// latent of keys and values) or as the table says.
enum class CompatRule : uint8_t { code, table };
CompatOps compat_layer_ops(const ModelShape& shape, uint64_t prompt, CompatRule rule = CompatRule::code);

// What the paper does not print, assumed so that its plots come out.
struct CompatAssumptions {
  double start_s = 0.9;         // of the process and of loading the model
  double overhead_bytes = 2e8;  // of peak memory, beside weights, keys and values
  int repetitions = 5;          // of llama-bench, after a warm-up: the prompt once, one generated token
};

CompatPoint compat_point(const PaperRow& row, size_t scenario, const CompatAssumptions& assume = {});

// The same tokens per second, physically: prefill and decode apart. llama-bench generates into an empty cache, so the
// depth is half the answer.
PhysicalPoint physical_point(const PaperRow& row, size_t scenario);

// The same two for scenarios that were measured or computed here: one row for every prefill of the report from
// `first_point` on that has a decode of its scenario. The rates are those of the two points, the roofs those of decode;
// `model` gives the bytes, `shape` the sizes that the formulas ask for.
void add_compat_rows(const Model& model, const ModelShape& shape, size_t first_point, RooflineReport& report);

// OI by the code over depth is c L / ((M0 + m L)(t0 + τ L)): largest at sqrt(M0 t0 / (m τ)), whatever the model.
struct DepthPeak {
  double fixed_bytes = 0, layer_bytes = 0;  // M0, m
  double fixed_s = 0, layer_s = 0;          // t0, τ
  double layers = 0;                        // L*
  double oi_at(double depth, double layer_ops) const;
};
DepthPeak depth_peak(const PaperRow& row, size_t scenario, const CompatAssumptions& assume = {});
// Of decode, at this depth of layers: flat but for the head.
double physical_decode_oi(const PaperRow& row, uint32_t layers);

// One of the paper's six insights.
struct Insight {
  std::string claim, compat, physical, verdict, why;
};
std::vector<Insight> paper_insights();

// The shape of a row's model in the row's type.
ModelShape shape_of(const PaperRow& row);
Scenario paper_scenario(size_t scenario);

}  // namespace ridge
