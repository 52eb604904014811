// The entries of the VNNI kernels (matmul_q8.h).
#include "kernels/avx512/matmul_q8.h"

#include "kernels/avx512/low_bit_tiles.h"
#include "kernels/entries.h"

namespace ridge::avx512 {

#define RIDGE_ENTRY(type)                                                                                             \
  {                                                                                                                   \
    Op::matmul_q8, Isa::avx512, Type::type, kBitAvx2Fma | kBitAvx512 | kBitAvx512Vnni, RIDGE_KERNEL(matmul_q8<type>), \
        "avx512 vnni"                                                                                                 \
  }

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_ENTRY(Q4_0),    RIDGE_ENTRY(Q4_1),   RIDGE_ENTRY(Q5_0),  RIDGE_ENTRY(Q5_1),    RIDGE_ENTRY(Q8_0),
    RIDGE_ENTRY(Q2_K),    RIDGE_ENTRY(Q3_K),   RIDGE_ENTRY(Q4_K),  RIDGE_ENTRY(Q5_K),    RIDGE_ENTRY(Q6_K),
    RIDGE_ENTRY(IQ4_NL),  RIDGE_ENTRY(IQ4_XS), RIDGE_ENTRY(MXFP4), RIDGE_ENTRY(IQ1_S),   RIDGE_ENTRY(IQ1_M),
    RIDGE_ENTRY(IQ2_XXS), RIDGE_ENTRY(IQ2_XS), RIDGE_ENTRY(IQ2_S), RIDGE_ENTRY(IQ3_XXS), RIDGE_ENTRY(IQ3_S),
    RIDGE_ENTRY(TQ1_0),   RIDGE_ENTRY(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::avx512
