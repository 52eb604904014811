#include "analyze/paper_data.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {
namespace {

constexpr PaperDevice kDevices[] = {
    {"RTX 3090", 936.20, 560.02, 35.58, 24.28, 38.00, 43.36},
    {"RTX 3070 Ti Laptop", 448, 217, 16.60, 9.51, 37.05, 43.18},
    {"M1 Pro", 204.8, 120.03, 5.20, 4.31, 25.39, 35.83},
    {"Jetson Orin Nano Super", 102, 59.4, 2.089, 1.34, 20.48, 22.56},
    {"Raspberry Pi 5", 17.1, 3.98, 0.1536, 0.07856, 9.00, 20.13},
};

constexpr const char *kPi = "Raspberry Pi 5", *kM1 = "M1 Pro";

constexpr PaperRow kRows[] = {
    {kPi, "pythia-160m", "Q8_0", {{{149, 70}, {63, 71}, {150, 25}, {64, 27}}}},
    {kPi, "pythia-410m", "Q8_0", {{{43, 26}, {20, 26}, {43, 9}, {21, 9}}}},
    {kPi, "qwen2.5-0.5b", "Q8_0", {{{38, 20}, {22, 20}, {38, 14}, {22, 14}}}},
    {kPi, "smollm2-135m", "Q8_0", {{{115, 65}, {42, 65}, {115, 29}, {42, 29}}}},
    {kPi, "smollm2-360m", "Q8_0", {{{41, 26}, {20, 26}, {42, 14}, {20, 14}}}},
    {"RTX 3070 Ti Laptop", "qwen2.5-1.5b", "Q8_0", {{{4465, 127}, {5286, 130}, {4295, 118}, {5256, 119}}}},
    {"Jetson Orin Nano Super", "qwen2.5-1.5b", "Q8_0", {{{1203, 25}, {1075, 25}, {1281, 23}, {1073, 23}}}},
    {kM1, "qwen2.5-1.5b", "F16", {{{1424, 50}, {1273, 50}, {1423, 43}, {1273, 43}}}},
    {kM1, "qwen2.5-1.5b", "Q8_0", {{{1349, 63}, {1204, 62}, {1349, 52}, {1204, 52}}}},
    {kM1, "qwen2.5-1.5b", "Q4_K_M", {{{1199, 90}, {1078, 90}, {1200, 69}, {1078, 69}}}},
    {kM1, "qwen3-0.6b", "F16", {{{3168, 102}, {2140, 102}, {3164, 69}, {2143, 71}}}},
    {kM1, "qwen3-0.6b", "Q8_0", {{{2984, 105}, {2072, 105}, {3018, 72}, {2070, 72}}}},
    {kM1, "qwen3-0.6b", "Q4_K_M", {{{2765, 100}, {1939, 160}, {2770, 94}, {1942, 94}}}},
    {kM1, "llama-3.2-1b", "F16", {{{2002, 65}, {1594, 65}, {2000, 51}, {1594, 51}}}},
    {kM1, "llama-3.2-1b", "Q8_0", {{{1894, 92}, {1509, 92}, {1894, 67}, {1509, 67}}}},
    {kM1, "llama-3.2-1b", "Q4_K_M", {{{1691, 133}, {1369, 133}, {1691, 86}, {1370, 85}}}},
    {kM1, "plm-1.8b", "F16", {{{1114, 40}, {939, 40}, {1113, 30}, {939, 30}}}},
    {kM1, "plm-1.8b", "Q8_0", {{{1053, 55}, {891, 55}, {1053, 38}, {890, 38}}}},
    {kM1, "plm-1.8b", "Q4_K_M", {{{942, 75}, {812, 75}, {942, 46}, {812, 46}}}},
    {kM1, "smollm2-1.7b", "F16", {{{1212, 46}, {970, 46}, {1212, 35}, {971, 35}}}},
    {kM1, "smollm2-1.7b", "Q8_0", {{{1139, 64}, {918, 64}, {1138, 46}, {916, 46}}}},
    {kM1, "smollm2-1.7b", "Q4_K_M", {{{1002, 90}, {827, 90}, {1002, 58}, {827, 58}}}},
};

}  // namespace

std::span<const PaperDevice> paper_devices() { return kDevices; }

const PaperDevice& paper_device(std::string_view name) {
  auto found =
      std::find_if(std::begin(kDevices), std::end(kDevices), [&](const PaperDevice& d) { return d.name == name; });
  RIDGE_CHECK(found != std::end(kDevices), "rows name devices of the same file");
  return *found;
}

std::span<const PaperRow> paper_rows() { return kRows; }

const PaperRow* find_paper_row(std::string_view device, std::string_view model, std::string_view type) {
  auto found = std::find_if(std::begin(kRows), std::end(kRows), [&](const PaperRow& r) {
    return r.device == device && r.model == model && r.type == type;
  });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace ridge
