// Quantising, norms, activations, rope and cache stores: simd/vector.h with the registers of this ISA.

#include "kernels/simd/vector.h"

#include "kernels/avx2/vec.h"
#include "kernels/entries.h"

namespace ridge::avx2 {
namespace {
using Kernel = simd::Vector<Vec>;
}  // namespace

const KernelEntry kVectorEntries[] = {
    {Op::quantize, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::quantize), "avx2"},
    {Op::rms_norm, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::rms_norm), "avx2"},
    {Op::add, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::add), "avx2"},
    {Op::scale, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::scale), "avx2"},
    {Op::swiglu, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::swiglu), "avx2"},
    {Op::geglu, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::geglu), "avx2"},
    {Op::softcap, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::softcap), "avx2"},
    {Op::layer_norm, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::layer_norm), "avx2"},
    {Op::gelu, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::gelu), "avx2"},
    {Op::add_scaled, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::add_scaled), "avx2"},
    {Op::rope_norm, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::rope_norm), "avx2"},
    {Op::rope_neox, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::rope_neox), "avx2"},
    {Op::store_key_f16, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::store_key_f16), "avx2"},
    {Op::store_key_f32, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::store_key_f32), "avx2"},
    {Op::store_value_f16, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::store_value_f16), "avx2"},
    {Op::store_value_f32, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::store_value_f32), "avx2"},
};
const size_t kVectorCount = sizeof(kVectorEntries) / sizeof(kVectorEntries[0]);

}  // namespace ridge::avx2
