// Attention and its cache stores: simd/attention.h and simd/kv_stores.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/avx2/vec.h"
#include "kernels/entries.h"
#include "kernels/simd/kv_stores.h"

namespace ridge::avx2 {
namespace {
using Kernel = simd::Attention<Vec>;
using Stores = simd::KvStores<Vec>;
}  // namespace

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::attention), "avx2"},
    {Op::attention_merge, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Kernel::merge), "avx2"},
    {Op::store_key_bf16, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Stores::store_key_bf16), "avx2"},
    {Op::store_key_q8_0, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Stores::store_key_q8_0), "avx2"},
    {Op::store_value_bf16, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Stores::store_value_bf16), "avx2"},
    {Op::store_value_q8_0, Isa::avx2, Type::F32, kBitAvx2Fma, RIDGE_KERNEL(Stores::store_value_q8_0), "avx2"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::avx2
