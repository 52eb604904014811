// How attention.h reads keys and values of each KvType as vectors of 16 floats. See simd/math.h for V and why only
// templates may stand here.
//
// Each type says how many dimensions share a scale (kBlock), what 16 keys take per dimension (kKeyBytes), and how to
// open a stretch of keys or values:
//
//   typename Cache::Keys keys = Cache::keys(panel, from);        // dimensions [from, from + kBlock) of 16 positions
//   F k = keys.at(i);                                            // dimension from + i
//   F v = Cache::value(row, column);                             // 16 dimensions of one position, column % 16 == 0
//   F v = Cache::value(row, column, n);                          // the first n of them, zeros behind
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ridge::simd {

// Types without a scale: elements one after the other.
template <class V, class Load>
struct PlainCache {
  using F = typename V::F;
  using Element = typename Load::Element;
  static constexpr size_t kBlock = size_t{1} << 20, kKeyBytes = 16 * sizeof(Element);

  struct Keys {
    const Element* p;
    F at(size_t i) const { return Load::load(p + 16 * i); }
  };
  static inline Keys keys(const uint8_t* panel, size_t from) {
    return {reinterpret_cast<const Element*>(panel) + 16 * from};
  }
  static inline F value(const uint8_t* row, size_t column) {
    return Load::load(reinterpret_cast<const Element*>(row) + column);
  }
  static inline F value(const uint8_t* row, size_t column, size_t n) {
    return Load::load(reinterpret_cast<const Element*>(row) + column, n);
  }
};

template <class V>
struct LoadFloat {
  using Element = float;
  static inline typename V::F load(const float* p) { return V::load(p); }
  static inline typename V::F load(const float* p, size_t n) { return V::load(p, n); }
};

template <class V>
struct LoadHalf {
  using Element = uint16_t;
  static inline typename V::F load(const uint16_t* p) { return V::load_half(p); }
  static inline typename V::F load(const uint16_t* p, size_t n) { return V::load_half(p, n); }
};

template <class V>
struct LoadBf16 {
  using Element = uint16_t;
  static inline typename V::F load(const uint16_t* p) { return V::load_bf16(p); }
  static inline typename V::F load(const uint16_t* p, size_t n) { return V::load_bf16(p, n); }
};

// q8_0. A block of a key panel: 16 f16 scales, then 32 × 16 codes; of a value row: a scale, then 32 codes. Blocks are
// whole, so that no load needs a mask.
template <class V>
struct Q8Cache {
  using F = typename V::F;
  static constexpr size_t kBlock = 32, kRowBytes = 34, kPanelBytes = 16 * kRowBytes, kKeyBytes = 17;

  struct Keys {
    const int8_t* codes;
    F scale;
    F at(size_t i) const { return V::mul(V::load_int8(codes + 16 * i), scale); }
  };
  static inline Keys keys(const uint8_t* panel, size_t from) {
    const uint8_t* block = panel + from / kBlock * kPanelBytes;
    return {reinterpret_cast<const int8_t*>(block + 32), V::load_half(reinterpret_cast<const uint16_t*>(block))};
  }
  static inline F value(const uint8_t* row, size_t column) {
    const uint8_t* block = row + column / kBlock * kRowBytes;
    return V::mul(V::load_int8(reinterpret_cast<const int8_t*>(block + 2 + column % kBlock)), V::set_half(block));
  }
  static inline F value(const uint8_t* row, size_t column, size_t) { return value(row, column); }
};

}  // namespace ridge::simd
