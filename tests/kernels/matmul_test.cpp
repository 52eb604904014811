// Every matmul and pack kernel of the list against the scalar one, byte for byte; the scalar matmul against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/choose.h"
#include "machine/cpu.h"
#include "tensor/panel.h"
#include "tests/kernels/kernel_cases.h"
#include "tests/tensor/random_blocks.h"

namespace ridge {
namespace {

using test::for_each_kernel;
using test::Random;
using test::reference;
using test::same_bytes;

struct alignas(64) Line {
  uint8_t bytes[64];
};

constexpr size_t kMaxTokens = 137;  // more than any kernel keeps in flight at once
constexpr float kUntouched = 12345.0f;

// Weights in panels and activations of one shape.
struct Problem {
  Type type;
  size_t rows, cols;
  std::vector<uint8_t> file;  // rows in file layout
  std::vector<Line> panels;
  std::vector<float> x;   // [max_tokens, cols]
  std::vector<int8_t> q;  // [max_tokens, q_stride]
  std::vector<float> d;   // [max_tokens, d_stride]
  std::vector<int32_t> sums;
  size_t q_stride, d_stride;

  Problem(Type type_in, size_t rows_in, size_t cols_in, uint64_t seed, size_t max_tokens = kMaxTokens)
      : type(type_in), rows(rows_in), cols(cols_in) {
    const size_t stride = row_bytes(type, cols), bytes = panel_bytes(type, cols);
    file = random_rows(type, rows, cols, stride, seed);
    panels.resize(panels_bytes(type, rows, cols) / 64);
    for (size_t r = 0; r < rows; r += kPanelRows) {
      pack_panel({type, file.data() + r * stride, stride, std::min(kPanelRows, rows - r), cols,
                  panels.data()->bytes + r / kPanelRows * bytes});
    }
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    x.resize(max_tokens * cols);
    for (float& value : x) value = normal(rng);
    q_stride = (cols + 63) / 64 * 64;
    d_stride = (cols + 31) / 32 + 1;
    q.resize(max_tokens * q_stride);
    d.resize(max_tokens * d_stride);
    sums.resize(2 * d.size());
    for (size_t t = 0; t < max_tokens; ++t) {
      for (size_t b = 0; b < cols / 32; ++b) random_activations(rng, t, b);
    }
  }

  void random_activations(std::mt19937_64& rng, size_t t, size_t b) {
    const uint64_t kind = rng() % 6;
    d[t * d_stride + b] = kind == 0 ? 0.0f : std::normal_distribution<float>()(rng);
    for (size_t i = 0; i < 32; ++i) {
      const int value = kind == 0 ? 0 : kind == 1 ? 127 : kind == 2 ? -127 : static_cast<int>(rng() % 255) - 127;
      q[t * q_stride + 32 * b + i] = static_cast<int8_t>(value);
      sums[2 * (t * d_stride + b) + i / 16] += value;
    }
  }

  // Outputs [tokens, rows + 3]; the three extra columns must stay untouched.
  std::vector<float> run(const Kernel& kernel, size_t tokens, const float* x_packed = nullptr) {
    std::vector<float> out(tokens * (rows + 3), kUntouched);
    MatmulArgs args = {};
    args.panels = panels.data()->bytes;
    args.rows = rows;
    args.cols = cols;
    args.tokens = tokens;
    args.x = x.data();
    args.x_stride = cols;
    args.x8 = {q.data(), d.data(), sums.data(), q_stride, d_stride};
    args.out = out.data();
    args.out_stride = rows + 3;
    args.x_packed = x_packed;
    reinterpret_cast<MatmulFn>(kernel.function)(args);
    return out;
  }
};

std::vector<Kernel> kernels_of(Op op, Type type) {
  std::vector<Kernel> found;
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op == op && kernel.type == type && !kernel.fast && cpu_info().features.has_all({kernel.needs}))
      found.push_back(kernel);
  }
  return found;
}

Kernel scalar_of(Op op, Type type) {
  for (const Kernel& kernel : kernels_of(op, type)) {
    if (kernel.isa == Isa::scalar) return kernel;
  }
  ADD_FAILURE() << "no scalar kernel for " << type_info(type).name;
  return {};
}

