// Softmax rows and merging for attention over latents: simd/latent.h with the registers of this ISA.

#include "kernels/simd/latent.h"

#include "kernels/avx2/vec.h"
#include "kernels/entries.h"

namespace ridge::avx2 {

const KernelEntry kLatentEntries[] = {
    {Op::soften, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(simd::Latent<Vec>::soften), "avx2"},
    {Op::merge_chunk, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(simd::Latent<Vec>::merge_chunk), "avx2"},
};
const size_t kLatentCount = sizeof(kLatentEntries) / sizeof(kLatentEntries[0]);

}  // namespace ridge::avx2
