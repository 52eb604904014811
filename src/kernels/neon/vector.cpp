// Quantising, norms, activations, rope and cache stores: simd/vector.h with the registers of this ISA.

#include "kernels/simd/vector.h"

#include "kernels/entries.h"
#include "kernels/neon/vec.h"

namespace ridge::neon {
namespace {
using Kernel = simd::Vector<Vec>;
}  // namespace

const KernelEntry kVectorEntries[] = {
    {Op::quantize, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::quantize), "neon"},
    {Op::rms_norm, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::rms_norm), "neon"},
    {Op::add, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::add), "neon"},
    {Op::scale, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::scale), "neon"},
    {Op::swiglu, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::swiglu), "neon"},
    {Op::geglu, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::geglu), "neon"},
    {Op::softcap, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::softcap), "neon"},
    {Op::layer_norm, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::layer_norm), "neon"},
    {Op::gelu, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::gelu), "neon"},
    {Op::add_scaled, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::add_scaled), "neon"},
    {Op::rope_norm, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::rope_norm), "neon"},
    {Op::rope_neox, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::rope_neox), "neon"},
    {Op::store_key_f16, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::store_key_f16), "neon"},
    {Op::store_key_f32, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::store_key_f32), "neon"},
    {Op::store_value_f16, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::store_value_f16), "neon"},
    {Op::store_value_f32, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::store_value_f32), "neon"},
};
const size_t kVectorCount = sizeof(kVectorEntries) / sizeof(kVectorEntries[0]);

}  // namespace ridge::neon
