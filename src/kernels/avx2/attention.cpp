// Attention: simd/attention.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/avx2/vec.h"
#include "kernels/entries.h"

namespace ridge::avx2 {

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(simd::Attention<Vec>::attention), "avx2"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::avx2
