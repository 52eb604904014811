// Which kernels run on this CPU, and why. See kernels.h for the operations and the contract.
//
//   KernelChoice choice = RIDGE_TRY(choose_kernels({}));        // the best this CPU has
//   choice.kernels.matmul_q8[size_t(Type::Q4_0)](args);
//   for (const auto& line : choice.reasons) note(line);         // --explain: "matmul_q8 Q4_0: avx2 (avx512 vnni: …)"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/entries.h"
#include "kernels/kernels.h"
#include "machine/cpu.h"

namespace ridge {

using Kernel = KernelEntry;

// Every kernel compiled into this binary, best first within each (op, type); the scalar one comes last.
std::span<const Kernel> kernel_list();

const char* name_of(Op op);
const char* name_of(Isa isa);
// "matmul_q8 Q4_0", or the operation alone where no weight type is involved.
std::string describe(Op op, Type type);
// Whether the operation depends on a weight type: matmul_q8, matmul_float, pack.
bool depends_on_type(Op op);
// "scalar", "avx2", "avx512", "neon"; a usage error lists what there is.
Result<Isa> parse_isa(std::string_view name);

struct KernelRequest {
  std::optional<Isa> isa = std::nullopt;  // at most this ISA; a usage error if the CPU lacks it
  bool fast = false;  // kernels outside the arithmetic contract too, where they measure faster than those inside it
};

struct KernelChoice {
  Kernels kernels;
  std::vector<std::string> reasons;  // one line per operation: what runs, and why nothing better does
};

Result<KernelChoice> choose_kernels(const KernelRequest& request);
// The same for a CPU with these features, for tests and for questions about other CPUs. Its kernels may not run here.
Result<KernelChoice> choose_kernels(const KernelRequest& request, CpuFeatures features);

}  // namespace ridge
