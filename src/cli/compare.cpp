// ridge compare: how far a picture is from a reference.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/image_quality.h"
#include "base/log.h"
#include "cli/common.h"
#include "format/png.h"
#include "report/image_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge compare reference.png picture.png\n"
    "  ridge compare exact.png forecast.png --json\n\n"
    "Both are PNG files of one size. Figures compare pixel with pixel: they tell how\n"
    "much of a picture a setting has changed, not how good a picture is.";

struct Flags {
  std::string reference, picture;
  bool json = false;
};

// 40 bytes a pixel while comparing: 1.3 GiB at most.
constexpr PngLimits kLimits = {.most_pixels = uint64_t{1} << 25};

Result<Image> read_picture(const std::string& path) {
  PngFile file = RIDGE_TRY(read_png(path, kLimits));
  if (file.image.has_alpha()) note(path + ": what is transparent is compared as if it lay on white");
  return std::move(file.image);
}

Result<void> run(const Flags& flags) {
  const Image reference = RIDGE_TRY(read_picture(flags.reference));
  const Image picture = RIDGE_TRY(read_picture(flags.picture));
  Result<ImageQuality> quality = compare_images(reference, picture);
  if (!quality.ok()) {
    return bad_input(flags.reference + ", " + flags.picture + ": " + quality.error().message);
  }
  return print(flags.json ? image_json(quality.value()).dump(2) + "\n" : image_table(quality.value()));
}

}  // namespace

void add_compare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("compare", "how far a picture is from a reference");
  command->add_option("REFERENCE", flags->reference, "the picture to compare with, PNG")->type_name("")->required();
  command->add_option("PICTURE", flags->picture, "the other one, PNG")->type_name("")->required();
  command->add_flag("--json", flags->json, "the figures as JSON");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
