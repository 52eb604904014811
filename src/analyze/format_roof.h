// The fourth roof: how fast the weights of a pass can be unpacked and multiplied, by the rates of their types with
// weights that lie in a core's cache (kernel_bench.h: measure_formats). Each type of a mix takes its own time.
//
// Not for: prompts. There a panel that was unpacked once serves many tokens.
//
//   FormatRoofs roofs = format_roofs(decode_program, head, rates, threads);
//   roofs.whole; roofs.of[size_t(Operator::ffn)]       // 1e9 bytes of panels per second; 0: not known
#pragma once

#include <array>
#include <span>
#include <vector>

#include "machine/profile.h"
#include "program/program.h"

namespace ridge {

struct FormatRoofs {
  double whole = 0;
  std::array<double, kOperators> of{};
};

// Of one decode pass, all threads together: the rates are those of one core. 0 where a type's rate is not known.
FormatRoofs format_roofs(const Program& program, TensorId head, std::span<const FormatPoint> rates, int threads);

// The rates that a measurement may have missed: as far above each as its median lies below, at least a tenth. Loops of
// one core by its CPU time and passes of all cores by the clock differ by that much without anything being wrong.
std::vector<FormatPoint> upper_rates(std::span<const FormatPoint> rates);

}  // namespace ridge
