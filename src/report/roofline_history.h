// Kept rooflines beside each other: the same work on other machines, days and versions.
//
//   text = roofline_history(points, RooflineFormat::table);
#pragma once

#include <string>
#include <vector>

#include "report/roofline_report.h"
#include "report/roofline_store.h"

namespace ridge {

// A table (at most 100 columns) with a title for every piece of work and a row for every run of it, with its speed by
// that of the first row; the same as JSON or CSV.
std::string roofline_history(const std::vector<KeptPoint>& points, RooflineFormat format);

}  // namespace ridge
