#include "report/importance_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "report/markup.h"

namespace ridge {
namespace {

constexpr int kWidth = 960, kLeft = 64, kRight = 16, kPanel = 300, kTop = 56, kGap = 96;
constexpr int kMostCells = 240;  // of a row; neighbours are averaged beyond it
constexpr int kSteps = 10;       // of a colour scale

constexpr const char* kStyle =
    "<style>\n"
    "  svg { --ground: #fff; --ink: #1f2933; --faint: #52606d; --cell: #1f6feb; font: 13px sans-serif }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    svg { --ground: #16191d; --ink: #e4e7eb; --faint: #9aa5b1; --cell: #6cb0ff } }\n"
    "  .ground { fill: var(--ground) } text { fill: var(--ink) } .faint { fill: var(--faint) }\n"
    "  .cell { fill: var(--cell) } .frame { fill: none; stroke: var(--faint) }\n"
    "</style>\n";

// Values from 0 to 1 by layer and cell.
using Grid = std::vector<std::vector<double>>;

MapKind shown_kind(const ImportanceMap& map) {
  for (MapKind kind : {MapKind::neurons, MapKind::expert}) {
    if (std::any_of(map.blocks.begin(), map.blocks.end(), [&](const MapBlock& b) { return b.kind == kind; }))
      return kind;
  }
  return MapKind::head;
}

// Neighbours are averaged where there are more blocks than cells.
Grid grid_of(const std::vector<const MapBlock*>& blocks, uint32_t layers,
             const std::function<double(const MapBlock&)>& value) {
  std::vector<uint32_t> most(layers, 0);
  for (const MapBlock* b : blocks) most[b->layer] = std::max(most[b->layer], b->index + 1);
  Grid sums(layers), counts(layers);
  for (uint32_t l = 0; l < layers; ++l) {
    sums[l].resize(std::min<uint32_t>(most[l], kMostCells));
    counts[l] = sums[l];
  }
  for (const MapBlock* b : blocks) {
    const size_t cell = uint64_t{b->index} * sums[b->layer].size() / most[b->layer];
    sums[b->layer][cell] += value(*b);
    counts[b->layer][cell] += 1;
  }
  for (uint32_t l = 0; l < layers; ++l) {
    for (size_t c = 0; c < sums[l].size(); ++c) sums[l][c] /= std::max(1.0, counts[l][c]);
  }
  return sums;
}

// Cells of one shade are one path: files stay small.
std::string cells(const Grid& grid, double top) {
  std::map<int, std::string> by_shade;
  const double height = static_cast<double>(kPanel) / static_cast<double>(std::max<size_t>(1, grid.size()));
  for (size_t l = 0; l < grid.size(); ++l) {
    const double width =
        static_cast<double>(kWidth - kLeft - kRight) / static_cast<double>(std::max<size_t>(1, grid[l].size()));
    for (size_t c = 0; c < grid[l].size(); ++c) {
      const int shade = static_cast<int>(std::clamp(grid[l][c], 0.0, 1.0) * kSteps + 0.5);
      if (shade == 0) continue;
      by_shade[shade] += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", kLeft + static_cast<double>(c) * width,
                                     top + static_cast<double>(l) * height, width, height, width);
    }
  }
  std::string out;
  for (const auto& [shade, path] : by_shade) {
    out +=
        fmt::format("<path class=\"cell\" opacity=\"{:.2f}\" d=\"{}\"/>\n", static_cast<double>(shade) / kSteps, path);
  }
  return out;
}

std::string label(double x, double y, const char* anchor, const char* css, const std::string& words) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, css,
                     markup(words));
}

// A panel with its axes and scale.
std::string panel(const Grid& grid, double top, const std::string& title, const std::string& along,
                  const std::string& least, const std::string& most) {
  std::string out = label(kLeft, top - 12, "start", "ink", title) + cells(grid, top);
  out += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\"/>\n", kLeft, top,
                     kWidth - kLeft - kRight, kPanel);
  out += label(kLeft - 8, top + 12, "end", "faint", "0") +
         label(kLeft - 8, top + kPanel - 2, "end", "faint", fmt::format("{}", grid.empty() ? 0 : grid.size() - 1));
  out += fmt::format(
      "<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(20 {:.0f}) rotate(-90)\">layer</text>\n",
      top + kPanel / 2.0);
  out += label(kLeft, top + kPanel + 18, "start", "faint", "0") +
         label((kWidth + kLeft) / 2.0, top + kPanel + 18, "middle", "faint", along);
  // The scale, at the upper right.
  const double x = kWidth - kRight - 180;
  for (int s = 1; s <= kSteps; ++s) {
    out +=
        fmt::format("<rect class=\"cell\" opacity=\"{:.2f}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"10\"/>\n",
                    static_cast<double>(s) / kSteps, x + 12 * (s - 1), top - 21);
  }
  return out + label(x - 6, top - 12, "end", "faint", least) +
         label(x + 12 * kSteps + 6, top - 12, "start", "faint", most);
}

}  // namespace

std::string importance_svg(const ImportanceMap& map) {
  const MapKind kind = shown_kind(map);
  std::vector<const MapBlock*> blocks;
  uint32_t layers = 0, count = 0;
  for (const MapBlock& b : map.blocks) {
    if (b.kind != kind) continue;
    blocks.push_back(&b);
    layers = std::max(layers, b.layer + 1);
    count = std::max(count, b.index + 1);
  }
  std::vector<double> sorted;
  for (const MapBlock* b : blocks) sorted.push_back(b->sensitivity);
  std::sort(sorted.begin(), sorted.end());
  auto touch = [&](const MapBlock& b) {
    return std::accumulate(b.touch.begin(), b.touch.end(), 0.0) /
           static_cast<double>(std::max<size_t>(1, b.touch.size()));
  };
  auto rank = [&](const MapBlock& b) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), b.sensitivity) - sorted.begin();
    return static_cast<double>(below) / static_cast<double>(std::max<size_t>(1, sorted.size() - 1));
  };
  const std::string along = kind == MapKind::neurons
                                ? fmt::format("group of {} neurons, 0 to {}", map.neurons, count - 1)
                            : kind == MapKind::expert ? fmt::format("expert, 0 to {}", count - 1)
                                                      : fmt::format("head, 0 to {}", count == 0 ? 0 : count - 1);
  const int height = kTop + 2 * kPanel + kGap + 40;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">\n{}"
      "<title>{}</title>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
      kWidth, height, kWidth, height, kStyle, markup(fmt::format("importance map of {}", map.model)));
  svg += panel(grid_of(blocks, layers, touch), kTop, "chance that a token touches it", along, "0", "1");
  svg += panel(grid_of(blocks, layers, rank), kTop + kPanel + kGap,
               "sensitivity per byte (share of blocks that are less sensitive)", along, "0", "1");
  return svg + "</svg>\n";
}

}  // namespace ridge
