// The residency map (block × time) and the timeline of the lanes, for one window of a trace.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/markup.h"
#include "report/svg.h"
#include "report/trace_report.h"

namespace ridge {
namespace {

constexpr int64_t kWidth = 10'000;     // units of a drawing: a tenth of a pixel
constexpr int64_t kThinnest = 10;      // what is shorter is drawn this wide
constexpr size_t kMostRows = 240;      // of the map; more blocks share rows
constexpr size_t kMostTitled = 3'000;  // boxes of a lane that say what they are; more are one path
constexpr size_t kMostReadLanes = 16;

double share_of(const Span& window, int64_t at) {
  return static_cast<double>(at - window.begin) / static_cast<double>(std::max<int64_t>(1, window.length()));
}
int64_t unit(const Span& window, int64_t at) {
  return std::llround(std::clamp(share_of(window, at), 0.0, 1.0) * static_cast<double>(kWidth));
}

SvgBox box_of(const Span& window, const Span& span) {
  const int64_t x = unit(window, span.begin);
  return {.x = x, .y = 0, .width = std::max(kThinnest, unit(window, span.end) - x), .height = 10};
}

// Blocks [first, last) of one row.
struct Row {
  size_t first = 0, last = 0;
};

std::vector<Row> rows_of(size_t blocks) {
  const size_t together = (blocks + kMostRows - 1) / kMostRows;
  std::vector<Row> rows;
  for (size_t b = 0; b < blocks; b += together) rows.push_back({b, std::min(blocks, b + together)});
  return rows;
}

struct MapPaths {
  BoxPath pinned, slot, loading, init, release, waited, computed;
};

void draw_row(const RecordedTrace& trace, const std::vector<Residency>& map, const Span& window, const Row& row,
              const SvgBox& place, MapPaths& paths) {
  auto draw = [&](const std::vector<Span>& spans, BoxPath& path) {
    for (const Span& s : spans) {
      SvgBox box = box_of(window, s);
      box.y = place.y;
      box.height = place.height;
      path.add(box);
    }
  };
  for (size_t b = row.first; b < row.last; ++b) {
    draw(map[b].resident, trace.blocks[b].pinned ? paths.pinned : paths.slot);
    draw(map[b].loading, paths.loading);
    draw(map[b].init, paths.init);
    draw(map[b].release, paths.release);
    draw(map[b].waited, paths.waited);
    draw(map[b].computed, paths.computed);
  }
}

std::string row_names(const RecordedTrace& trace, const std::vector<Row>& rows, int row_px) {
  constexpr int kLabelPx = 19;
  const size_t step = static_cast<size_t>(std::max(1, (kLabelPx + row_px - 1) / row_px));
  std::string text;
  for (size_t r = 0; r < rows.size(); r += step) {
    const double top = (static_cast<double>(r) + 0.5) / static_cast<double>(rows.size()) * 100;
    const std::string name = markup(trace.blocks[rows[r].first].name);
    text += fmt::format("<span style=\"top:{:.2f}%\" title=\"{}\">{}</span>", top, name, name);
  }
  return text;
}

std::string along(const Span& window) {
  std::string text = "<div></div><div class=\"along\">";
  for (const std::string& label : time_labels(0, static_cast<double>(window.length()) * 1e-9)) {
    text += fmt::format("<span>{}</span>", label);
  }
  return text + "</div>";
}

std::string title_of(const RecordedTrace& trace, const RecordedEvent& e) {
  std::string text =
      fmt::format("{}: {}", trace.names[e.name], format_seconds(static_cast<double>(e.end_ns - e.begin_ns) * 1e-9));
  if (e.bytes > 0) text += fmt::format(", {}", format_bytes(e.bytes));
  if (e.lane == Lane::pass && e.tokens > 0) text += fmt::format(", {} token{}", e.tokens, e.tokens == 1 ? "" : "s");
  return markup(text);
}

// One lane of the timeline: boxes with a class each.
struct LaneBox {
  const RecordedEvent* event;
  Span span;
  const char* css;
};

std::string lane_svg(const RecordedTrace& trace, const Span& window, const std::vector<LaneBox>& boxes,
                     std::string_view label) {
  std::string body;
  if (boxes.size() <= kMostTitled) {
    for (const LaneBox& b : boxes) {
      const SvgBox box = box_of(window, b.span);
      body += fmt::format("<rect class=\"{}\" x=\"{}\" width=\"{}\" height=\"10\"><title>{}</title></rect>", b.css,
                          box.x, box.width, title_of(trace, *b.event));
    }
    return stretched_svg({.width = kWidth, .height = 10, .label = std::string(label), .body = body});
  }
  std::vector<std::pair<std::string_view, BoxPath>> paths;
  for (const LaneBox& b : boxes) {
    auto path = std::find_if(paths.begin(), paths.end(), [&](auto& p) { return p.first == b.css; });
    if (path == paths.end()) path = paths.insert(path, {b.css, BoxPath()});
    path->second.add(box_of(window, b.span));
  }
  for (const auto& [css, path] : paths) body += path.path(css);
  return stretched_svg({.width = kWidth, .height = 10, .label = std::string(label), .body = body});
}

// What the events of a window are drawn as, lane by lane.
class Timeline {
 public:
  Timeline(const RecordedTrace& trace, const Span& window) : trace_(trace), window_(window) {
    const std::vector<Span> device = device_spans(trace);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const RecordedEvent& e = trace.events[i];
      const bool instant = e.begin_ns == e.end_ns && e.begin_ns >= window.begin && e.begin_ns < window.end;
      if (instant || (e.end_ns > window.begin && e.begin_ns < window.end)) add(e, device[i]);
    }
  }

