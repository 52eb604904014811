#include "model/conv.h"

#include <fmt/format.h>

#include <cstring>

#include "base/units.h"
#include "format/quote.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr uint64_t kMostChannels = 1 << 16;
constexpr uint64_t kMostElements = uint64_t{1} << 28;

Result<Type> float_type(const Safetensors& file, const SafeTensor& t) {
  if (t.type == SafeType::F32) return Type::F32;
  if (t.type == SafeType::F16) return Type::F16;
  if (t.type == SafeType::BF16) return Type::BF16;
  return bad_input(fmt::format("{}: tensor {} is of type {}; Ridge computes with BF16, F16 and F32", file.where(),
                               in_quotes(t.name), name_of(t.type)),
                   t.offset);
}

Result<const SafeTensor*> need(const Safetensors& file, const std::string& name) {
  const SafeTensor* t = file.find(name);
  if (t == nullptr)
    return bad_input(fmt::format("{}: tensor '{}' is missing: this is no VAE of Wan's", file.where(), name));
  return t;
}

// [outputs, inputs, 3, 3], [outputs, inputs, taps, 3, 3], or with 1 × 1.
bool fits(const SafeTensor& t, uint32_t inputs, ConvKind kind) {
  const uint64_t side = kind == ConvKind::square ? 3 : 1;
  if (t.dims != 4 && t.dims != 5) return false;
  if (t.shape[0] == 0 || t.shape[0] > kMostChannels || t.shape[1] != inputs || t.elements() > kMostElements)
    return false;
  if (t.dims == 5 && t.shape[2] == 0) return false;
  return t.shape[t.dims - 1] == side && t.shape[t.dims - 2] == side;
}

}  // namespace

Result<Conv> Conv::describe(const Safetensors& file, const std::string& name, uint32_t inputs, ConvKind kind) {
  const SafeTensor* weight = RIDGE_TRY(need(file, name + ".weight"));
  const SafeTensor* bias = RIDGE_TRY(need(file, name + ".bias"));
  if (!fits(*weight, inputs, kind) || bias->elements() != weight->shape[0]) {
    return bad_input(
        fmt::format("{}: tensor {} has the shape [{}], expected a {} convolution of {} channels and its bias",
                    file.where(), in_quotes(weight->name), fmt::join(weight->dimensions(), ", "),
                    kind == ConvKind::square ? "3 × 3" : "1 × 1", inputs),
        weight->offset);
  }
  Conv conv{.name = name, .inputs = inputs, .outputs = static_cast<uint32_t>(weight->shape[0]), .kind = kind};
  conv.type = RIDGE_TRY(float_type(file, *weight));
  return conv;
}

uint64_t Conv::matrix_bytes() const { return round_up(panels_bytes(type, outputs, cols()), 64); }

uint64_t Conv::bytes() const { return lines() * matrix_bytes() + outputs * sizeof(float); }

Result<void> Conv::load(const Safetensors& file, const Kernels& kernels) {
  const SafeTensor& t = *file.find(name + ".weight");
  bias = RIDGE_TRY(read_floats(file, *file.find(name + ".bias"), kMostChannels));
  const std::vector<uint8_t> stored = RIDGE_TRY(read_tensor(file, t, kMostElements));
  panels = RIDGE_TRY(Slab::allocate(lines() * matrix_bytes(), {.what = "the weights of the VAE"}));
  const size_t element = type_info(type).bytes, side = lines(), row = cols() * element;
  const size_t taps = t.dims == 5 ? t.shape[2] : 1;
  const size_t panel = panel_bytes(type, cols());
  std::vector<uint8_t> rows(kPanelRows * row);
  for (size_t ky = 0; ky < side; ++ky) {
    for (size_t first = 0; first < outputs; first += kPanelRows) {
      const size_t count = std::min<size_t>(kPanelRows, outputs - first);
      for (size_t o = 0; o < count; ++o) {
        for (size_t kx = 0; kx < side; ++kx) {
          for (size_t i = 0; i < inputs; ++i) {
            // Of a frame without a past only the last tap meets anything but zeros.
            const size_t from = (((first + o) * inputs + i) * taps + taps - 1) * side * side + ky * side + kx;
            std::memcpy(rows.data() + o * row + (kx * inputs + i) * element, stored.data() + from * element, element);
          }
        }
      }
      kernels.pack[static_cast<size_t>(type)](
          {.type = type,
           .rows = rows.data(),
           .row_stride = row,
           .row_count = count,
           .cols = cols(),
           .panel = panels.data() + ky * matrix_bytes() + first / kPanelRows * panel});
    }
  }
  return {};
}

void Conv::line(const Kernels& kernels, const std::array<const float*, 3>& in, size_t width, float* scratch,
                float* out) const {
  MatmulArgs args{};
  args.rows = outputs;
  args.cols = cols();
  args.tokens = width;
  args.x_stride = size_t{stride} * inputs;
  args.out_stride = outputs;
  const MatmulFn multiply = kernels.matmul_float[static_cast<size_t>(type)];
  for (size_t ky = 0; ky < lines(); ++ky) {
    args.panels = panels.data() + ky * matrix_bytes();
    args.x = kind == ConvKind::square ? in[ky] : in[1] + inputs;
    args.out = ky == 0 ? out : scratch;
    multiply(args);
    if (ky > 0) kernels.add(scratch, width * outputs, out);
  }
  for (size_t x = 0; x < width; ++x) kernels.add(bias.data(), outputs, out + x * outputs);
}

}  // namespace ridge
