// AMX: BF16 weights under `--numerics fast`; one instruction multiplies 16 tokens by 16 rows × 32 columns.
#include "kernels/amx/tile_product.h"
#include "kernels/avx512bf16/dot.h"
#include "kernels/entries.h"

namespace ridge::amx {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64, "the layout that LDTILECFG reads");

// Not the intrinsics: g++'s are macros that take tile numbers as literals only, and do not tell the compiler that a
// load reads memory.
struct Hardware {
  static void begin() {
    const TileConfig config;
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  static void end() { __asm__ volatile("tilerelease"); }
  template <int tile>
  static void load(const void* base, size_t row_bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(base), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* base, size_t row_bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(base), "r"(row_bytes), "i"(tile) : "memory");
  }
  // AT&T order: weights, activations, sums.
  template <int sums, int activations, int weights>
  static void dot() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(activations), "i"(weights));
  }
};

// One token is bound by memory, where tiles have nothing to give.
struct Product : TileProduct<Hardware> {
  static constexpr bool kHasOneToken = true;
  static void one_token(const MatmulArgs& args) { avx512bf16::Dot::one_token(args); }
};

void matmul(const MatmulArgs& args) { fast::Bf16Product<Product>::matmul(args); }

}  // namespace

const KernelEntry kMatmulBf16Entries[] = {{Op::matmul_float, Isa::avx512, Type::BF16,
                                           kBitAvx2Fma | kBitAvx512 | kBitAvx512Bf16 | kBitAmxBf16,
                                           RIDGE_KERNEL(matmul), "avx512 amx bf16", true}};
const size_t kMatmulBf16Count = sizeof(kMatmulBf16Entries) / sizeof(kMatmulBf16Entries[0]);

}  // namespace ridge::amx
