// The one list of kernels: what every file of every ISA offers, best first.

#include <vector>

#include "base/check.h"
#include "kernels/choose.h"

namespace ridge {
namespace {

#define RIDGE_ENTRIES(isa, file) std::span<const Kernel>(isa::k##file##Entries, isa::k##file##Count)

// Best first: the order of this list is the order of preference.
std::vector<std::span<const Kernel>> offers() {
  return {
#if defined(RIDGE_ISA_amx)
    RIDGE_ENTRIES(amx, MatmulBf16), RIDGE_ENTRIES(amx, MatmulQ8),
#endif
#if defined(RIDGE_ISA_avx512bf16)
        RIDGE_ENTRIES(avx512bf16, MatmulBf16),
#endif
#if defined(RIDGE_ISA_avx512)
        RIDGE_ENTRIES(avx512, MatmulQ8), RIDGE_ENTRIES(avx512, MatmulFloat), RIDGE_ENTRIES(avx512, Pack),
        RIDGE_ENTRIES(avx512, Vector), RIDGE_ENTRIES(avx512, Attention), RIDGE_ENTRIES(avx512, Latent),
        RIDGE_ENTRIES(avx512, Transpose),
#endif
#if defined(RIDGE_ISA_avxvnni)
        RIDGE_ENTRIES(avxvnni, MatmulQ8),
#endif
#if defined(RIDGE_ISA_avx2)
        RIDGE_ENTRIES(avx2, MatmulQ8), RIDGE_ENTRIES(avx2, MatmulFloat), RIDGE_ENTRIES(avx2, Pack),
        RIDGE_ENTRIES(avx2, Vector), RIDGE_ENTRIES(avx2, Attention), RIDGE_ENTRIES(avx2, Latent),
        RIDGE_ENTRIES(avx2, Transpose),
#endif
#if defined(RIDGE_ISA_neoni8mm)
        RIDGE_ENTRIES(neoni8mm, MatmulQ8),
#endif
#if defined(RIDGE_ISA_neondot)
        RIDGE_ENTRIES(neondot, MatmulQ8),
#endif
#if defined(RIDGE_ISA_neon)
        RIDGE_ENTRIES(neon, MatmulQ8), RIDGE_ENTRIES(neon, MatmulFloat), RIDGE_ENTRIES(neon, Pack),
        RIDGE_ENTRIES(neon, Vector), RIDGE_ENTRIES(neon, Attention), RIDGE_ENTRIES(neon, Latent),
#endif
        RIDGE_ENTRIES(scalar, MatmulQ8), RIDGE_ENTRIES(scalar, MatmulFloat), RIDGE_ENTRIES(scalar, Pack),
        RIDGE_ENTRIES(scalar, Vector), RIDGE_ENTRIES(scalar, Attention), RIDGE_ENTRIES(scalar, Latent),
  };
}

#undef RIDGE_ENTRIES

std::vector<Kernel> build_list() {
  std::vector<Kernel> list;
  for (const std::span<const Kernel> offer : offers()) {
    for (const Kernel& kernel : offer) {
      RIDGE_CHECK(kernel.function != nullptr && kernel.name != nullptr, "a kernel entry must be complete");
      RIDGE_CHECK(static_cast<size_t>(kernel.type) < kTypeSlots, "kTypeSlots must cover every type");
      list.push_back(kernel);
    }
  }
  return list;
}

}  // namespace

std::span<const Kernel> kernel_list() {
  static const std::vector<Kernel> list = build_list();
  return list;
}

}  // namespace ridge
