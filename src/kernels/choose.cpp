#include "kernels/choose.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "kernels/measure.h"
#include "tensor/types.h"

namespace ridge {
namespace {

constexpr auto kOpNames = std::to_array<const char*>({
    "matmul_q8",
    "matmul_float",
    "pack",
    "quantize",
    "rms_norm",
    "add",
    "scale",
    "swiglu",
    "geglu",
    "softcap",
    "rope_norm",
    "rope_neox",
    "attention",
    "attention_merge",
    "store_key_f16",
    "store_key_f32",
    "store_key_bf16",
    "store_key_q8_0",
    "store_value_f16",
    "store_value_f32",
    "store_value_bf16",
    "store_value_q8_0",
    "transpose",
    "soften",
    "merge_chunk",
    "layer_norm",
    "gelu",
    "add_scaled",
    "pack_activations",
});
static_assert(kOpNames.size() == static_cast<size_t>(Op::pack_activations) + 1, "one name per operation");

struct IsaRow {
  Isa isa;
  const char* name;
  CpuFeatures needs;  // what a CPU must have for `--isa NAME`
};
constexpr IsaRow kIsas[] = {
    {Isa::scalar, "scalar", kNoFeatures},
    {Isa::avx2, "avx2", kAvx2Fma},
    {Isa::avx512, "avx512", kAvx512},
    {Isa::neon, "neon", kNeon},
};

const IsaRow& row_of(Isa isa) {
  for (const IsaRow& row : kIsas) {
    if (row.isa == isa) return row;
  }
  RIDGE_CHECK(false, "every ISA has a row");
  return kIsas[0];
}

bool compiled_in(Isa isa) {
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.isa == isa) return true;
  }
  return false;
}

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string compiled_isas() {
  std::vector<std::string> names;
  for (const IsaRow& row : kIsas) {
    if (compiled_in(row.isa)) names.emplace_back(row.name);
  }
  return join(names, ", ");
}

// Why a kernel is passed over; empty if it is not.
std::string refusal(const Kernel& kernel, const KernelRequest& request, CpuFeatures features) {
  if (request.isa && kernel.isa > *request.isa) {
    return fmt::format("{}: --isa {}", kernel.name, name_of(*request.isa));
  }
  const CpuFeatures missing{kernel.needs & ~features.bits};
  if (missing.bits == 0)
    return kernel.fast && !request.fast ? fmt::format("{}: --numerics fast only", kernel.name) : "";
  return fmt::format("{}: this CPU lacks {}", kernel.name, join(feature_names(missing), ", "));
}

// The kernel to use: the first of the list that may run, or the fastest of those that may if some are outside the
// contract. Adds a line that says why the others are not used.
const Kernel* pick(Op op, Type type, const KernelRequest& request, CpuFeatures features,
                   std::vector<std::string>& reasons) {
  std::vector<std::string> refused;
  std::vector<const Kernel*> able;
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op != op || kernel.type != type) continue;
    const std::string why = refusal(kernel, request, features);
    if (!why.empty()) {
      refused.push_back(why);
      continue;
    }
    able.push_back(&kernel);
    if (!kernel.fast) break;  // the best inside the contract; what follows is slower
  }
  if (able.empty()) return nullptr;
  const Kernel* chosen = able[0];
  if (able.size() > 1 && cpu_info().features.has_all(features)) {
    chosen = fastest_matmul(able);
    for (const Kernel* kernel : able) {
      if (kernel != chosen) refused.push_back(fmt::format("{}: measured slower here", kernel->name));
    }
  }
  const std::string rest = refused.empty() ? "" : fmt::format(" ({})", join(refused, "; "));
  reasons.push_back(fmt::format("{}: {}{}", describe(op, type), chosen->name, rest));
  return chosen;
}

class TableBuilder {
 public:
  TableBuilder(const KernelRequest& request, CpuFeatures features) : request_(request), features_(features) {}

