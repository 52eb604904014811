// Attention: simd/attention.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/avx512/vec.h"
#include "kernels/entries.h"

namespace ridge::avx512 {

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Attention<Vec>::attention), "avx512"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::avx512
