// Softmax rows and merging for attention over latents: simd/latent.h with the registers of this ISA.

#include "kernels/simd/latent.h"

#include "kernels/entries.h"
#include "kernels/neon/vec.h"

namespace ridge::neon {

const KernelEntry kLatentEntries[] = {
    {Op::soften, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(simd::Latent<Vec>::soften), "neon"},
    {Op::merge_chunk, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(simd::Latent<Vec>::merge_chunk), "neon"},
};
const size_t kLatentCount = sizeof(kLatentEntries) / sizeof(kLatentEntries[0]);

}  // namespace ridge::neon
