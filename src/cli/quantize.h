// What `ridge quantize` is asked and what it says (quantize.cpp runs it, quantize_report.cpp prints it).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/bit_mix.h"
#include "analyze/quality.h"
#include "analyze/quantize_model.h"
#include "base/result.h"

namespace ridge::cli {

struct QuantizeOutcome {
  std::string model, output;
  uint64_t bytes_before = 0, bytes_after = 0;
  std::optional<Type> wish;         // one type for all
  std::vector<BitMatrix> matrices;  // with their errors; empty with one type for all
  std::vector<GgufTensor> tensors;  // of the matrices, as they were
  std::vector<Type> types;          // of the matrices, now
  std::vector<ScaleGroup> groups;   // what was measured of them
  std::optional<BitMix> mix;
  bool calibrated = false;          // predictions are nats per token
  std::optional<Divergence> check;  // from the original, on the check text
};

double perplexity_rise_percent(const Divergence& d);
std::string quantize_table(const QuantizeOutcome& outcome);
std::string quantize_json(const QuantizeOutcome& outcome);
// A sentence for each matrix.
std::string quantize_reasons(const QuantizeOutcome& outcome);

}  // namespace ridge::cli
