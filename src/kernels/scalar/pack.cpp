// The reference packer of every type, as tensor/ has it.

#include "kernels/entries.h"

namespace ridge::scalar {

const KernelEntry kPackEntries[] = {
    {Op::pack, Isa::scalar, Type::F32, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::F16, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::BF16, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q4_0, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q4_1, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q5_0, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q5_1, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q8_0, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q2_K, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q3_K, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q4_K, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q5_K, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::Q6_K, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ4_NL, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ4_XS, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::MXFP4, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ1_S, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ1_M, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ2_XXS, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ2_XS, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ2_S, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ3_XXS, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::IQ3_S, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::TQ1_0, 0, RIDGE_KERNEL(pack_panel), "scalar"},
    {Op::pack, Isa::scalar, Type::TQ2_0, 0, RIDGE_KERNEL(pack_panel), "scalar"},
};
const size_t kPackCount = sizeof(kPackEntries) / sizeof(kPackEntries[0]);

}  // namespace ridge::scalar
