// Any bytes as a PNG picture: refused, or as many pixels as it says. Good seeds are small pictures of every form. The
// checksums of chunks are made good first, since hardly an input would get past them otherwise.
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "format/png.h"

namespace {

uint32_t crc_of(const uint8_t* data, size_t size) {
  uint32_t crc = 0xFFFFFFFF;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int k = 0; k < 8; ++k) crc = (crc & 1) != 0 ? 0xEDB88320 ^ (crc >> 1) : crc >> 1;
  }
  return ~crc;
}

uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

void mend_checksums(std::vector<uint8_t>& bytes) {
  for (size_t at = 8; bytes.size() >= at + 12;) {
    const uint64_t length = big_endian(bytes.data() + at);
    if (length > bytes.size() - at - 12) return;
    const size_t end = at + 8 + static_cast<size_t>(length);
    const uint32_t crc = crc_of(bytes.data() + at + 4, end - at - 4);
    for (int k = 0; k < 4; ++k) bytes[end + static_cast<size_t>(k)] = static_cast<uint8_t>(crc >> (24 - 8 * k));
    at = end + 4;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  std::vector<uint8_t> bytes(data, data + size);
  for (bool mended : {false, true}) {
    if (mended) mend_checksums(bytes);
    const Result<PngFile> file = parse_png(bytes, "fuzz.png", {.most_pixels = 1 << 20});
    if (!file.ok()) {
      RIDGE_CHECK(file.error().code == ErrorCode::bad_input, "a file fails as input");
      continue;
    }
    const Image& image = file.value().image;
    RIDGE_CHECK(image.width > 0 && image.height > 0 && image.pixels.size() == image.row_bytes() * image.height,
                "as many pixels as the picture says");
    RIDGE_CHECK(to_rgb(image).pixels.size() == uint64_t{3} * image.width * image.height, "three channels");
  }
  return 0;
}
