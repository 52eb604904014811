#include "report/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/markup.h"
#include "report/svg.h"
#include "report/trace_style.h"

namespace ridge {
namespace {

constexpr size_t kBins = 250;       // of charts over time
constexpr double kNoTime = 0.5e-9;  // seconds: less is what is left of rounding

struct Page {
  const RecordedTrace& trace;
  const TraceSummary& summary;
  const TraceWindow& window;
};

double per(double a, double b) { return b > 0 ? a / b : 0; }

double seconds(const Span& span) { return static_cast<double>(span.length()) * 1e-9; }

// The kind of pass that the bound holds for, or the one that took longest.
const PassKind* main_kind(const Page& p) {
  const PassKind* best = nullptr;
  for (const PassKind& kind : p.summary.kinds) {
    if (kind.name == p.trace.bound_pass) return &kind;
    if (best == nullptr || kind.seconds > best->seconds) best = &kind;
  }
  return best;
}

double bound_seconds(const RecordedTrace& trace) {
  double most = 0;
  for (const auto& [name, s] : trace.bounds) most = std::max(most, s);
  return most;
}

std::string count_of(uint64_t n, std::string_view what, std::string_view many) {
  return fmt::format("{} {}", format_count(n), n == 1 ? what : many);
}

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<div><b>{}</b><span>{}</span></div>\n", markup(value), markup(what));
}

std::string tiles(const Page& p) {
  std::string text = "<div class=\"tiles\">\n";
  for (const PassKind& kind : p.summary.kinds) {
    if (kind.tokens > 0) {
      text += tile(fmt::format("{:.1f} tok/s", per(static_cast<double>(kind.tokens), kind.seconds)),
                   fmt::format("{}, {}", kind.name, count_of(kind.tokens, "token", "tokens")));
    } else {
      text += tile(format_seconds(kind.median_s), fmt::format("{}, median of {}", kind.name, kind.passes));
    }
  }
  const PassKind* kind = main_kind(p);
  const double bound = bound_seconds(p.trace);
  if (kind != nullptr && kind->name == p.trace.bound_pass && bound > 0) {
    text += tile(format_percent(per(bound, kind->median_s)),
                 fmt::format("of the bound, by the median {} pass", kind->name));
  }
  if (kind != nullptr) {
    double waits = 0, all = 0;
    for (const PassKind& k : p.summary.kinds) {
      all += k.seconds;
      for (const TimePart& part : k.parts) waits += part.name.starts_with("waiting for ") ? part.seconds : 0;
    }
    text += tile(format_percent(per(waits, all)), "of the time of passes spent waiting");
  }
  if (p.summary.read_count > 0) {
    text += tile(format_bytes(p.summary.read_bytes),
                 fmt::format("streamed in {}", count_of(p.summary.read_count, "read", "reads")));
  }
  if (p.summary.peak_bytes) {
    text += tile(format_bytes(*p.summary.peak_bytes),
                 p.trace.budget_bytes > 0 ? "most memory of " + format_bytes(p.trace.budget_bytes) : "most memory");
  }
  return text + "</div>\n";
}

// Colours of the parts of a pass; what is not listed takes turns.
std::string css_of_part(const std::string& name, size_t position) {
  constexpr std::pair<std::string_view, const char*> kColours[] = {
      {"blocks", "computed"},       {"attention", "attention"},           {"waiting for storage", "waited"},
      {"waiting for init", "init"}, {"waiting for release", "releasing"}, {"the rest", "rest"},
      {"embedding", "named2"},      {"norms, rope, gates, sums", "named"}};
  for (const auto& [part, css] : kColours) {
    if (name == part) return css;
  }
  return position % 2 == 0 ? "named" : "named2";
}

struct BarPart {
  std::string css, name;
  double value = 0;
};

// Parts side by side; `whole` is the full width.
std::string stacked_bar(const std::vector<BarPart>& parts, double whole, const std::string& label) {
  std::string body;
  double at = 0;
  for (const BarPart& part : parts) {
    if (part.value <= 0 || whole <= 0) continue;
    body += fmt::format(
        "<rect class=\"{}\" x=\"{:.3f}%\" width=\"{:.3f}%\" height=\"100%\"><title>{}: {}</title></rect>", part.css,
        at / whole * 100, part.value / whole * 100, markup(part.name), format_percent(part.value / whole));
    at += part.value;
  }
  return fmt::format(
      "<div class=\"bar\"><svg role=\"img\" aria-label=\"{}\"><rect class=\"rest\" width=\"100%\" "
      "height=\"100%\"/>{}</svg></div>\n",
      markup(label), body);
}

std::string swatch(const std::string& css) {
  return fmt::format("<svg class=\"swatch\" aria-hidden=\"true\"><rect class=\"{}\" width=\"12\" height=\"12\"/></svg>",
                     css);
}

std::string time_table(const PassKind& kind, const std::vector<BarPart>& parts) {
  std::string text =
      "<div class=\"scroll\"><table><tr><th>time in passes</th><th class=\"n\">in all</th><th class=\"n\">share</th>"
      "<th class=\"n\">per pass</th></tr>\n";
  for (const BarPart& part : parts) {
    text += fmt::format("<tr><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                        swatch(part.css), markup(part.name), format_seconds(part.value),
                        format_percent(per(part.value, kind.seconds)),
                        format_seconds(part.value / static_cast<double>(kind.passes)));
  }
  text += fmt::format(
      "<tr class=\"sum\"><td>total</td><td class=\"n\">{}</td><td class=\"n\"></td><td class=\"n\">{}</td></tr>\n",
      format_seconds(kind.seconds), format_seconds(kind.seconds / static_cast<double>(kind.passes)));
  return text + "</table></div>\n";
}

std::string reading_words(const PassKind& kind) {
  if (kind.read_bytes == 0) return "<p class=\"dim\">Nothing was read from storage in these passes.</p>\n";
  const double hidden = kind.reading_s - kind.exposed_s;
  std::string text = stacked_bar({{"reading", "hidden behind computing", hidden},
                                  {"waited", "exposed: computing waited", kind.exposed_s},
                                  {"rest", "storage idle", kind.seconds - kind.reading_s}},
                                 kind.seconds, "reading");
  return text + fmt::format(
                    "<p class=\"legend\"><span>{}reading, hidden behind computing {}</span><span>{}reading, "
                    "exposed {}</span><span>{}storage idle {}</span></p><p class=\"dim\">{} at {:.2f} GB/s while "
                    "reading, {:.2f} GB/s over all of the time.</p>\n",
                    swatch("reading"), format_percent(per(hidden, kind.seconds)), swatch("waited"),
                    format_percent(per(kind.exposed_s, kind.seconds)), swatch("rest"),
                    format_percent(per(kind.seconds - kind.reading_s, kind.seconds)), format_bytes(kind.read_bytes),
                    per(static_cast<double>(kind.read_bytes), kind.reading_s) / 1e9,
                    per(static_cast<double>(kind.read_bytes), kind.seconds) / 1e9);
}

std::string time_section(const Page& p) {
  if (p.summary.kinds.empty()) return "";
  std::string text = "<h2>Where the time went</h2>\n";
  for (const PassKind& kind : p.summary.kinds) {
    text +=
        fmt::format("<h3>{}: {}{}, {}, median {}</h3>\n", markup(kind.name), count_of(kind.passes, "pass", "passes"),
                    kind.tokens > 0 ? " of " + count_of(kind.tokens, "token", "tokens") + " in all" : "",
                    format_seconds(kind.seconds), format_seconds(kind.median_s));
    std::vector<BarPart> parts;
    for (const TimePart& part : kind.parts) {
      if (part.seconds < kNoTime) continue;
      parts.push_back({css_of_part(part.name, parts.size()),
                       part.name == "blocks" ? "computing on blocks of weights" : part.name, part.seconds});
    }
    text += stacked_bar(parts, kind.seconds, "where the time of " + kind.name + " went");
    text += time_table(kind, parts) + reading_words(kind);
  }
  std::string around;
  if (p.summary.between_s >= kNoTime) {
    around = fmt::format("Between passes (choosing tokens, printing): {} of {}.", format_seconds(p.summary.between_s),
                         format_seconds(seconds(p.summary.passes)));
  }
  if (p.summary.loading_s > 0) around += fmt::format(" Loading and init: {}.", format_seconds(p.summary.loading_s));
  return text + fmt::format("<p class=\"dim\">{}</p>\n", around);
}

std::string bar_row(const std::string& name, const std::string& css, double value, double most) {
  return fmt::format(
      "<span>{}</span><div><svg aria-hidden=\"true\"><rect class=\"{}\" width=\"{:.2f}%\" "
      "height=\"100%\"/></svg></div><span>{}</span>\n",
      markup(name), css, per(value, most) * 100, format_seconds(value));
}

std::string bound_section(const Page& p) {
  const PassKind* kind = main_kind(p);
  const double bound = bound_seconds(p.trace);
  if (kind == nullptr || kind->name != p.trace.bound_pass || bound <= 0) return "";
  const double most = std::max(bound, kind->p90_s);
  std::string text = "<h2>The bound, and what was reached</h2>\n<div class=\"rows\">";
  for (const auto& [name, s] : p.trace.bounds) text += bar_row(name, "named2", s, most);
  text += bar_row("bound T*", "bound", bound, most);
  text += bar_row("median pass", "computed", kind->median_s, most);
  text += bar_row("90th percentile", "attention", kind->p90_s, most);
  text += "</div>\n";
  return text + fmt::format(
                    "<p class=\"dim\">No schedule makes a {} pass shorter than the longest of the grey times, T*. "
                    "The median pass reached {} of it. The rates behind T* are {}.</p>\n",
                    markup(kind->name), format_percent(per(bound, kind->median_s)), markup(p.trace.rates));
}

// Lengths of the passes of one kind, in order: many share a point, its median.
std::string passes_section(const Page& p) {
  const PassKind* kind = main_kind(p);
  if (kind == nullptr || kind->passes < 3) return "";
  std::vector<double> lengths;
  for (const TracedPass& pass : p.summary.each) {
    if (p.trace.names[pass.name] == kind->name) lengths.push_back(seconds(pass.span));
  }
  const double bound = kind->name == p.trace.bound_pass ? bound_seconds(p.trace) : 0;
  const size_t together = (lengths.size() + kBins - 1) / kBins;
  std::vector<double> medians;
  for (size_t i = 0; i < lengths.size(); i += together) {
    std::vector<double> some(lengths.begin() + static_cast<ptrdiff_t>(i),
                             lengths.begin() + static_cast<ptrdiff_t>(std::min(lengths.size(), i + together)));
    std::nth_element(some.begin(), some.begin() + static_cast<ptrdiff_t>(some.size() / 2), some.end());
    medians.push_back(some[some.size() / 2]);
  }
  const double most = round_limit(std::max({*std::max_element(medians.begin(), medians.end()), bound, 1e-9}) * 1.05);
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < medians.size(); ++i) {
    points.emplace_back(1000.0 * static_cast<double>(i) / static_cast<double>(std::max<size_t>(1, medians.size() - 1)),
                        100 - 100 * medians[i] / most);
  }
  std::string body = svg_line(points, "computed");
  if (bound > 0) {
    body += fmt::format("<line class=\"roof\" x1=\"0\" x2=\"1000\" y1=\"{0:.2f}\" y2=\"{0:.2f}\"/>",
                        100 - 100 * bound / most);
  }
  std::vector<std::string> labels;
  for (size_t i = 0; i <= 4; ++i) labels.push_back(format_count((lengths.size() - 1) * i / 4 + 1));
  labels.front() = "pass " + labels.front();
  std::string text = fmt::format("<h2>Length of each {} pass</h2>\n", markup(kind->name));
  text += chart({.top = format_seconds(most),
                 .middle = format_seconds(most / 2),
                 .bottom = "0",
                 .along = labels,
                 .height = 150,
                 .body = stretched_svg({.width = 1000, .height = 100, .label = "length of each pass", .body = body})});
  std::string words = together > 1 ? fmt::format("Each point is the median of {} passes.", together) : "";
  if (bound > 0) words += "<span><i class=\"roof\"></i>bound T*</span>";
  return text + fmt::format("<p class=\"legend\">{}</p>\n", words);
}

