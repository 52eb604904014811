#include "format/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/quote.h"

namespace ridge {
namespace {

using std::literals::operator""sv;

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

// magic · version 1.0 · u16 length of the text · text, padded so that the data begin at a multiple of 64
constexpr std::string_view kMagic = "\x93NUMPY"sv;
constexpr size_t kFixedBytes = 10;
constexpr size_t kDataAlignment = 64;
constexpr size_t kLongestHeader = 65'535;

std::string header_of(uint64_t rows, uint64_t cols) {
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  text.resize(round_up(kFixedBytes + text.size() + 1, kDataAlignment) - kFixedBytes - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

// The text after `key` and its colon.
std::optional<std::string_view> value_of(std::string_view dictionary, std::string_view key) {
  size_t at = dictionary.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = dictionary.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

struct Shape {
  uint64_t rows = 0, cols = 0;
};

// "(3, 5)"
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  const char* end = text.data() + text.size();
  if (!text.starts_with('(')) return std::nullopt;
  auto [comma, error] = std::from_chars(text.data() + 1, end, shape.rows);
  if (error != std::errc() || !std::string_view(comma, end).starts_with(", ")) return std::nullopt;
  auto [close, error2] = std::from_chars(comma + 2, end, shape.cols);
  if (error2 != std::errc() || !std::string_view(close, end).starts_with(")")) return std::nullopt;
  return shape;
}

Result<Shape> read_header(ByteStream& in) {
  auto failed = [&](std::string_view problem) {
    return bad_input(fmt::format("{}: {}, expected a [rows, cols] array of float32 in C order", in.name(), problem),
                     in.position());
  };
  char magic[8];
  if (in.remaining() < kFixedBytes) return failed("not a NumPy file");
  RIDGE_TRY(in.read(magic, sizeof magic));
  if (!std::string_view(magic, sizeof magic).starts_with(kMagic)) return failed("not a NumPy file");
  if (magic[6] != 1 && magic[6] != 2) return failed(fmt::format("NumPy format version {}", int{magic[6]}));
  uint32_t length = magic[6] == 1 ? RIDGE_TRY(in.read_as<uint16_t>()) : RIDGE_TRY(in.read_as<uint32_t>());
  if (length > kLongestHeader || length > in.remaining()) return failed("a header longer than the file");
  std::string text(length, '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));

  std::optional<std::string_view> type = value_of(text, "descr");
  std::optional<std::string_view> order = value_of(text, "fortran_order");
  std::optional<std::string_view> shape_text = value_of(text, "shape");
  if (!type || !order || !shape_text) return failed(fmt::format("the header {}", ridge::quoted(text)));
  if (!type->starts_with("'<f4'")) return failed(fmt::format("elements of type {}", ridge::quoted(type->substr(0, 8))));
  if (!order->starts_with("False")) return failed("columns stored first");
  std::optional<Shape> shape = parse_shape(*shape_text);
  if (!shape) return failed(fmt::format("the shape {}", ridge::quoted(shape_text->substr(0, 32))));
  return *shape;
}

std::optional<uint64_t> bytes_of(uint64_t rows, uint64_t cols) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(rows, cols, &bytes)) return std::nullopt;
  if (__builtin_mul_overflow(bytes, uint64_t{sizeof(float)}, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

Result<NpyWriter> NpyWriter::create(const std::string& path, uint64_t rows, uint64_t cols) {
  std::string header = header_of(rows, cols);
  std::optional<uint64_t> bytes = bytes_of(rows, cols);
  if (!bytes || *bytes > INT64_MAX - header.size()) {
    return io_error(fmt::format("{}: {} × {} values are more than any file holds; ask for fewer rows", path,
                                format_count(rows), format_count(cols)));
  }
  OutputFile file = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(file.preallocate(header.size() + *bytes));
  RIDGE_TRY(file.write(header));
  return NpyWriter(std::move(file), rows, cols);
}

Result<void> NpyWriter::append(std::span<const float> row) {
  RIDGE_CHECK(row.size() == cols_, "a row has as many values as create() was told");
  RIDGE_CHECK(missing_ > 0, "no more rows than create() was told");
  RIDGE_TRY(file_.write(std::span(reinterpret_cast<const uint8_t*>(row.data()), row.size_bytes())));
  --missing_;
  return {};
}

Result<void> NpyWriter::finish() {
  RIDGE_CHECK(missing_ == 0, "finish() comes after the last row");
  return file_.commit();
}

Result<NpyArray> read_npy(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  Shape shape = RIDGE_TRY(read_header(in));
  std::optional<uint64_t> bytes = bytes_of(shape.rows, shape.cols);
  if (!bytes || *bytes != in.remaining()) {
    return bad_input(
        fmt::format("{}: {} bytes follow the header, expected {} × {} float32: the file is cut short or damaged; "
                    "write it again",
                    path, format_count(in.remaining()), format_count(shape.rows), format_count(shape.cols)),
        in.position());
  }
  NpyArray array{.rows = shape.rows, .cols = shape.cols, .values = {}};
  array.values.resize(shape.rows * shape.cols);
  RIDGE_TRY(in.read(array.values.data(), *bytes));
  return array;
}

}  // namespace ridge