  std::string html() const;

 private:
  std::string names() const;
  void add(const RecordedEvent& e, const Span& device);
  void add_read(const RecordedEvent& e, const Span& device);
  std::string pass_tags() const;

  const RecordedTrace& trace_;
  const Span& window_;
  std::vector<LaneBox> passes_, compute_, wait_, init_, release_;
  std::vector<std::vector<LaneBox>> reads_;
  std::vector<int64_t> free_;  // by lane of reads
};

void Timeline::add_read(const RecordedEvent& e, const Span& device) {
  size_t lane = 0;
  while (lane < free_.size() && free_[lane] > e.begin_ns && lane + 1 < kMostReadLanes) ++lane;
  if (lane == free_.size()) {
    free_.push_back(0);
    reads_.emplace_back();
  }
  free_[lane] = e.end_ns;
  if (device.begin > e.begin_ns) reads_[lane].push_back({&e, {e.begin_ns, device.begin}, "queued"});
  reads_[lane].push_back({&e, device, "reading"});
}

void Timeline::add(const RecordedEvent& e, const Span& device) {
  const Span span{e.begin_ns, e.end_ns};
  switch (e.lane) {
    case Lane::pass:
      passes_.push_back({&e, span, passes_.size() % 2 == 0 ? "pass" : "pass2"});
      break;
    case Lane::compute:
      compute_.push_back({&e, span,
                          e.block != kNoBlock                   ? "computed"
                          : trace_.names[e.name] == "attention" ? "attention"
                                                                : "named"});
      break;
    case Lane::wait:
      wait_.push_back({&e, span, "waited"});
      break;
    case Lane::read:
      add_read(e, device);
      break;
    case Lane::init:
      init_.push_back({&e, span, "init"});
      break;
    case Lane::release:
      if (span.length() > 0) release_.push_back({&e, span, "releasing"});
      break;
    case Lane::memory:
      break;
  }
}

std::string Timeline::pass_tags() const {
  constexpr double kNarrowest = 0.08;  // of the width: room for "decode"
  std::string text;
  for (const LaneBox& b : passes_) {
    const double left = std::clamp(share_of(window_, b.span.begin), 0.0, 1.0);
    const double right = std::clamp(share_of(window_, b.span.end), 0.0, 1.0);
    if (right - left < kNarrowest) continue;
    text += fmt::format("<span class=\"tag\" style=\"left:{:.2f}%;width:{:.2f}%\">{}</span>", left * 100,
                        (right - left) * 100, title_of(trace_, *b.event));
  }
  return text;
}

// A legend of what is there.
std::string Timeline::names() const {
  constexpr std::pair<const char*, const char*> kNames[] = {{"computed", "a block is computed"},
                                                            {"attention", "attention"},
                                                            {"named", "other work"},
                                                            {"waited", "waiting"},
                                                            {"reading", "being read"},
                                                            {"queued", "asked for, waiting its turn"},
                                                            {"init", "loading the pins, or init"},
                                                            {"releasing", "release"}};
  std::vector<const std::vector<LaneBox>*> lanes = {&compute_, &wait_, &init_, &release_};
  for (const std::vector<LaneBox>& lane : reads_) lanes.push_back(&lane);
  std::vector<std::pair<std::string, std::string>> shown;
  for (const auto& [css, name] : kNames) {
    const std::string_view wanted = css;
    const bool there = std::any_of(lanes.begin(), lanes.end(), [&](const std::vector<LaneBox>* lane) {
      return std::any_of(lane->begin(), lane->end(), [&](const LaneBox& b) { return b.css == wanted; });
    });
    if (there) shown.emplace_back(css, name);
  }
  return legend(shown);
}

std::string Timeline::html() const {
  std::string text = names() + "<div class=\"lanes\">";
  auto lane = [&](const std::string& name, int height, const std::vector<LaneBox>& boxes,
                  const std::string& tags = "") {
    text += fmt::format("<div class=\"name\">{}</div><div class=\"lane\" style=\"height:{}px\">{}{}</div>\n",
                        markup(name), height, lane_svg(trace_, window_, boxes, name), tags);
  };
  if (!passes_.empty()) lane("passes", 20, passes_, pass_tags());
  lane("compute", 30, compute_);
  if (!wait_.empty()) lane("waiting", 22, wait_);
  for (size_t i = 0; i < reads_.size(); ++i) lane(fmt::format("reading {}", i + 1), 22, reads_[i]);
  if (!init_.empty()) lane("loading, init", 22, init_);
  if (!release_.empty()) lane("release", 22, release_);
  return text + along(window_) + "</div>\n";
}

}  // namespace

