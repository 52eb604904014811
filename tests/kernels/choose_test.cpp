#include "kernels/choose.h"

#include <set>

#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

TEST(KernelList, HasAScalarKernelForEveryOperationAndType) {
  const KernelChoice choice = choose_kernels({.isa = Isa::scalar}).value();
  for (const TypeInfo& info : all_types()) {
    const size_t slot = static_cast<size_t>(info.type);
    EXPECT_NE(choice.kernels.matmul_float[slot], nullptr) << info.name;
    EXPECT_NE(choice.kernels.pack[slot], nullptr) << info.name;
    EXPECT_EQ(choice.kernels.matmul_q8[slot] != nullptr, !info.is_float) << info.name;
  }
  EXPECT_NE(choice.kernels.soften, nullptr);
}

TEST(KernelList, IsOrderedFromBestToReference) {
  std::set<std::pair<Op, Type>> finished;  // has had its scalar kernel
  for (const Kernel& kernel : kernel_list()) {
    EXPECT_FALSE(finished.contains({kernel.op, kernel.type})) << kernel.name << " comes after the scalar kernel";
    if (kernel.isa == Isa::scalar) finished.insert({kernel.op, kernel.type});
    EXPECT_TRUE(depends_on_type(kernel.op) || kernel.type == Type::F32) << kernel.name;
    EXPECT_EQ(kernel.needs == 0, kernel.isa == Isa::scalar) << kernel.name;
  }
}

TEST(KernelList, NamesTellVariantsApart) {
  std::set<std::string> names;
  for (const Kernel& kernel : kernel_list()) {
    const std::string name = kernel.name;
    EXPECT_NE(name.find(name_of(kernel.isa)), std::string::npos) << name;
    EXPECT_TRUE(names.insert(describe(kernel.op, kernel.type) + name).second) << name << " twice";
  }
}

TEST(ChooseKernels, ScalarUsesNothingElse) {
  const KernelChoice choice = choose_kernels({.isa = Isa::scalar}).value();
  EXPECT_EQ(choice.kernels.isa, Isa::scalar);
  EXPECT_EQ(choice.kernels.attention, test::reference<AttentionFn>(Op::attention));
  EXPECT_EQ(choice.kernels.quantize, test::reference<QuantizeFn>(Op::quantize));
}

TEST(ChooseKernels, ACpuWithoutAnythingGetsScalar) {
  const KernelChoice choice = choose_kernels({}, kNoFeatures).value();
  EXPECT_EQ(choice.kernels.isa, Isa::scalar);
  for (const std::string& reason : choice.reasons) {
    EXPECT_NE(reason.find("scalar"), std::string::npos) << reason;
    EXPECT_EQ(reason.find('\n'), std::string::npos);
  }
}

#if defined(__x86_64__)

TEST(ChooseKernels, TakesTheBestTheFeaturesAllow) {
  EXPECT_EQ(choose_kernels({}, kAvx2Fma).value().kernels.isa, Isa::avx2);
  EXPECT_EQ(choose_kernels({}, kAvx2Fma | kAvx512 | kAvx512Vnni).value().kernels.isa, Isa::avx512);
  EXPECT_EQ(choose_kernels({.isa = Isa::avx2}, kAvx2Fma | kAvx512 | kAvx512Vnni).value().kernels.isa, Isa::avx2);
}

TEST(ChooseKernels, SaysWhatWasPassedOver) {
  const KernelChoice choice = choose_kernels({}, kAvx2Fma).value();
  bool found = false;
  for (const std::string& reason : choice.reasons) {
    found = found || reason == "rms_norm: avx2 (avx512: this CPU lacks avx512)";
  }
  EXPECT_TRUE(found) << choice.reasons.front();

  const KernelChoice limited = choose_kernels({.isa = Isa::scalar}, kAvx2Fma).value();
  found = false;
  for (const std::string& reason : limited.reasons) {
    found = found || reason == "rms_norm: scalar (avx512: --isa scalar; avx2: --isa scalar)";
  }
  EXPECT_TRUE(found) << limited.reasons.front();
}

TEST(ChooseKernels, WhatTheCpuLacksIsAUsageError) {
  const auto result = choose_kernels({.isa = Isa::avx512}, kAvx2Fma);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_NE(result.error().message.find("lacks avx512"), std::string::npos) << result.error().message;
}

TEST(ChooseKernels, WhatTheBuildLacksIsAUsageError) {
  const auto result = choose_kernels({.isa = Isa::neon}, kAvx2Fma);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_NE(result.error().message.find("scalar, avx2, avx512"), std::string::npos) << result.error().message;
}

#elif defined(__aarch64__)

TEST(ChooseKernels, TakesTheBestProductsTheFeaturesAllow) {
  const auto products = [](CpuFeatures features) {
    const KernelChoice choice = choose_kernels({}, features).value();
    EXPECT_EQ(choice.kernels.isa, Isa::neon);
    for (const std::string& reason : choice.reasons) {
      if (reason.starts_with("matmul_q8 Q4_0: ")) return reason.substr(reason.find(": ") + 2);
    }
    return std::string();
  };
  EXPECT_EQ(products(kNeon | kNeonDot | kNeonI8mm), "neon i8mm");
  EXPECT_EQ(products(kNeon | kNeonDot), "neon dotprod (neon i8mm: this CPU lacks neon-i8mm)");
  EXPECT_EQ(products(kNeon),
            "neon (neon i8mm: this CPU lacks neon-dot, neon-i8mm; neon dotprod: this CPU lacks neon-dot)");
}

TEST(ChooseKernels, WhatTheBuildLacksIsAUsageError) {
  const auto result = choose_kernels({.isa = Isa::avx2}, kNeon);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_NE(result.error().message.find("which has scalar, neon"), std::string::npos) << result.error().message;
}

#endif

TEST(ChooseKernels, IsaNames) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon})
    EXPECT_EQ(parse_isa(name_of(isa)).value(), isa);
  const auto result = parse_isa("sse9");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_NE(result.error().message.find("'sse9'"), std::string::npos);
}

}  // namespace
}  // namespace ridge
