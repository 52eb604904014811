// AMX's tiles and the instructions on them, by number. Written as assembly: g++'s intrinsics are macros that take tile
// numbers as literals only, and do not tell the compiler that a load reads memory.
//
//   Hardware::configure({{16, 64}, {16, 64}, …});       // rows, bytes of a row, of each of the eight tiles
//   Hardware::load<2>(x, stride); Hardware::dot_int8<0, 2, 4>(); Hardware::store<0>(c, 64);
//   Hardware::release();                                // tiles cost context switches while they are in use
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ridge::amx {
namespace {

struct TileShape {
  uint8_t rows;
  uint16_t row_bytes;
};

struct Hardware {
  static void configure(const TileShape (&shapes)[8]) {
    struct alignas(64) Config {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    static_assert(sizeof(Config) == 64, "the layout that LDTILECFG reads");
    for (size_t i = 0; i < 8; ++i) {
      config.row_bytes[i] = shapes[i].row_bytes;
      config.rows[i] = shapes[i].rows;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  static void release() { __asm__ volatile("tilerelease"); }

  template <int tile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  static void load(const void* base, size_t row_stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(base), "r"(row_stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* base, size_t row_stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(base), "r"(row_stride), "i"(tile) : "memory");
  }
  // sums += activations · weights: rows of the activations by columns of the weights. (AT&T order: last is written.)
  template <int sums, int activations, int weights>
  static void dot_bf16() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(activations), "i"(weights));
  }
  template <int sums, int activations, int weights>
  static void dot_int8() {  // both signed
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(activations), "i"(weights));
  }
};

}  // namespace
}  // namespace ridge::amx