std::string window_mark(const Page& p, const Span& span) {
  const double from =
      1000 * per(static_cast<double>(p.window.span.begin - span.begin), static_cast<double>(span.length()));
  const double width = 1000 * per(static_cast<double>(p.window.span.length()), static_cast<double>(span.length()));
  return fmt::format("<rect class=\"mark\" x=\"{:.1f}\" width=\"{:.1f}\" height=\"100\"/>", from, std::max(2.0, width));
}

// Values from bin `first` on.
std::string over_time(const Page& p, const std::vector<double>& values, size_t first, double most,
                      const std::string& css) {
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < values.size(); ++i) {
    if (points.empty() && i < first) continue;
    const double left = 1000.0 * static_cast<double>(i) / static_cast<double>(values.size());
    const double y = 100 - 100 * std::min(1.0, per(values[i], most));
    points.emplace_back(left, y);
    points.emplace_back(left + 1000.0 / static_cast<double>(values.size()), y);
  }
  return window_mark(p, p.summary.whole) + svg_area(points, 100, css == "reading" ? "readarea" : css) +
         svg_line(points, css);
}

std::string level(double value, double most, const std::string& css) {
  return fmt::format("<line class=\"{0}\" x1=\"0\" x2=\"1000\" y1=\"{1:.2f}\" y2=\"{1:.2f}\"/>", css,
                     100 - 100 * per(value, most));
}

