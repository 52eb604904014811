// The difference between two colours as people see it: CIEDE2000 (Sharma, Wu and Dalal, "The CIEDE2000 color-difference
// formula: implementation notes, supplementary test data, and mathematical observations", 2005), and CIELAB of sRGB.
//
//   double d = ciede2000(lab_of_srgb(255, 0, 0), lab_of_srgb(250, 0, 0));     // about 1 can just be seen
#pragma once

#include <cstdint>

namespace ridge {

struct Lab {
  double l = 0, a = 0, b = 0;  // L in 0 … 100
};

// sRGB (IEC 61966-2-1) under its white, D65.
Lab lab_of_srgb(uint8_t red, uint8_t green, uint8_t blue);

// With the weights kL = kC = kH = 1.
double ciede2000(const Lab& x, const Lab& y);

}  // namespace ridge
