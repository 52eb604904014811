// Attention and its cache stores: simd/attention.h and simd/kv_stores.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/entries.h"
#include "kernels/neon/vec.h"
#include "kernels/simd/kv_stores.h"

namespace ridge::neon {
namespace {
using Kernel = simd::Attention<Vec>;
using Stores = simd::KvStores<Vec>;
}  // namespace

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::attention), "neon"},
    {Op::attention_merge, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Kernel::merge), "neon"},
    {Op::store_key_bf16, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Stores::store_key_bf16), "neon"},
    {Op::store_key_q8_0, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Stores::store_key_q8_0), "neon"},
    {Op::store_value_bf16, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Stores::store_value_bf16), "neon"},
    {Op::store_value_q8_0, Isa::neon, Type::F32, kBitNeon, RIDGE_KERNEL(Stores::store_value_q8_0), "neon"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::neon
