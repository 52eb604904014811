// Quantising, norms, activations, rope and cache stores: simd/vector.h with the registers of this ISA.

#include "kernels/simd/vector.h"

#include "kernels/avx512/vec.h"
#include "kernels/entries.h"

namespace ridge::avx512 {
namespace {
using Kernel = simd::Vector<Vec>;
}  // namespace

const KernelEntry kVectorEntries[] = {
    {Op::quantize, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::quantize), "avx512"},
    {Op::rms_norm, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::rms_norm), "avx512"},
    {Op::add, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::add), "avx512"},
    {Op::scale, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::scale), "avx512"},
    {Op::swiglu, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::swiglu), "avx512"},
    {Op::geglu, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::geglu), "avx512"},
    {Op::softcap, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::softcap), "avx512"},
    {Op::layer_norm, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::layer_norm), "avx512"},
    {Op::gelu, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::gelu), "avx512"},
    {Op::add_scaled, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::add_scaled), "avx512"},
    {Op::rope_norm, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::rope_norm), "avx512"},
    {Op::rope_neox, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::rope_neox), "avx512"},
    {Op::store_key_f16, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::store_key_f16), "avx512"},
    {Op::store_key_f32, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::store_key_f32), "avx512"},
    {Op::store_value_f16, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::store_value_f16), "avx512"},
    {Op::store_value_f32, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::store_value_f32), "avx512"},
};
const size_t kVectorCount = sizeof(kVectorEntries) / sizeof(kVectorEntries[0]);

}  // namespace ridge::avx512
