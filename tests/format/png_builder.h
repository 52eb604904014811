// Pictures and hand-made PNG files for tests.
//
//   write_png(folder / "a.png", striped(32, 16, 3));
//   RawPng png; png.header(4, 4, 8, 2).chunk("IDAT", …).end();
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/image.h"

namespace ridge::test {

// Every pixel another value, so that swapped rows or channels are seen.
inline Image striped(uint32_t width, uint32_t height, uint32_t channels) {
  Image image = make_image(width, height, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37 + i / 7);
  return image;
}

class RawPng {
 public:
  std::vector<uint8_t> bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

  RawPng& number(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
    return *this;
  }
  RawPng& chunk(std::string_view type, const std::vector<uint8_t>& data) {
    number(static_cast<uint32_t>(data.size()));
    const size_t begin = bytes.size();
    bytes.insert(bytes.end(), type.begin(), type.end());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return number(crc(begin));
  }
  RawPng& header(uint32_t width, uint32_t height, uint8_t depth, uint8_t colours, uint8_t interlaced = 0) {
    RawPng data;
    data.bytes.clear();
    data.number(width).number(height);
    for (uint8_t b : {depth, colours, uint8_t{0}, uint8_t{0}, interlaced}) data.bytes.push_back(b);
    return chunk("IHDR", data.bytes);
  }
  // The rows, each with its filter byte, as one stored (not compressed) deflate block.
  RawPng& rows(const std::vector<uint8_t>& raw) {
    std::vector<uint8_t> z = {0x78, 0x01, 0x01};
    const auto n = static_cast<uint16_t>(raw.size());
    for (uint16_t v : {n, static_cast<uint16_t>(~n)}) {
      z.push_back(static_cast<uint8_t>(v));
      z.push_back(static_cast<uint8_t>(v >> 8));
    }
    z.insert(z.end(), raw.begin(), raw.end());
    uint32_t a = 1, b = 0;  // Adler-32
    for (uint8_t v : raw) {
      a = (a + v) % 65521;
      b = (b + a) % 65521;
    }
    RawPng sum;
    sum.bytes.clear();
    sum.number(b << 16 | a);
    z.insert(z.end(), sum.bytes.begin(), sum.bytes.end());
    return chunk("IDAT", z);
  }
  RawPng& end() { return chunk("IEND", {}); }

 private:
  uint32_t crc(size_t begin) const {
    uint32_t c = 0xFFFFFFFF;
    for (size_t i = begin; i < bytes.size(); ++i) {
      c ^= bytes[i];
      for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xEDB88320 ^ (c >> 1) : c >> 1;
    }
    return ~c;
  }
};

}  // namespace ridge::test
