// Softmax rows and merging for attention over latents: simd/latent.h with the registers of this ISA.

#include "kernels/simd/latent.h"

#include "kernels/avx512/vec.h"
#include "kernels/entries.h"

namespace ridge::avx512 {

const KernelEntry kLatentEntries[] = {
    {Op::soften, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Latent<Vec>::soften), "avx512"},
    {Op::merge_chunk, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(simd::Latent<Vec>::merge_chunk), "avx512"},
};
const size_t kLatentCount = sizeof(kLatentEntries) / sizeof(kLatentEntries[0]);

}  // namespace ridge::avx512
