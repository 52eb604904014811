// What RooflineBench (arXiv:2602.11506, v3) printed: machines (its table of hardware) and tokens per second (its tables
// of results). Input of the compatibility mode (paper_compat.h); nothing here was measured by Ridge.
//
//   for (const PaperRow& row : paper_rows()) row.model, row.rates[1].prefill;      // LISO
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace ridge {

struct PaperDevice {
  std::string_view name;
  double memory_gb_per_s, memory_measured_gb_per_s;  // data sheet, and by the paper's kernel
  double f32_tflops, f32_measured_tflops;
  double ridge, ridge_measured;  // as printed
};
std::span<const PaperDevice> paper_devices();
const PaperDevice& paper_device(std::string_view name);

// Tokens per second, prefill and decode.
struct PaperRates {
  double prefill = 0, decode = 0;
};
inline constexpr size_t kPaperScenarios = 4;  // SISO, LISO, SILO, LILO
struct PaperRow {
  std::string_view device, model, type;  // model: a known shape; type: "F16", "Q8_0", "Q4_K_M"
  std::array<PaperRates, kPaperScenarios> rates;
};
// Of the models whose shape is public; Fox-1 is left out.
std::span<const PaperRow> paper_rows();
const PaperRow* find_paper_row(std::string_view device, std::string_view model, std::string_view type);

}  // namespace ridge
