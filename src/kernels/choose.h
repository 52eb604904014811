// Which kernels run on this CPU, and why. See kernels.h for the operations and the contract.
//
//   KernelChoice choice = RIDGE_TRY(choose_kernels({}));        // the best this CPU has
//   choice.kernels.matmul_q8[size_t(Type::Q4_0)](args);
//   for (const auto& line : choice.reasons) note(line);         // --explain: "matmul_q8 Q4_0: avx512 (vnni)"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/kernels.h"
#include "machine/cpu.h"

namespace ridge {

enum class Op : uint8_t {
  matmul_q8, matmul_float, pack, quantize, rms_norm, add, scale, swiglu, geglu, softcap, rope_norm, rope_neox, attention,
  store_key_f16, store_key_f32, store_value_f16, store_value_f32, exp_sum,
};

// One entry of the list. `function` is cast to the operation's type by the table builder.
struct Kernel {
  Op op;
  Isa isa;
  Type type;                 // for operations that depend on the weight type, else Type::F32
  CpuFeatures needs;         // all of these must be present
  void (*function)();
  const char* name;
};

std::span<const Kernel> kernel_list();      // best first within each (op, type)
const char* name_of(Op op);
const char* name_of(Isa isa);
Result<Isa> parse_isa(std::string_view name);   // "scalar", "avx2", "avx512", "neon"; usage error lists what there is

struct KernelRequest {
  std::optional<Isa> isa;    // at most this ISA; a usage error if the CPU lacks it
};

struct KernelChoice {
  Kernels kernels;
  std::vector<std::string> reasons;
};

Result<KernelChoice> choose_kernels(const KernelRequest& request);

}  // namespace ridge
