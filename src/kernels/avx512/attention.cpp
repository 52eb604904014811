// Attention and its cache stores: simd/attention.h and simd/kv_stores.h with the registers of this ISA.

#include "kernels/simd/attention.h"

#include "kernels/avx512/vec.h"
#include "kernels/entries.h"
#include "kernels/simd/kv_stores.h"

namespace ridge::avx512 {
namespace {
using Kernel = simd::Attention<Vec>;
using Stores = simd::KvStores<Vec>;
}  // namespace

const KernelEntry kAttentionEntries[] = {
    {Op::attention, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::attention), "avx512"},
    {Op::attention_merge, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Kernel::merge), "avx512"},
    {Op::store_key_bf16, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Stores::store_key_bf16), "avx512"},
    {Op::store_key_q8_0, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Stores::store_key_q8_0), "avx512"},
    {Op::store_value_bf16, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Stores::store_value_bf16), "avx512"},
    {Op::store_value_q8_0, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(Stores::store_value_q8_0), "avx512"},
};
const size_t kAttentionCount = sizeof(kAttentionEntries) / sizeof(kAttentionEntries[0]);

}  // namespace ridge::avx512
