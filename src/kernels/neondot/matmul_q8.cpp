// Matrix products with int8 activations for CPUs with SDOT (Armv8.2 dotprod: Cortex-A55, A76 and later, all of
// Apple's).

#include "kernels/entries.h"
#include "kernels/neon/dot_product.h"

namespace ridge::neondot {
namespace {

template <class Format>
void matmul(const MatmulArgs& args) {
  neon::MatmulQ8<Format, neon::DotProduct>::matmul(args);
}

}  // namespace

#define RIDGE_NEONDOT_Q8(type) \
  { Op::matmul_q8, Isa::neon, Type::type, kBitNeon | kBitNeonDot, RIDGE_KERNEL(matmul<neon::type>), "neon dotprod" }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_NEONDOT_Q8(Q4_0),   RIDGE_NEONDOT_Q8(Q4_1), RIDGE_NEONDOT_Q8(Q5_0),  RIDGE_NEONDOT_Q8(Q5_1),
    RIDGE_NEONDOT_Q8(Q8_0),   RIDGE_NEONDOT_Q8(Q2_K), RIDGE_NEONDOT_Q8(Q3_K),  RIDGE_NEONDOT_Q8(Q4_K),
    RIDGE_NEONDOT_Q8(Q5_K),   RIDGE_NEONDOT_Q8(Q6_K), RIDGE_NEONDOT_Q8(MXFP4), RIDGE_NEONDOT_Q8(IQ4_NL),
    RIDGE_NEONDOT_Q8(IQ4_XS),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::neondot
