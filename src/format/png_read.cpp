#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/png.h"
#include "format/png_session.h"

namespace ridge {
namespace {

constexpr uint64_t kDeflatesBest = 1032;  // bytes that one byte of a deflate stream can become, at most
constexpr uint32_t kLongestSide = 65'500;
constexpr size_t kLargestChunk = 1 << 20;
constexpr uint32_t kMostChunks = 64;

class Reading : public PngSession {
 public:
  explicit Reading(ByteStream& stream) : in_(stream) {}
  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  Result<PngSize> begin(const PngLimits& limits);  // the header
  Result<PngFile> read(const PngLimits& limits);

 private:
  static void take(png_structp png, png_bytep out, size_t bytes);
  bool follow_chunks(std::span<const uint8_t> bytes);
  static void read_header(PngSession& session);
  static void read_pixels(PngSession& session);
  Result<void> check_size(const PngLimits& limits) const;
  std::vector<PngText> texts() const;
  Error failure() const;

  ByteStream& in_;
  bool past_the_end_ = false;
  std::optional<Error> stream_error_;
  uint32_t width_ = 0, height_ = 0, channels_ = 0;
  uint64_t stored_bytes_ = 0;  // of all rows as the file holds them
  uint64_t chunk_left_ = 0;    // bytes of the current chunk that are still to come
  uint64_t header_ = 0;        // length and type of the next, as far as they have come
  int header_bytes_ = 0;
  uint8_t* pixels_ = nullptr;
};

// libpng allocates what a chunk claims before it reads it. So claims are held against the file as they go by: false if
// one runs past its end.
bool Reading::follow_chunks(std::span<const uint8_t> bytes) {
  uint64_t after = in_.remaining() + bytes.size();  // bytes of the file behind the one looked at
  while (!bytes.empty()) {
    if (chunk_left_ > 0) {
      const size_t inside = static_cast<size_t>(std::min<uint64_t>(chunk_left_, bytes.size()));
      chunk_left_ -= inside;
      after -= inside;
      bytes = bytes.subspan(inside);
      continue;
    }
    header_ = header_ << 8 | bytes.front();
    bytes = bytes.subspan(1);
    --after;
    if (++header_bytes_ < 8) continue;
    header_bytes_ = 0;
    chunk_left_ = (header_ >> 32) + 4;  // and a checksum
    if (chunk_left_ > after) return false;
  }
  return true;
}

void Reading::take(png_structp png, png_bytep out, size_t bytes) {
  auto* self = static_cast<Reading*>(png_get_io_ptr(png));
  bool good = bytes <= self->in_.remaining();
  if (good) {
    Result<void> read = self->in_.read(out, bytes);
    if (!read.ok()) self->stream_error_ = std::move(read).error();
    good = !self->stream_error_ && self->follow_chunks({out, bytes});
  }
  self->past_the_end_ = !good && !self->stream_error_;
  if (!good) png_error(png, "the file ends");
}

void Reading::read_header(PngSession& session) {
  auto& self = static_cast<Reading&>(session);
  png_read_info(self.png, self.info);
  self.width_ = png_get_image_width(self.png, self.info);
  self.height_ = png_get_image_height(self.png, self.info);
  self.stored_bytes_ = uint64_t{png_get_rowbytes(self.png, self.info)} * self.height_;
  png_set_expand(self.png);  // palettes to RGB, few bits to eight, transparent colours to alpha
  png_set_scale_16(self.png);
  png_set_interlace_handling(self.png);
  png_read_update_info(self.png, self.info);
  self.channels_ = png_get_channels(self.png, self.info);
}

void Reading::read_pixels(PngSession& session) {
  auto& self = static_cast<Reading&>(session);
  const int passes = png_get_interlace_type(self.png, self.info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  const size_t row_bytes = png_get_rowbytes(self.png, self.info);
  for (int pass = 0; pass < passes; ++pass) {
    for (uint32_t y = 0; y < self.height_; ++y) png_read_row(self.png, self.pixels_ + y * row_bytes, nullptr);
  }
  png_read_end(self.png, self.info);
}

Error Reading::failure() const {
  if (stream_error_) return *stream_error_;
  if (past_the_end_) {
    return bad_input(fmt::format("{}: the file ends at {}, inside the picture: it is cut short; fetch it again",
                                 in_.name(), format_count(in_.size())),
                     in_.position());
  }
  return bad_input(fmt::format("{}: a damaged PNG picture ({}); fetch it again", in_.name(), message), in_.position());
}

Result<void> Reading::check_size(const PngLimits& limits) const {
  if (uint64_t{width_} * height_ > limits.most_pixels) {
    return bad_input(fmt::format("{}: {} × {} pixels; Ridge reads pictures of at most {} pixels here: make it smaller",
                                 in_.name(), format_count(width_), format_count(height_),
                                 format_count(limits.most_pixels)));
  }
  if (stored_bytes_ / kDeflatesBest > in_.size()) {
    return bad_input(
        fmt::format("{}: {} × {} pixels cannot stand in {} bytes: the file is cut short or damaged; fetch "
                    "it again",
                    in_.name(), format_count(width_), format_count(height_), format_count(in_.size())));
  }
  return {};
}

std::string utf8_of_latin1(std::string_view latin1) {
  std::string out;
  for (char c : latin1) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xC0 | byte >> 6);
      out += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return out;
}

std::vector<PngText> Reading::texts() const {
  png_textp entries = nullptr;
  const int count = png_get_text(png, info, &entries, nullptr);
  std::vector<PngText> found;
  for (int i = 0; i < count; ++i) {
    const png_text& entry = entries[i];
    const bool utf8 = entry.compression == PNG_ITXT_COMPRESSION_NONE || entry.compression == PNG_ITXT_COMPRESSION_zTXt;
    const size_t length = utf8 ? entry.itxt_length : entry.text_length;
    const std::string_view text = entry.text == nullptr ? std::string_view() : std::string_view(entry.text, length);
    found.push_back({entry.key, utf8 ? std::string(text) : utf8_of_latin1(text)});
  }
  return found;
}

Result<PngSize> Reading::begin(const PngLimits& limits) {
  constexpr uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  uint8_t first[sizeof kSignature] = {};
  const size_t there = static_cast<size_t>(std::min<uint64_t>(sizeof first, in_.size()));
  RIDGE_TRY(in_.read(first, there));
  if (there == 0 || !std::equal(first, first + there, kSignature)) {
    return bad_input(fmt::format("{}: no PNG picture; convert it to PNG first", in_.name()), 0);
  }
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, static_cast<PngSession*>(this), on_error, on_warning);
  if (png != nullptr) info = png_create_info_struct(png);
  if (info == nullptr) return io_error(fmt::format("{}: libpng cannot start: out of memory", in_.name()));
  png_set_sig_bytes(png, static_cast<int>(there));
  png_set_read_fn(png, this, take);
  png_set_user_limits(png, kLongestSide, kLongestSide);
  png_set_chunk_malloc_max(png, kLargestChunk);
  png_set_chunk_cache_max(png, kMostChunks);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);

  if (!runs(read_header)) return failure();
  RIDGE_TRY(check_size(limits));
  return PngSize{width_, height_};
}

Result<PngFile> Reading::read(const PngLimits& limits) {
  RIDGE_TRY(begin(limits));
  PngFile file{.image = make_image(width_, height_, channels_), .texts = {}};
  pixels_ = file.image.pixels.data();
  if (!runs(read_pixels)) return failure();
  file.texts = texts();
  return file;
}

}  // namespace

Result<PngFile> read_png(const std::string& path, const PngLimits& limits) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  return Reading(in).read(limits);
}

Result<PngSize> read_png_size(const std::string& path, const PngLimits& limits) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  return Reading(in).begin(limits);
}

Result<PngFile> parse_png(std::span<const uint8_t> bytes, const std::string& name, const PngLimits& limits) {
  SpanStream in(bytes, name);
  return Reading(in).read(limits);
}

}  // namespace ridge
