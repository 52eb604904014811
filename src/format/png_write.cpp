#include <fmt/format.h>

#include "base/units.h"
#include "format/output_file.h"
#include "format/png.h"
#include "format/png_session.h"

namespace ridge {
namespace {

constexpr size_t kBufferBytes = 64 * kKiB;  // libpng writes in small pieces, OutputFile wants larger ones

class Writing : public PngSession {
 public:
  Writing(OutputFile& out, const Image& image) : out_(out), image_(image) { buffer_.reserve(kBufferBytes); }
  ~Writing() { png_destroy_write_struct(&png, &info); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  Result<void> write(std::span<const PngText> texts);

 private:
  static void put(png_structp png, png_bytep data, size_t bytes);
  static void flush(png_structp) {}
  static void write_all(PngSession& session);
  Result<void> write_buffer();

  OutputFile& out_;
  const Image& image_;
  std::vector<uint8_t> buffer_;
  std::vector<png_text> entries_;
  std::optional<Error> stream_error_;
};

Result<void> Writing::write_buffer() {
  RIDGE_TRY(out_.write(std::span<const uint8_t>(buffer_)));
  buffer_.clear();
  return {};
}

void Writing::put(png_structp png, png_bytep data, size_t bytes) {
  auto* self = static_cast<Writing*>(png_get_io_ptr(png));
  // Never beyond what the buffer has reserved: an allocation that fails would throw through libpng.
  if (self->buffer_.size() + bytes > kBufferBytes) {
    Result<void> written = self->write_buffer();
    if (written.ok() && bytes > kBufferBytes) written = self->out_.write(std::span<const uint8_t>(data, bytes));
    if (!written.ok()) self->stream_error_ = std::move(written).error();
  }
  if (self->stream_error_) png_error(png, "the file cannot be written");
  if (bytes <= kBufferBytes) self->buffer_.insert(self->buffer_.end(), data, data + bytes);
}

void Writing::write_all(PngSession& session) {
  auto& self = static_cast<Writing&>(session);
  const int colours = self.image_.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
  png_set_IHDR(self.png, self.info, self.image_.width, self.image_.height, 8, colours, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_text(self.png, self.info, self.entries_.data(), static_cast<int>(self.entries_.size()));
  png_write_info(self.png, self.info);
  for (uint32_t y = 0; y < self.image_.height; ++y) png_write_row(self.png, self.image_.at(0, y));
  png_write_end(self.png, nullptr);
}

Result<void> Writing::write(std::span<const PngText> texts) {
  png = png_create_write_struct(PNG_LIBPNG_VER_STRING, static_cast<PngSession*>(this), on_error, on_warning);
  if (png != nullptr) info = png_create_info_struct(png);
  if (info == nullptr) return io_error(fmt::format("{}: libpng cannot start: out of memory", out_.path()));
  png_set_write_fn(png, this, put, flush);
  std::vector<std::string> copies;  // libpng wants what it may change
  copies.reserve(2 * texts.size());
  static char no_language[1] = {};
  for (const PngText& text : texts) {
    RIDGE_CHECK(!text.key.empty() && text.key.size() < 80, "the key of a text has 1 to 79 bytes");
    copies.push_back(text.key);
    copies.push_back(text.text);
    png_text entry{};
    entry.compression = PNG_ITXT_COMPRESSION_NONE;  // UTF-8
    entry.key = copies[copies.size() - 2].data();
    entry.text = copies.back().data();
    entry.itxt_length = copies.back().size();
    entry.lang = no_language;
    entry.lang_key = no_language;
    entries_.push_back(entry);
  }
  if (!runs(write_all)) {
    if (stream_error_) return *stream_error_;
    return io_error(fmt::format("{}: libpng cannot write the picture ({})", out_.path(), message));
  }
  return write_buffer();
}

}  // namespace

Result<void> write_png(const std::string& path, const Image& image, std::span<const PngText> texts) {
  RIDGE_CHECK(image.channels == 1 || image.channels == 3, "grey or RGB");
  RIDGE_CHECK(image.width > 0 && image.height > 0, "a picture has at least one pixel");
  RIDGE_CHECK(image.pixels.size() == image.row_bytes() * image.height, "the pixels are those of the size");
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(Writing(out, image).write(texts));
  return out.commit();
}

}  // namespace ridge
