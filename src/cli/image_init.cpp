#include "cli/image_init.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine/memory_limits.h"

namespace ridge::cli {
namespace {

constexpr uint32_t kSideStep = 16;

// A pixel as it is read (RGB and alpha), and as RGB.
constexpr uint64_t kReadingBytes = 4 + 3;

Result<Image> read_rgb(const std::string& path, std::optional<uint64_t> memory) {
  PngLimits limits;
  if (memory) {
    const ProcessMemory now = process_memory();
    const uint64_t held = now.mapped_files + now.anonymous;
    limits.most_pixels = std::min(limits.most_pixels, (*memory - std::min(*memory, held)) / kReadingBytes);
  }
  return to_rgb(RIDGE_TRY(read_png(path, limits)).image);
}

// White is 255, black 0, colours lie between.
Image grey_of(const Image& rgb) {
  Image grey = make_image(rgb.width, rgb.height, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const uint8_t* p = rgb.pixels.data() + 3 * i;
    grey.pixels[i] = static_cast<uint8_t>((p[0] + p[1] + p[2] + 1) / 3);
  }
  return grey;
}

}  // namespace

Result<PngSize> init_size(const std::string& path) {
  const PngSize size = RIDGE_TRY(read_png_size(path));
  const uint32_t least = std::min(size.width, size.height), most = std::max(size.width, size.height);
  if (least < kSideStep || most >= kMostPictureSide + kSideStep) {
    return bad_input(
        fmt::format("{}: {} × {} pixels; drawings have sides of {} to {}: give --size WxH, to which it is "
                    "brought",
                    path, size.width, size.height, kSideStep, kMostPictureSide));
  }
  return PngSize{size.width / kSideStep * kSideStep, size.height / kSideStep * kSideStep};
}

float strength_of(const ImageRecipe& recipe) { return static_cast<float>(recipe.strength.value_or(kUsualStrength)); }

InitRequest empty_init(const ImageRecipe& recipe) {
  InitRequest init{.picture = make_image(recipe.width, recipe.height, 3), .strength = strength_of(recipe)};
  if (recipe.mask) init.mask = make_image(recipe.width, recipe.height, 1);
  return init;
}

Result<std::optional<InitRequest>> init_request(const ImageRecipe& recipe, std::optional<uint64_t> memory) {
  if (!recipe.init) return std::optional<InitRequest>();
  InitRequest init;
  init.strength = strength_of(recipe);
  Image picture = RIDGE_TRY(read_rgb(*recipe.init, memory));
  const PngSize size{picture.width, picture.height};
  init.picture = cover(picture, recipe.width, recipe.height);
  picture = {};
  if (!recipe.mask) return std::optional(std::move(init));
  const Image mask = RIDGE_TRY(read_rgb(*recipe.mask, memory));
  if (mask.width != size.width || mask.height != size.height) {
    return bad_input(fmt::format("{}: {} × {} pixels, but {} has {} × {}: a mask has the size of its picture",
                                 *recipe.mask, mask.width, mask.height, *recipe.init, size.width, size.height));
  }
  init.mask = cover(grey_of(mask), recipe.width, recipe.height);
  return std::optional(std::move(init));
}

Result<void> check_init_flags(const ImageFlags& flags) {
  if (flags.init) return {};
  if (flags.strength) return usage_error("--strength says how far from a picture to draw: give --init PICTURE too");
  if (flags.mask) return usage_error("--mask says what of a picture is redrawn: give --init PICTURE too");
  return {};
}

}  // namespace ridge::cli
