// A student with all that training needs to go on as if it had never stopped: weights, moments, step, curve.
//
// The file is safetensors: the weights under their GGUF names, the moments as mean/NAME and square/NAME, and
// `ridge.state` and `ridge.curve`, int32, which hold 64-bit numbers as pairs of words.
//
//   RIDGE_TRY(write_checkpoint(path, state, parameters, optimizer));
//   CheckpointState state = RIDGE_TRY(read_checkpoint_state(path));      // the shape, before the student is made
//   RIDGE_TRY(read_checkpoint(path, state, parameters, &optimizer));
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "distill/torch/adamw.h"
#include "distill/torch/student.h"
#include "distill/train.h"

namespace ridge::distill {

struct CheckpointState {
  StudentShape shape;
  uint64_t step = 0;
  uint64_t vocabulary = 0;  // fingerprint of the tokens' texts
  uint64_t settings = 0;    // fingerprint of what decides the course of training, the text included
  uint64_t pending = 0;     // steps since the last point of the curve, with their sums
  CurvePoint sums;
  std::vector<CurvePoint> curve;
};

// `parameters`: of the student, then of projections; the optimizer has its states in the same order.
Result<void> write_checkpoint(const std::string& path, const CheckpointState& state,
                              const std::vector<Parameter>& parameters, const AdamW& optimizer);
// Bad input for a file that is no checkpoint.
Result<CheckpointState> read_checkpoint_state(const std::string& path);
// Into tensors that are there; without an optimizer the weights alone.
Result<void> read_checkpoint(const std::string& path, std::vector<Parameter>& parameters, AdamW* optimizer);

// FNV-1a, for the fingerprints.
uint64_t fingerprint(std::string_view bytes, uint64_t begin = 0xcbf29ce484222325u);
uint64_t fingerprint_of(const Tokenizer& tokenizer);

}  // namespace ridge::distill
