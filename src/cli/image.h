// What the files of `ridge image` share: its flags, and the options of the model that they stand for.
//
//   ImageOptions options = RIDGE_TRY(image_options(flags));
//   RIDGE_TRY(run_stages(flags));                  // --inputs and --dump: for checking against other programs
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/image_bundle.h"
#include "engine/image_model.h"

namespace ridge::cli {

struct ImageFlags {
  std::string bundle;  // a folder with all parts
  ImageBundle parts;
  std::string inputs, dump;                     // stages
  std::optional<std::string> prompt, negative;  // pictures
  std::string repeat, output;
  std::optional<std::string> init, mask;  // pictures to draw from
  std::optional<double> strength;
  std::vector<std::string> loras;  // FILE or FILE:STRENGTH
  std::string size;                // empty: what the bundle says
  std::string sampler = "euler";
  std::optional<std::string> spectrum;
  bool reference = false, json = false, stats = false;
  std::string lifecycle = "stream";
  std::string preview;
  std::optional<uint32_t> preview_every;
  std::string capture;
  std::optional<std::string> capture_steps;
  std::optional<uint32_t> capture_rows;
  std::optional<uint64_t> seed;
  uint32_t steps = 28, batch = 1;
  double cfg = 4, shift = 3;
  std::optional<std::string> memory, cpus, isa;
  std::optional<int> threads;
  std::string io = "auto";
};

// The parts that are named one by one, and for the others those of --bundle; tokenizers may be missing.
Result<void> find_parts(ImageFlags& flags);
// What no output may replace: all files of the model's parts, and what is drawn from. Bad input: an index or part that
// cannot be read.
Result<std::vector<GgufFile>> input_files(const ImageFlags& flags);
// "style.safetensors:0.8"; a strength of 1 where none is given. Usage error for a strength that is no number.
Result<LoraFile> parse_lora(const std::string& text);
// Of flags whose parts are found: usage error without a model and a text encoder.
Result<ImageOptions> image_options(const ImageFlags& flags);

// --inputs, --dump.
Result<void> run_stages(const ImageFlags& flags);

}  // namespace ridge::cli