std::string title(const Kernel& kernel, const Problem& problem, size_t tokens) {
  return std::string(type_info(kernel.type).name) + " " + name_of(kernel.isa) + " " + kernel.name + ": " +
         std::to_string(problem.rows) + " x " + std::to_string(problem.cols) + ", tokens " + std::to_string(tokens);
}

// Kernels of `op` equal the scalar one at every number of tokens. The scalar result for many tokens holds those for
// fewer.
void expect_equal_to_scalar(Op op, Type type) {
  const Kernel reference = scalar_of(op, type);
  for (const size_t rows : {16, 17, 48, 100}) {
    for (const size_t cols : test_cols(type)) {
      Problem problem(type, rows, cols, rows * 1000 + cols);
      const std::vector<float> expected = problem.run(reference, 33);
      for (const Kernel& kernel : kernels_of(op, type)) {
        for (const size_t tokens : {1, 2, 3, 5, 8, 12, 13, 33}) {
          const std::vector<float> out = problem.run(kernel, tokens);
          ASSERT_EQ(std::memcmp(out.data(), expected.data(), 4 * out.size()), 0) << title(kernel, problem, tokens);
        }
      }
    }
  }
  const size_t cols = test_cols(type).back();
  Problem problem(type, 19, cols, 3);
  const std::vector<float> expected = problem.run(reference, kMaxTokens);
  for (const Kernel& kernel : kernels_of(op, type)) {
    const std::vector<float> out = problem.run(kernel, kMaxTokens);
    ASSERT_EQ(std::memcmp(out.data(), expected.data(), 4 * out.size()), 0) << title(kernel, problem, kMaxTokens);
  }
}

class MatmulOfType : public testing::TestWithParam<Type> {};

TEST_P(MatmulOfType, Q8EqualsScalar) {
  if (type_info(GetParam()).is_float) GTEST_SKIP() << "float weights take float activations";
  expect_equal_to_scalar(Op::matmul_q8, GetParam());
}

TEST_P(MatmulOfType, FloatEqualsScalar) { expect_equal_to_scalar(Op::matmul_float, GetParam()); }

// As many tokens as fill a round of what is packed for all calls, and twice that.
TEST_P(MatmulOfType, PackedActivationsGiveTheSame) {
  constexpr size_t kMany = 397;
  Problem problem(GetParam(), 37, test_cols(GetParam()).back(), 11, kMany);
  std::vector<float> packed(kMany * problem.cols);
  for (const Kernel& kernel : kernels_of(Op::matmul_float, GetParam())) {
    for (const size_t tokens : {1, 2, 7, 12, 47, 48, 137, 192, 205, 397}) {
      reference<PackActivationsFn>(Op::pack_activations)(problem.x.data(), problem.cols, tokens, problem.cols,
                                                         packed.data());
      const std::vector<float> expected = problem.run(kernel, tokens), out = problem.run(kernel, tokens, packed.data());
      ASSERT_EQ(std::memcmp(out.data(), expected.data(), 4 * out.size()), 0) << title(kernel, problem, tokens);
    }
  }
}

TEST(PackActivations, EqualsScalar) {
  constexpr size_t kMost = 41, kStride = 531;
  const std::vector<float> x = Random(5).vector(kMost * kStride);
  for (const size_t cols : {1, 3, 16, 100, 257, 531}) {
    for (size_t tokens = 1; tokens <= kMost; ++tokens) {
      const auto pack = [&](PackActivationsFn fn, size_t begin, size_t end, std::vector<float>& out) {
        fn(x.data() + begin * kStride, kStride, end - begin, cols, out.data() + begin * cols);
      };
      std::vector<float> want(tokens * cols + 16, kUntouched);
      pack(reference<PackActivationsFn>(Op::pack_activations), 0, tokens, want);
      for_each_kernel<PackActivationsFn>(Op::pack_activations, [&](PackActivationsFn fn) {
        std::vector<float> whole(want.size(), kUntouched), parts = whole;
        pack(fn, 0, tokens, whole);
        EXPECT_TRUE(same_bytes(whole, want)) << tokens << " × " << cols;
        const size_t cut = tokens / 2 / 12 * 12;  // by several workers
        pack(fn, 0, cut, parts);
        pack(fn, cut, tokens, parts);
        EXPECT_TRUE(same_bytes(parts, want)) << tokens << " × " << cols << " in two parts";
      });
    }
  }
}