std::string account_bar(const Page& p) {
  uint64_t total = 0;
  for (const auto& [name, bytes] : p.trace.account) total += std::min(bytes, UINT64_MAX / 2 - total);
  if (total == 0) return "";
  const double whole = static_cast<double>(std::max(total, p.trace.budget_bytes));
  std::vector<BarPart> parts;
  std::string table = "<div class=\"scroll\"><table><tr><th>planned for</th><th class=\"n\">memory</th></tr>\n";
  for (const auto& [name, bytes] : p.trace.account) {
    if (bytes == 0) continue;
    const std::string css = fmt::format("a{}", parts.size() % 15);
    parts.push_back({css, name, static_cast<double>(bytes)});
    table +=
        fmt::format("<tr><td>{}{}</td><td class=\"n\">{}</td></tr>\n", swatch(css), markup(name), format_bytes(bytes));
  }
  table += fmt::format("<tr><td>total</td><td class=\"n\">{}</td></tr>\n", format_bytes(total));
  if (p.trace.budget_bytes > 0) {
    table += fmt::format("<tr><td>budget</td><td class=\"n\">{}</td></tr>\n", format_bytes(p.trace.budget_bytes));
  }
  return stacked_bar(parts, whole, "what the memory is planned for") + table + "</table></div>\n";
}

