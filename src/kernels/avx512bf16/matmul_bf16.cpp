// AVX-512 BF16: BF16 weights under `--numerics fast`.
#include "kernels/avx512bf16/dot.h"
#include "kernels/entries.h"

namespace ridge::avx512bf16 {
namespace {

void matmul(const MatmulArgs& args) { fast::Bf16Product<Dot>::matmul(args); }

}  // namespace

const KernelEntry kMatmulBf16Entries[] = {{Op::matmul_float, Isa::avx512, Type::BF16,
                                           kBitAvx2Fma | kBitAvx512 | kBitAvx512Bf16, RIDGE_KERNEL(matmul),
                                           "avx512 bf16", true}};
const size_t kMatmulBf16Count = sizeof(kMatmulBf16Entries) / sizeof(kMatmulBf16Entries[0]);

}  // namespace ridge::avx512bf16
