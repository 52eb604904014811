// ridge report: a trace as one HTML page.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "format/output_file.h"
#include "report/trace_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge run model.gguf --memory 300M -p Hi -n 32 --trace out.json\n"
    "  ridge report out.json                  (writes out.html)\n"
    "  ridge report out.json -o report.html --pass 10-12";

struct Flags {
  std::string trace;
  std::optional<std::string> out, passes;
};

// "12" or "10-12"
Result<PassRange> parse_passes(const std::string& text) {
  PassRange range;
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, range.first);
  bool good = first.ec == std::errc();
  range.last = range.first;
  if (good && first.ptr != end) {
    auto last = std::from_chars(first.ptr + 1, end, range.last);
    good = *first.ptr == '-' && last.ec == std::errc() && last.ptr == end;
  }
  if (!good || range.last < range.first) {
    return usage_error(fmt::format("--pass {}: is not understood: write a pass or a range, such as 12 or 10-12", text));
  }
  return range;
}

std::string default_output(const std::string& trace) {
  const bool json = trace.ends_with(".json");
  return (json ? trace.substr(0, trace.size() - 5) : trace) + ".html";
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

Result<void> run(const Flags& flags) {
  TraceReportOptions options;
  if (flags.passes) options.passes = RIDGE_TRY(parse_passes(*flags.passes));
  const std::string path = flags.out.value_or(default_output(flags.trace));
  if (same_file(flags.trace, path)) return usage_error(fmt::format("-o {}: is the trace itself: name another", path));
  const RecordedTrace trace = RIDGE_TRY(read_trace(flags.trace));
  const std::string html = RIDGE_TRY(trace_report(trace, options));
  if (path == "-") return print(html);
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(out.write(html));
  RIDGE_TRY(out.commit());
  note(fmt::format("{}: {} events in {}", path, format_count(trace.events.size()), format_bytes(html.size())));
  return {};
}

}  // namespace

void add_report(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("report", "make an HTML page of a trace");
  command->add_option("TRACE", flags->trace, "what --trace wrote")->required()->type_name("");
  command->add_option("-o,--output", flags->out, "the page (default: TRACE.html; - is stdout)")->type_name("FILE");
  command->add_option("--pass", flags->passes, "draw these passes, from 0 (default: the last)")->type_name("N[-M]");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