std::string memory_section(const Page& p) {
  std::string text;
  if (p.summary.peak_bytes) {
    const std::vector<uint64_t> most_of_bin = memory_over_time(p.trace, p.summary.whole, kBins);
    const std::vector<double> values(most_of_bin.begin(), most_of_bin.end());
    const double budget = static_cast<double>(p.trace.budget_bytes);
    const double largest = std::max({static_cast<double>(*p.summary.peak_bytes), budget, 1.0 * kMiB});
    const double unit = largest * 1.02 < 1.0 * kGiB ? 1.0 * kMiB : 1.0 * kGiB;
    const double most = round_limit(largest * 1.02 / unit) * unit;
    auto label = [](double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); };
    const auto known = std::find_if(values.begin(), values.end(), [](double bytes) { return bytes > 0; });
    std::string body = over_time(p, values, static_cast<size_t>(known - values.begin()), most, "memory");
    if (budget > 0) body += level(budget, most, "limit");
    text += chart({.top = label(most),
                   .middle = label(most / 2),
                   .bottom = "0",
                   .along = time_labels(0, seconds(p.summary.whole)),
                   .height = 150,
                   .body = stretched_svg({.width = 1000, .height = 100, .label = "memory over time", .body = body})});
    text += fmt::format(
        "<p class=\"legend\"><span>{}memory in use, the highest of each {}</span>{}</p>\n", swatch("memory"),
        format_seconds(seconds(p.summary.whole) / static_cast<double>(kBins)),
        budget > 0 ? "<span><i class=\"limit\"></i>budget " + format_bytes(p.trace.budget_bytes) + "</span>" : "");
  }
  text += account_bar(p);
  if (text.empty()) return "";
  return fmt::format("<h2>Memory{}</h2>\n{}", p.trace.budget_bytes > 0 ? " against the budget" : "", text);
}