std::vector<std::string> time_labels(double from_s, double to_s) {
  constexpr int kParts = 4;
  const double largest = std::max(std::abs(from_s), std::abs(to_s));
  const auto [factor, unit] = largest >= 600   ? std::pair(1.0 / 60, "min")
                              : largest >= 1   ? std::pair(1.0, "s")
                              : largest > 1e-3 ? std::pair(1e3, "ms")
                                               : std::pair(1e6, "µs");
  const double step = (to_s - from_s) * factor / kParts;
  const int decimals = step >= 10 ? 0 : step >= 1 ? 1 : 2;
  std::vector<std::string> labels;
  for (int i = 0; i <= kParts; ++i) {
    labels.push_back(fmt::format("{:.{}f} {}", from_s * factor + step * i, decimals, unit));
  }
  return labels;
}

std::string residency_section(const RecordedTrace& trace, const TraceWindow& window) {
  if (trace.blocks.empty()) return "";
  const std::vector<Residency> map = residency(trace, window.span);
  const std::vector<Row> rows = rows_of(trace.blocks.size());
  const int row_px = std::clamp<int>(static_cast<int>(520 / rows.size()), 2, 14);
  const int64_t height = row_px >= 5 ? 8 : 10;  // of 10: rows that are wide enough stand apart
  MapPaths paths;
  for (size_t r = 0; r < rows.size(); ++r) {
    draw_row(trace, map, window.span, rows[r],
             {.x = 0, .y = static_cast<int64_t>(r) * 10, .width = 0, .height = height}, paths);
  }
  // Those that are there, in the order in which they are drawn.
  std::string body;
  std::vector<std::pair<std::string, std::string>> shown;
  auto show = [&](const BoxPath& path, const char* css, const char* name) {
    const std::string drawn = path.path(css);
    if (drawn.empty()) return;
    body += drawn;
    shown.emplace_back(css, name);
  };
  show(paths.pinned, "pinned", "pinned");
  show(paths.slot, "slot", "in a slot");
  show(paths.loading, "reading", "being read");
  show(paths.init, "init", "being initialised");
  show(paths.release, "releasing", "being released");
  show(paths.waited, "waited", "computing waits for it");
  show(paths.computed, "computed", "computed");
  const std::string svg = stretched_svg({.width = kWidth,
                                         .height = static_cast<int64_t>(rows.size()) * 10,
                                         .label = "which block is in memory, and when",
                                         .body = body});
  const size_t together = rows.front().last;
  std::string text = "<h2>Residency: which block was where</h2>\n";
  text +=
      fmt::format("<p class=\"dim\">A row is {}, in the order of the pass; empty is where it is not in memory.</p>\n",
                  together == 1 ? "a block" : fmt::format("{} neighbouring blocks", together));
  text += legend(shown);
  text += fmt::format(
      "<div class=\"lanes\"><div class=\"names\">{}</div><div class=\"lane\" style=\"height:{}px\">{}</div>{}</div>\n",
      row_names(trace, rows, row_px), row_px * static_cast<int>(rows.size()), svg, along(window.span));
  return text;
}

std::string timeline_section(const RecordedTrace& trace, const TraceWindow& window) {
  const Timeline timeline(trace, window.span);
  return "<h2>Timeline</h2>\n" + timeline.html();
}

}  // namespace ridge