// Columns beyond what a kernel's side buffers hold at once (decode: 131,072).
TEST_P(MatmulOfType, VeryManyColumns) {
  const Type type = GetParam();
  const bool is_float = type_info(type).is_float;
  Problem problem(type, 3, 131072 + 512, 7, 2);
  for (const Op op : {Op::matmul_q8, Op::matmul_float}) {
    if (is_float && op == Op::matmul_q8) continue;
    const std::vector<float> expected = problem.run(scalar_of(op, type), 2);
    for (const Kernel& kernel : kernels_of(op, type)) {
      for (const size_t tokens : {1, 2}) {
        const std::vector<float> out = problem.run(kernel, tokens);
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), 4 * out.size()), 0) << title(kernel, problem, tokens);
      }
    }
  }
}

// The scalar kernels against sums in double of the dequantised file values.
TEST_P(MatmulOfType, ScalarIsClose) {
  const Type type = GetParam();
  const TypeInfo& info = type_info(type);
  constexpr size_t kRows = 33, kTokens = 3;
  const size_t cols = test_cols(type).back();
  Problem problem(type, kRows, cols, 11);
  for (const Op op : {Op::matmul_q8, Op::matmul_float}) {
    if (info.is_float && op == Op::matmul_q8) continue;
    const std::vector<float> out = problem.run(scalar_of(op, type), kTokens);
    std::vector<float> row(cols);
    for (size_t r = 0; r < kRows; ++r) {
      info.dequantize(problem.file.data() + r * row_bytes(type, cols), row.data(), cols);
      for (size_t t = 0; t < kTokens; ++t) {
        double sum = 0, magnitude = 0;
        for (size_t c = 0; c < cols; ++c) {
          const double q8 = static_cast<double>(problem.q[t * problem.q_stride + c]) *
                            static_cast<double>(problem.d[t * problem.d_stride + c / 32]);
          const double value = op == Op::matmul_q8 ? q8 : static_cast<double>(problem.x[t * cols + c]);
          sum += static_cast<double>(row[c]) * value;
          magnitude += std::abs(static_cast<double>(row[c]) * value);
        }
        // Minima are added before products cancel, so the bound is on magnitudes, with room for M · d · sum.
        const float got = out[t * (kRows + 3) + r];
        ASSERT_NEAR(static_cast<double>(got), sum, 2e-5 * magnitude + 1e-30) << info.name << " row " << r;
      }
    }
  }
}

// Packers give the reference's bytes, also for short panels and rows with gaps, and never read past the last row's end
// (the rows are allocated to the byte, so that AddressSanitizer sees it).
TEST_P(MatmulOfType, PackersEqualReference) {
  const Type type = GetParam();
  for (const size_t cols : test_cols(type)) {
    for (size_t rows = 1; rows <= 16; ++rows) {
      const size_t stride = row_bytes(type, cols) + 2 * (rows % 3);
      const std::vector<uint8_t> file = random_rows(type, rows, cols, stride, rows * 31 + cols);
      std::vector<Line> expected(panel_bytes(type, cols) / 64), out(expected.size());
      pack_panel({type, file.data(), stride, rows, cols, expected.data()->bytes});
      for (const Kernel& kernel : kernels_of(Op::pack, type)) {
        std::memset(out.data(), 0xee, 64 * out.size());
        reinterpret_cast<PackFn>(kernel.function)({type, file.data(), stride, rows, cols, out.data()->bytes});
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), 64 * out.size()), 0)
            << type_info(type).name << " " << name_of(kernel.isa) << ": " << rows << " x " << cols;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, MatmulOfType, testing::ValuesIn(every_type()),
                         [](const auto& test) { return std::string(type_info(test.param).name); });

}  // namespace
}  // namespace ridge