  KernelChoice build() {
    Kernels& k = choice_.kernels;
    k.isa = Isa::scalar;
    for (const TypeInfo& info : all_types()) {
      const size_t slot = static_cast<size_t>(info.type);
      if (!info.is_float) set(Op::matmul_q8, info.type, k.matmul_q8[slot]);
      set(Op::matmul_float, info.type, k.matmul_float[slot]);
      set(Op::pack, info.type, k.pack[slot]);
    }
    set(Op::quantize, k.quantize);
    set(Op::rms_norm, k.rms_norm);
    set(Op::add, k.add);
    set(Op::scale, k.scale);
    set(Op::swiglu, k.swiglu);
    set(Op::geglu, k.geglu);
    set(Op::softcap, k.softcap);
    set(Op::rope_norm, k.rope_norm);
    set(Op::rope_neox, k.rope_neox);
    set(Op::attention, k.attention);
    set(Op::attention_merge, k.attention_merge);
    const auto by_type = [](auto& table, KvType type) -> auto& { return table[static_cast<size_t>(type)]; };
    set(Op::store_key_f16, by_type(k.store_key, KvType::f16));
    set(Op::store_value_f16, by_type(k.store_value, KvType::f16));
    set(Op::store_key_f32, by_type(k.store_key, KvType::f32));
    set(Op::store_value_f32, by_type(k.store_value, KvType::f32));
    set(Op::store_key_bf16, by_type(k.store_key, KvType::bf16));
    set(Op::store_value_bf16, by_type(k.store_value, KvType::bf16));
    set(Op::store_key_q8_0, by_type(k.store_key, KvType::q8_0));
    set(Op::store_value_q8_0, by_type(k.store_value, KvType::q8_0));
    set(Op::transpose, k.transpose);
    set(Op::soften, k.soften);
    set(Op::merge_chunk, k.merge_chunk);
    set(Op::layer_norm, k.layer_norm);
    set(Op::gelu, k.gelu);
    set(Op::add_scaled, k.add_scaled);
    // The reference serves tests alone: an ISA whose products read packed activations has a kernel of its own.
    if (const Kernel* kernel = set(Op::pack_activations, k.pack_activations); kernel->isa == Isa::scalar)
      k.pack_activations = nullptr;
    return std::move(choice_);
  }

 private:
  template <class Function>
  const Kernel* set(Op op, Type type, Function& slot) {
    const Kernel* kernel = pick(op, type, request_, features_, choice_.reasons);
    RIDGE_CHECK(kernel != nullptr, "every operation has a scalar kernel for every type");
    slot = reinterpret_cast<Function>(kernel->function);
    if (kernel->isa > choice_.kernels.isa) choice_.kernels.isa = kernel->isa;
    return kernel;
  }
  template <class Function>
  const Kernel* set(Op op, Function& slot) {
    return set(op, Type::F32, slot);
  }

  const KernelRequest& request_;
  CpuFeatures features_;
  KernelChoice choice_{};
};

}  // namespace

const char* name_of(Op op) { return kOpNames[static_cast<size_t>(op)]; }

const char* name_of(Isa isa) { return row_of(isa).name; }

bool depends_on_type(Op op) { return op == Op::matmul_q8 || op == Op::matmul_float || op == Op::pack; }

std::string describe(Op op, Type type) {
  if (!depends_on_type(op)) return name_of(op);
  return fmt::format("{} {}", name_of(op), type_info(type).name);
}

Result<Isa> parse_isa(std::string_view name) {
  for (const IsaRow& row : kIsas) {
    if (name == row.name) return row.isa;
  }
  return usage_error(fmt::format("--isa '{}': no such instruction set; this build has {}", name, compiled_isas()));
}

Result<KernelChoice> choose_kernels(const KernelRequest& request) {
  return choose_kernels(request, cpu_info().features);
}

Result<KernelChoice> choose_kernels(const KernelRequest& request, CpuFeatures features) {
  if (request.isa) {
    const IsaRow& row = row_of(*request.isa);
    if (!compiled_in(row.isa)) {
      return usage_error(fmt::format("--isa {}: not in this build, which has {}", row.name, compiled_isas()));
    }
    if (!features.has_all(row.needs)) {
      return usage_error(
          fmt::format("--isa {}: this CPU or its operating system lacks {}; use --isa scalar, or no --isa", row.name,
                      join(feature_names({row.needs.bits & ~features.bits}), ", ")));
    }
  }
  return TableBuilder(request, features).build();
}

}  // namespace ridge