std::string bandwidth_section(const Page& p) {
  if (p.summary.read_count == 0) return "";
  const std::vector<double> rates = bandwidth(p.trace, p.summary.whole, kBins);
  const double roof = p.trace.storage_roof_bytes_per_s;
  const double most = round_limit(std::max({*std::max_element(rates.begin(), rates.end()), roof, 1e3}) / 1e9 * 1.02);
  std::string body = over_time(p, rates, 0, most * 1e9, "reading");
  if (roof > 0) body += level(roof, most * 1e9, "roof");
  auto label = [&](double gb) {
    return most < 0.1 ? fmt::format("{:.3g} MB/s", gb * 1e3) : fmt::format("{:.3g} GB/s", gb);
  };
  std::string text = "<h2>Bandwidth of reading</h2>\n";
  text += chart({.top = label(most),
                 .middle = label(most / 2),
                 .bottom = "0",
                 .along = time_labels(0, seconds(p.summary.whole)),
                 .height = 150,
                 .body = stretched_svg({.width = 1000, .height = 100, .label = "bandwidth over time", .body = body})});
  return text + fmt::format("<p class=\"legend\"><span>{}streamed blocks, mean of {}</span>{}</p>\n", swatch("reading"),
                            format_seconds(seconds(p.summary.whole) / static_cast<double>(kBins)),
                            roof > 0 ? fmt::format("<span><i class=\"roof\"></i>storage as probed, {:.2f} GB/s</span>",
                                                   roof / 1e9)
                                     : "");
}

std::string facts_section(const Page& p) {
  std::string text = "<h2>The run</h2>\n<table class=\"facts\">";
  for (const auto& [name, value] : p.trace.facts) {
    text += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", markup(name), markup(value));
  }
  text += fmt::format("<tr><th>trace</th><td>{}, {} from the first to the last event</td></tr>\n",
                      count_of(p.trace.events.size(), "event", "events"), format_seconds(seconds(p.summary.whole)));
  return text + "</table>\n";
}

std::string window_words(const Page& p) {
  const double from = static_cast<double>(p.window.span.begin) * 1e-9;
  if (!p.window.passes) return fmt::format("the time from {} on", format_seconds(from));
  const PassRange& r = *p.window.passes;
  const std::string which = r.first == r.last
                                ? fmt::format("pass {}", format_count(r.first))
                                : fmt::format("passes {} to {}", format_count(r.first), format_count(r.last));
  return fmt::format("{} (of 0 to {}), from {} on", which, format_count(p.summary.each.size() - 1),
                     format_seconds(from));
}

}  // namespace

Result<std::string> trace_report(const RecordedTrace& trace, const TraceReportOptions& options) {
  const TraceSummary summary = summarise(trace);
  if (options.passes && options.passes->last >= summary.each.size()) {
    if (summary.each.empty()) return usage_error(fmt::format("{}: has no passes: leave --pass out", trace.path));
    return usage_error(fmt::format("{}: has the passes 0 to {}: --pass {} is beyond", trace.path,
                                   summary.each.size() - 1, options.passes->last));
  }
  const TraceWindow window = options.passes ? window_of(summary, *options.passes) : default_window(trace, summary);
  const Page page{trace, summary, window};
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{0}</title>\n<style>{1}</style>"
      "</head>\n<body><main>\n<h1>{0}</h1>\n<p class=\"dim\">{2}. Residency and timeline show {3}.</p>\n",
      markup(trace.title), kTraceStyle, markup(trace.producer), window_words(page));
  if (trace.left_out > 0) {
    html += fmt::format("<p class=\"warn\">The last {} of the run are not in the trace: it was full.</p>\n",
                        count_of(trace.left_out, "event", "events"));
  }
  html += tiles(page) + time_section(page) + bound_section(page) + residency_section(trace, window) +
          timeline_section(trace, window) + passes_section(page) + memory_section(page) + bandwidth_section(page) +
          facts_section(page);
  return html + "</main></body></html>\n";
}

}  // namespace ridge
