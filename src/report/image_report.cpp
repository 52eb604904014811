#include "report/image_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ridge {
namespace {

std::string number_or(double value, int digits, std::string_view unit, std::string_view infinite) {
  return std::isfinite(value) ? fmt::format("{:.{}f}{}", value, digits, unit) : std::string(infinite);
}

nlohmann::ordered_json finite(double value) { return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr; }

}  // namespace

std::string image_table(const ImageQuality& q) {
  std::string out = fmt::format("{} × {} pixels\n", q.width, q.height);
  auto row = [&](std::string_view name, std::string_view value, std::string_view meaning) {
    out += fmt::format("  {:<22}{:>12}   {}\n", name, value, meaning);
  };
  row("PSNR", number_or(q.psnr_db, 2, " dB", "equal"), "higher is closer");
  row("SSIM", fmt::format("{:.5f}", q.ssim), "1: equal");
  row("MS-SSIM", fmt::format("{:.5f}", q.ms_ssim), fmt::format("1: equal; {} of 5 scales", q.ms_ssim_scales));
  row("GMSD", fmt::format("{:.5f}", q.gmsd), "0: equal");
  row("CIEDE2000, mean", fmt::format("{:.3f}", q.delta_e_mean), "1 can just be seen");
  row("CIEDE2000, 95th", fmt::format("{:.3f}", q.delta_e_p95), "percentile of the pixels");
  row("brightness", fmt::format("{:+.3f} %", 100 * q.brightness_shift), "of full scale, against the reference");
  row("contrast", fmt::format("{:+.3f} %", 100 * q.contrast_shift), "of full scale");
  row("saturation", fmt::format("{:+.3f} %", 100 * q.saturation_shift), "of full scale");
  row("high frequencies", number_or(q.high_frequency_ratio, 4, " ×", "inf"), "below 1: blurred, above: noisy");
  row("largest difference", fmt::format("{} / 255", q.largest_difference), "of a channel");
  row("within 1/255", fmt::format("{:.4f} %", 100 * q.within_one), "of the pixels");
  return out;
}

nlohmann::ordered_json image_json(const ImageQuality& q) {
  return {{"width", q.width},
          {"height", q.height},
          {"psnr_db", finite(q.psnr_db)},
          {"ssim", q.ssim},
          {"ms_ssim", q.ms_ssim},
          {"ms_ssim_scales", q.ms_ssim_scales},
          {"gmsd", q.gmsd},
          {"ciede2000_mean", q.delta_e_mean},
          {"ciede2000_p95", q.delta_e_p95},
          {"brightness_shift", q.brightness_shift},
          {"contrast_shift", q.contrast_shift},
          {"saturation_shift", q.saturation_shift},
          {"high_frequency_ratio", finite(q.high_frequency_ratio)},
          {"largest_difference", q.largest_difference},
          {"within_one_share", q.within_one}};
}

}  // namespace ridge
