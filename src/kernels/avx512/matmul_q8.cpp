// The entries of the VNNI kernels (matmul_q8.h).
#include "kernels/avx512/matmul_q8.h"

#include "kernels/avx512/low_bit_tiles.h"
#include "kernels/entries.h"

namespace ridge::avx512 {

#define RIDGE_ENTRIES(type)                                                                     \
  {Op::matmul_q8,                                                                               \
   Isa::avx512,                                                                                 \
   Type::type,                                                                                  \
   kVnni | kBitAmdPrefetch,                                                                     \
   RIDGE_KERNEL((matmul_q8<type, Fetch::in_order>)),                                            \
   "avx512 vnni in order"},                                                                     \
  {                                                                                             \
    Op::matmul_q8, Isa::avx512, Type::type, kVnni, RIDGE_KERNEL(matmul_q8<type>), "avx512 vnni" \
  }

constexpr uint32_t kVnni = kBitAvx2Fma | kBitAvx512 | kBitAvx512Vnni;

const KernelEntry kMatmulQ8Entries[] = {
    RIDGE_ENTRIES(Q4_0),    RIDGE_ENTRIES(Q4_1),   RIDGE_ENTRIES(Q5_0),  RIDGE_ENTRIES(Q5_1),    RIDGE_ENTRIES(Q8_0),
    RIDGE_ENTRIES(Q2_K),    RIDGE_ENTRIES(Q3_K),   RIDGE_ENTRIES(Q4_K),  RIDGE_ENTRIES(Q5_K),    RIDGE_ENTRIES(Q6_K),
    RIDGE_ENTRIES(IQ4_NL),  RIDGE_ENTRIES(IQ4_XS), RIDGE_ENTRIES(MXFP4), RIDGE_ENTRIES(IQ1_S),   RIDGE_ENTRIES(IQ1_M),
    RIDGE_ENTRIES(IQ2_XXS), RIDGE_ENTRIES(IQ2_XS), RIDGE_ENTRIES(IQ2_S), RIDGE_ENTRIES(IQ3_XXS), RIDGE_ENTRIES(IQ3_S),
    RIDGE_ENTRIES(TQ1_0),   RIDGE_ENTRIES(TQ2_0),
};
const size_t kMatmulQ8Count = sizeof(kMatmulQ8Entries) / sizeof(kMatmulQ8Entries[0]);

}  // namespace ridge::avx512
