// AMX: BF16 weights under `--numerics fast`; one instruction multiplies 16 tokens by 16 rows × 32 columns.
#include "kernels/amx/tile_product.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512bf16/dot.h"
#include "kernels/entries.h"

namespace ridge::amx {
namespace {

struct Bf16Tiles : Hardware {
  static void begin() { configure({{16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}}); }
  static void end() { release(); }
  template <int sums, int activations, int weights>
  static void dot() {
    dot_bf16<sums, activations, weights>();
  }
};

// One token is bound by memory, where tiles have nothing to give.
struct Product : TileProduct<Bf16Tiles> {
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
