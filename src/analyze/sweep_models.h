// The models that a measured sweep runs: variants of a model file, or of a shape with random weights, each made when
// its turn comes, so that the disk holds one at a time.
//
//   for (const SweepModel& m : RIDGE_TRY(sweep_models(Sweep::depth, "model.gguf"))) {
//     MadeModel made = RIDGE_TRY(m.make(&interrupted));
//     … measure made.path() as m.name …
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/made_model.h"
#include "analyze/roofline_sweep.h"

namespace ridge {

struct SweepModel {
  std::string name;
  uint32_t layers = 0;
  std::function<Result<MadeModel>(const std::atomic<bool>* interrupted)> make;
  std::optional<ModelShape> shape = {};  // of random ones
};

// Of a GGUF file. depth: 1, 2, 4 … layers of it and all; type: its weights in F16, Q8_0 and Q4_0; attention: random
// models of its sizes with MHA, GQA and MLA. Bad input and usage errors as of change_model() and shape_of().
Result<std::vector<SweepModel>> sweep_models(Sweep sweep, const std::string& path);
// Of a shape, with random weights; without a sweep the shape itself.
Result<std::vector<SweepModel>> sweep_models(const std::optional<Sweep>& sweep, const ModelShape& shape);

}  // namespace ridge
