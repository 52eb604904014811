// Kernels outside the arithmetic contract: near the exact product, never chosen unless asked for.
#include <cstring>

#include "kernels/amx/tile_product.h"
#include "tensor/half.h"
#include "tests/kernels/kernel_cases.h"

namespace ridge {
namespace {

// Eight tiles of 16 rows × 64 bytes, and AMX's operations on them as its manual defines them.
struct Imitation {
  static inline uint8_t tiles[8][16][64];
  static inline bool configured = false;

  static void begin() { configured = true; }
  static void end() { configured = false; }
  template <int tile>
  static void load(const void* base, size_t row_bytes) {
    ASSERT_TRUE(configured);
    for (size_t r = 0; r < 16; ++r) std::memcpy(tiles[tile][r], static_cast<const uint8_t*>(base) + r * row_bytes, 64);
  }
  template <int tile>
  static void store(void* base, size_t row_bytes) {
    for (size_t r = 0; r < 16; ++r) std::memcpy(static_cast<uint8_t*>(base) + r * row_bytes, tiles[tile][r], 64);
  }
  template <int sums, int a, int b>
  static void dot() {
    for (size_t m = 0; m < 16; ++m) {
      for (size_t n = 0; n < 16; ++n) {
        float sum = word<float>(sums, m, n);
        for (size_t k = 0; k < 16; ++k) {
          for (size_t i = 0; i < 2; ++i) {
            sum += bf16_to_f32(word<uint16_t>(a, m, 2 * k + i)) * bf16_to_f32(word<uint16_t>(b, k, 2 * n + i));
          }
        }
        std::memcpy(tiles[sums][m] + 4 * n, &sum, 4);
      }
    }
  }

 private:
  template <class T>
  static T word(int tile, size_t row, size_t index) {
    T value;
    std::memcpy(&value, tiles[tile][row] + index * sizeof(T), sizeof(T));
    return value;
  }
};

struct ImitatedTiles : amx::TileProduct<Imitation> {
  static constexpr bool kHasOneToken = false;
};

struct Candidate {
  std::string name;
  MatmulFn function;
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all = {{"imitated tiles", &fast::Bf16Product<ImitatedTiles>::matmul}};
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.fast && cpu_info().features.has_all({kernel.needs})) {
      all.push_back({kernel.name, reinterpret_cast<MatmulFn>(kernel.function)});
    }
  }
  return all;
}

struct Shape {
  size_t rows, cols, tokens;
};

void expect_near_exact(const Candidate& candidate, const Shape& s, uint64_t seed) {
  test::Random random(seed);
  const std::vector<float> values = random.vector(s.rows * s.cols), x = random.vector(s.tokens * (s.cols + 5));
  std::vector<uint16_t> weights(values.size());
  for (size_t i = 0; i < values.size(); ++i) weights[i] = f32_to_bf16(values[i]);
  const size_t stride = panel_bytes(Type::BF16, s.cols), panels = (s.rows + kPanelRows - 1) / kPanelRows;
  std::vector<uint8_t> storage(panels * stride + 64);
  uint8_t* packed = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
  for (size_t p = 0; p < panels; ++p) {
    pack_panel({Type::BF16, reinterpret_cast<const uint8_t*>(weights.data() + p * kPanelRows * s.cols), 2 * s.cols,
                std::min(kPanelRows, s.rows - p * kPanelRows), s.cols, packed + p * stride});
  }
  const float kUntouched = 12345;
  std::vector<float> out(s.tokens * (s.rows + 3), kUntouched);
  MatmulArgs args{};
  args.panels = packed;
  args.rows = s.rows;
  args.cols = s.cols;
  args.tokens = s.tokens;
  args.x = x.data();
  args.x_stride = s.cols + 5;
  args.out = out.data();
  args.out_stride = s.rows + 3;
  candidate.function(args);
  for (size_t t = 0; t < s.tokens; ++t) {
    for (size_t r = 0; r < s.rows + 3; ++r) {
      const float got = out[t * args.out_stride + r];
      if (r >= s.rows) {
        ASSERT_EQ(got, kUntouched) << "row " << r << " is not an output";
        continue;
      }
      double exact = 0, size = 0;
      for (size_t c = 0; c < s.cols; ++c) {
        const double product = double{bf16_to_f32(weights[r * s.cols + c])} * double{x[t * args.x_stride + c]};
        exact += product;
        size += std::abs(product);
      }
      // Rounding an activation to 8 bits errs by 2^-8 of it at most, the additions by far less.
      ASSERT_NEAR(got, exact, size * 0x1.01p-8 + 1e-6) << "token " << t << ", row " << r;
    }
  }
}

TEST(FastKernels, Bf16ProductsAreNearTheExactOnes) {
  const Shape shapes[] = {{1, 1, 1},    {16, 32, 32},  {17, 33, 2},   {33, 31, 12}, {100, 514, 33},
                          {48, 512, 1}, {70, 1030, 5}, {40, 96, 97},  {31, 2, 13},  {64, 511, 1},
                          {16, 0, 3},   {80, 64, 96},  {5, 1024, 100}};
  for (const Candidate& candidate : candidates()) {
    for (const Shape& s : shapes) {
      SCOPED_TRACE(candidate.name + ": " + std::to_string(s.rows) + " × " + std::to_string(s.cols) + ", tokens " +
                   std::to_string(s.tokens));
      expect_near_exact(candidate, s, s.rows * 1000 + s.cols);
    }
  }
}

TEST(FastKernels, RoundingToBf16IsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie: to the even one
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(FastKernels, AreChosenOnlyWhenAskedFor) {
  const size_t bf16 = static_cast<size_t>(Type::BF16);
  const Kernels plain = choose_kernels({}).value().kernels;
  for (const Kernel& kernel : kernel_list()) {
    if (!kernel.fast) continue;
    EXPECT_NE(reinterpret_cast<MatmulFn>(kernel.function), plain.matmul_float[bf16]) << kernel.name;
  }
#if defined(__x86_64__)
  // For a CPU that is not this one nothing is measured: the first that its features allow.
  const CpuFeatures other{kBitAvx2Fma | kBitAvx512 | kBitAvx512Vnni | kBitAvx512Bf16 | kBitAmxBf16 | kBitNeonDot};
  auto reason = [&](const KernelRequest& request) {
    const KernelChoice choice = choose_kernels(request, other).value();
    for (const std::string& line : choice.reasons) {
      if (line.starts_with("matmul_float BF16:")) return line;
    }
    return std::string("none");
  };
  EXPECT_EQ(reason({.fast = true}), "matmul_float BF16: avx512 amx bf16");
  EXPECT_EQ(reason({}),
            "matmul_float BF16: avx512 (avx512 amx bf16: --numerics fast only; avx512 bf16: --numerics fast only)");
#endif
}

TEST(FastKernels, TheFasterOneIsFound) {
  const KernelChoice choice = choose_kernels({.fast = true}).value();
  const MatmulFn chosen = choice.kernels.matmul_float[static_cast<size_t>(Type::BF16)];
  bool listed = false;
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op == Op::matmul_float && kernel.type == Type::BF16 && cpu_info().features.has_all({kernel.needs})) {
      listed = listed || reinterpret_cast<MatmulFn>(kernel.function) == chosen;
    }
  }
  EXPECT_TRUE(listed);
}

}  // namespace
}  // namespace ridge
