// PNG pictures, with libpng: reads what there is (grey, RGB, palettes, with and without alpha, 1 to 16 bits,
// interlaced) as 8 bits per channel, writes grey and RGB, and carries texts both ways.
//
// Not for: colour profiles and gamma (ignored: numbers are compared as they are), animations, APNG.
//
//   PngFile in = RIDGE_TRY(read_png("in.png"));
//   Image rgb = to_rgb(std::move(in.image));
//   RIDGE_TRY(write_png("out.png", rgb, {{"parameters", "seed 1"}}));
//
// A hostile file can neither crash the reader nor make it allocate much: the picture's size is held against the limit,
// and against what the file's bytes could decompress to, before anything is allocated for it. Beside the picture libpng
// takes at most the size of the file, 1 MiB for each of 64 compressed texts, and a few rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/image.h"

namespace ridge {

// An entry of a tEXt, zTXt or iTXt chunk.
struct PngText {
  std::string key;   // 1 to 79 bytes of Latin-1
  std::string text;  // UTF-8, whatever the chunk's encoding
};

struct PngFile {
  Image image;
  std::vector<PngText> texts;  // in the order of the file
};

struct PngLimits {
  uint64_t most_pixels = uint64_t{1} << 26;  // 8192 × 8192: 192 MiB as RGB
};

// Bad input: no PNG, cut short, damaged (every checksum counts), or larger than the limit; io for a failing device.
Result<PngFile> read_png(const std::string& path, const PngLimits& limits = {});
// The same from bytes in memory; `name` stands in messages.
Result<PngFile> parse_png(std::span<const uint8_t> bytes, const std::string& name, const PngLimits& limits = {});

// How large the picture of a file is, of its header alone. The same errors.
struct PngSize {
  uint32_t width = 0, height = 0;
};
Result<PngSize> read_png_size(const std::string& path, const PngLimits& limits = {});

// A whole file or none. `image` has 1 or 3 channels and at least one pixel. All errors are io errors.
Result<void> write_png(const std::string& path, const Image& image, std::span<const PngText> texts = {});

}  // namespace ridge
