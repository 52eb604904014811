// Attention: simd/attention.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/entries.h"
#include "kernels/neon/vec.h"

namespace ridge::neon {

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(simd::Attention<Vec>::attention), "neon"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::neon
