// What was trained, replayed and simulated to judge the claims of a document on weight caching (docs/claims.md): plain
// data, filled by gather.h and by whoever runs the trainings.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

// A mean with the half width of its 95 % interval (Student's t; 0 of a single value, whose interval is not known).
struct Estimate {
  double mean = 0, half = 0;
  size_t values = 0;
};
// Of at least one value.
Estimate estimate(const std::vector<double>& values);

// How a token's weights are brought to the multipliers; `resting`: with pins, too.
enum class Method : uint8_t { int8, int8_pins, int8_resting, four, four_pins, four_resting };
inline constexpr size_t kMethods = 6;
std::string_view name_of(Method method);  // "int8", "int8, pins", "int8, resting", …
// The one with as many bits and nothing else.
Method plain(Method method);

// A token of a model on a machine of tiers.
struct MethodCost {
  double dram_bytes = 0, seconds = 0, joules = 0;
};
struct MachineCase {
  std::string machine, model;
  bool paper_model = false;   // one that the document names
  double pinned_at_most = 0;  // C/W with int8 weights
  std::array<MethodCost, kMethods> methods{};
  bool resting = false;  // whether a student was there for the resting methods
  // The int8 pass without reading ahead and with a single buffer: what double buffering is compared with.
  MethodCost serial;
  double busiest_s = 0;  // of the int8 pass: no schedule is faster

  const MethodCost& of(Method method) const { return methods[static_cast<size_t>(method)]; }
};

struct TierRatio {
  std::string machine, tier;
  uint64_t bytes = 0;
  double ratio = 0;  // energy of a byte read from DRAM over one read from this SRAM
};

// A student that was trained, with the seed that made it.
enum class StudentKind : uint8_t { ce, kd, kd_l1 };
inline constexpr size_t kStudentKinds = 3;
std::string_view name_of(StudentKind kind);  // "ReGLU, CE", …
struct Student {
  StudentKind kind = StudentKind::ce;
  uint64_t seed = 0;
  double held_out = 0;  // nats per token
  double sparsity = 0, busiest = 0, touched = 0, dram_cut = 0;
};

// Hit bytes of each policy on the visits of a student, pins and parameters chosen on other text.
struct PolicyHits {
  StudentKind kind = StudentKind::kd_l1;
  uint64_t seed = 0;
  double cache = 0;            // share of the blocks' bytes
  std::vector<double> ratios;  // by Evidence::policies
};

// Loss on held-out text with weights of fewer bits, as a share of the loss with F32.
struct BitsLoss {
  std::string model;
  uint64_t weights = 0;
  double f32 = 0, int8 = 0, four = 0;  // nats per token
};

struct Evidence {
  std::vector<Student> students;
  std::vector<std::string> policies;
  std::vector<PolicyHits> hits;
  std::vector<BitsLoss> bits;
  std::vector<MachineCase> cases;
  std::vector<TierRatio> ratios;
  std::string missing;  // why there are no students; empty if there are
};

}  // namespace ridge
