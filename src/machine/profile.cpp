#include "machine/profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/cache_folder.h"
#include "base/units.h"

namespace ridge {
namespace {

// Raised when a reader of the older format would misread a file; unknown keys alone do not raise it.
constexpr int64_t kFormat = 1;
constexpr uint64_t kLargestFile = 4 * kMiB;

constexpr std::string_view kFigures[] = {
    "memory_gb_per_s", "memory_bytes",     "sram_gb_per_s", "sram_bytes", "storage_gb_per_s",      "f32_gops",
    "f16_gops",        "bf16_gops",        "int8_gops",     "power_w",    "paper_memory_gb_per_s", "paper_f32_gops",
    "paper_ridge_oi",  "memory_latency_ns"};
constexpr std::string_view kStreamNames[] = {"copy", "triad", "streaming_copy"};
constexpr std::string_view kStatusNames[] = {"published", "measured", "assumed"};

Error profile_error(std::string_view path, std::string_view what) {
  return bad_input(fmt::format("{}: {}; correct it, or write a new one with 'ridge probe'", path, what));
}

// ---- reading ----

Result<std::string> read_file(const std::string& path) {
  auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "re"), close);
  if (!file) {
    int error = errno;
    const char* hint = error == ENOENT ? "; write one with 'ridge probe'" : "";
    return bad_input(fmt::format("{}: cannot open the machine profile ({}){}", path, std::strerror(error), hint));
  }
  std::string text(kLargestFile + 1, '\0');
  size_t size = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get())) {
    return io_error(fmt::format("{}: cannot read the machine profile ({})", path, std::strerror(errno)));
  }
  if (size > kLargestFile) return profile_error(path, "larger than 4 MiB, so this is no machine profile");
  text.resize(size);
  return text;
}

// One table of the file, with the words for its errors.
struct Reader {
  const toml::table& table;
  std::string_view path;
  std::string where;  // "read point 3", or empty at the top

  Error error(std::string_view key, std::string_view expected) const {
    const toml::node* node = table.get(key);
    std::string line = node != nullptr && node->source().begin.line > 0
                           ? fmt::format("line {}: ", node->source().begin.line)
                           : std::string();
    std::string place = where.empty() ? std::string() : where + ": ";
    return profile_error(path, fmt::format("{}{}'{}' {}: expected {}", line, place, key,
                                           node == nullptr ? "is missing" : "is wrong", expected));
  }

  Result<std::string> text(std::string_view key) const {
    auto value = table[key].value_exact<std::string>();
    if (!value) return error(key, "a text in quotes");
    return *std::move(value);
  }
  Result<bool> flag(std::string_view key) const {
    auto value = table[key].value_exact<bool>();
    if (!value) return error(key, "true or false");
    return *value;
  }
  // A whole number from 1 to `most`.
  Result<int64_t> positive(std::string_view key, int64_t most) const {
    auto value = table[key].value_exact<int64_t>();
    if (!value || *value < 1 || *value > most) return error(key, fmt::format("a whole number from 1 to {}", most));
    return *value;
  }
  Result<double> rate(std::string_view key) const {
    auto value = table[key].value<double>();
    if (!value || !table[key].is_number() || !std::isfinite(*value) || *value <= 0) {
      return error(key, "a number above 0, in 1e9 bytes per second");
    }
    return *value;
  }
  Result<double> above_zero(std::string_view key) const {
    auto value = table[key].value<double>();
    if (!value || !table[key].is_number() || !std::isfinite(*value) || *value <= 0) {
      return error(key, "a number above 0");
    }
    return *value;
  }
  // 0 where it is missing: profiles of before, and of devices that nobody knows it of.
  Result<double> optional_rate(std::string_view key) const {
    if (table.get(key) == nullptr) return 0.0;
    return rate(key);
  }
  Result<Measured> measured(std::string_view key = "gb_per_s") const {
    Measured m;
    m.value = RIDGE_TRY(above_zero(key));
    m.low = RIDGE_TRY(above_zero("low"));
    m.high = RIDGE_TRY(above_zero("high"));
    m.runs = static_cast<int>(RIDGE_TRY(positive("runs", 1'000'000)));
    if (m.low > m.value) return error("low", fmt::format("no more than {}", key));
    if (m.high < m.value) return error("high", fmt::format("no less than {}", key));
    return m;
  }
};

constexpr int64_t kMostBytes = int64_t{1} << 60;
constexpr int64_t kMostCount = 1 << 16;  // of threads or requests

Result<ReadPoint> read_point(const Reader& in) {
  ReadPoint point;
  point.footprint_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("footprint_bytes", kMostBytes)));
  point.threads = static_cast<int>(RIDGE_TRY(in.positive("threads", kMostCount)));
  point.huge_pages = RIDGE_TRY(in.flag("huge_pages"));
  point.gb_per_s = RIDGE_TRY(in.measured());
  return point;
}

Result<StoragePoint> storage_point(const Reader& in) {
  StoragePoint point;
  point.request_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("request_bytes", kMostBytes)));
  point.depth = static_cast<int>(RIDGE_TRY(in.positive("depth", kMostCount)));
  point.direct = RIDGE_TRY(in.flag("direct"));
  point.gb_per_s = RIDGE_TRY(in.measured());
  return point;
}

Result<StreamPoint> stream_point(const Reader& in) {
  StreamPoint point;
  const std::string kind = RIDGE_TRY(in.text("kind"));
  auto known = std::find(std::begin(kStreamNames), std::end(kStreamNames), kind);
  if (known == std::end(kStreamNames)) return in.error("kind", fmt::format("one of {}", fmt::join(kStreamNames, ", ")));
  point.kind = static_cast<StreamKind>(known - std::begin(kStreamNames));
  point.footprint_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("footprint_bytes", kMostBytes)));
  point.threads = static_cast<int>(RIDGE_TRY(in.positive("threads", kMostCount)));
  point.gb_per_s = RIDGE_TRY(in.measured());
  return point;
}

Result<LatencyPoint> latency_point(const Reader& in) {
  LatencyPoint point;
  point.footprint_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("footprint_bytes", kMostBytes)));
  point.ns = RIDGE_TRY(in.measured("ns"));
  return point;
}

Result<MemoryLevel> memory_level(const Reader& in) {
  MemoryLevel level;
  level.from_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("from_bytes", kMostBytes)));
  level.to_bytes = static_cast<uint64_t>(RIDGE_TRY(in.positive("to_bytes", kMostBytes)));
  level.gb_per_s = RIDGE_TRY(in.rate("gb_per_s"));
  level.threads = static_cast<int>(RIDGE_TRY(in.positive("threads", kMostCount)));
  return level;
}

Result<PeakPoint> peak_point(const Reader& in) {
  PeakPoint point;
  point.type = RIDGE_TRY(in.text("type"));
  if (in.table.get("isa") != nullptr) point.isa = RIDGE_TRY(in.text("isa"));
  point.threads = static_cast<int>(RIDGE_TRY(in.positive("threads", kMostCount)));
  point.gops = RIDGE_TRY(in.measured("gops"));
  return point;
}

Result<FormatPoint> format_point(const Reader& in) {
  FormatPoint point;
  point.type = RIDGE_TRY(in.text("type"));
  point.gb_per_s = RIDGE_TRY(in.measured());
  return point;
}

Result<Figure> figure_of(const Reader& in) {
  Figure figure;
  figure.what = RIDGE_TRY(in.text("what"));
  const auto names = figure_names();
  if (std::find(names.begin(), names.end(), figure.what) == names.end()) {
    return in.error("what", fmt::format("one of {}", fmt::join(names, ", ")));
  }
  figure.value = RIDGE_TRY(in.above_zero("value"));
  const std::string status = RIDGE_TRY(in.text("status"));
  auto known = std::find(std::begin(kStatusNames), std::end(kStatusNames), status);
  if (known == std::end(kStatusNames))
    return in.error("status", fmt::format("one of {}", fmt::join(kStatusNames, ", ")));
  figure.status = static_cast<FigureStatus>(known - std::begin(kStatusNames));
  figure.source = RIDGE_TRY(in.text("source"));
  if (figure.source.empty()) return in.error("source", "where the value comes from");
  return figure;
}

// The array of tables `key`; absent means empty.
template <class Point>
Result<std::vector<Point>> points(const Reader& top, std::string_view key, std::string_view what,
                                  Result<Point> (*parse)(const Reader&)) {
  std::vector<Point> out;
  const toml::node* node = top.table.get(key);
  if (node == nullptr) return out;
  const toml::array* array = node->as_array();
  if (array == nullptr) return top.error(key, "a list of tables");
  for (size_t i = 0; i < array->size(); ++i) {
    const toml::table* table = array->get(i)->as_table();
    if (table == nullptr) return top.error(key, "a list of tables, and nothing else in it");
    out.push_back(RIDGE_TRY(parse({*table, top.path, fmt::format("{} {}", what, i + 1)})));
  }
  return out;
}

// ---- writing ----

// The text in quotes, with TOML's escapes.
std::string in_quotes(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

// Six digits: far finer than any measurement here.
std::string rates(const Measured& m, std::string_view key = "gb_per_s") {
  return fmt::format("{} = {:.6g}, low = {:.6g}, high = {:.6g}, runs = {}", key, m.value, m.low, m.high, m.runs);
}

// What `ridge probe` finds beside reads and storage; sections that are empty are left out.
std::string more_measurements(const MachineProfile& profile) {
  std::string out;
  auto section = [&](const char* name, const auto& points, auto line) {
    if (points.empty()) return;
    out += fmt::format("\n{} = [\n", name);
    for (const auto& point : points) out += fmt::format("  {{ {} }},\n", line(point));
    out += "]\n";
  };
  section("streams", profile.streams, [](const StreamPoint& p) {
    return fmt::format("kind = '{}', footprint_bytes = {}, threads = {}, {}", name_of(p.kind), p.footprint_bytes,
                       p.threads, rates(p.gb_per_s));
  });
  section("latencies", profile.latencies, [](const LatencyPoint& p) {
    return fmt::format("footprint_bytes = {}, {}", p.footprint_bytes, rates(p.ns, "ns"));
  });
  section("levels", profile.levels, [](const MemoryLevel& l) {
    return fmt::format("from_bytes = {}, to_bytes = {}, gb_per_s = {:.6g}, threads = {}", l.from_bytes, l.to_bytes,
                       l.gb_per_s, l.threads);
  });
  section("peaks", profile.peaks, [](const PeakPoint& p) {
    const std::string isa = p.isa.empty() ? "" : fmt::format("isa = {}, ", in_quotes(p.isa));
    return fmt::format("type = {}, {}threads = {}, {}", in_quotes(p.type), isa, p.threads, rates(p.gops, "gops"));
  });
  section("formats", profile.formats,
          [](const FormatPoint& p) { return fmt::format("type = {}, {}", in_quotes(p.type), rates(p.gb_per_s)); });
  return out;
}

std::string to_toml(const MachineProfile& profile) {
  std::string out = fmt::format(
      "# A machine in numbers; docs/probe.md explains them. Rates are 1e9 bytes per second: the median of the runs "
      "and\n"
      "# the quartiles around it.\n"
      "format = {}\nname = {}\nmeasured_at = {}\ncontended = {}\ncontention = {}\nstorage_path = {}\n",
      kFormat, in_quotes(profile.name), in_quotes(profile.measured_at), profile.contended,
      in_quotes(profile.contention), in_quotes(profile.storage_path));
  if (profile.int8_gops_per_core > 0) out += fmt::format("int8_gops_per_core = {:.6g}\n", profile.int8_gops_per_core);
  if (profile.float_gops_per_core > 0) {
    out += fmt::format("float_gops_per_core = {:.6g}\n", profile.float_gops_per_core);
  }
  if (profile.clock_ghz_before > 0) out += fmt::format("clock_ghz_before = {:.6g}\n", profile.clock_ghz_before);
  if (profile.clock_ghz_after > 0) out += fmt::format("clock_ghz_after = {:.6g}\n", profile.clock_ghz_after);
  out += "\nreads = [\n";
  for (const ReadPoint& point : profile.reads) {
    out += fmt::format("  {{ footprint_bytes = {}, threads = {}, huge_pages = {}, {} }},\n", point.footprint_bytes,
                       point.threads, point.huge_pages, rates(point.gb_per_s));
  }
  out += "]\n\nstorage = [\n";
  for (const StoragePoint& point : profile.storage) {
    out += fmt::format("  {{ request_bytes = {}, depth = {}, direct = {}, {} }},\n", point.request_bytes, point.depth,
                       point.direct, rates(point.gb_per_s));
  }
  out += "]\n" + more_measurements(profile);
  if (profile.figures.empty()) return out;
  out += "\nfigures = [\n";
  for (const Figure& f : profile.figures) {
    out += fmt::format("  {{ what = {}, value = {:.6g}, status = {}, source = {} }},\n", in_quotes(f.what), f.value,
                       in_quotes(std::string(name_of(f.status))), in_quotes(f.source));
  }
  return out + "]\n";
}

Result<void> write_whole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(fmt::format("{}: cannot write the machine profile ({})", path, std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// ---- looking up ----

// Of the measured thread counts the largest that is no more than asked for, or else the smallest.
int nearest_threads(const std::vector<int>& counts, int threads) {
  int below = 0, smallest = counts.front();
  for (int count : counts) {
    if (count <= threads) below = std::max(below, count);
    smallest = std::min(smallest, count);
  }
  return below > 0 ? below : smallest;
}

}  // namespace

std::span<const std::string_view> figure_names() { return kFigures; }

std::string_view name_of(StreamKind kind) { return kStreamNames[static_cast<size_t>(kind)]; }

std::string_view name_of(FigureStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

const Figure* MachineProfile::figure(std::string_view what) const {
  const Figure* best = nullptr;
  for (const Figure& f : figures) {
    if (f.what == what && (best == nullptr || f.status < best->status)) best = &f;
  }
  return best;
}

std::optional<double> MachineProfile::read_gb_per_s(uint64_t footprint_bytes, int threads) const {
  if (reads.empty()) {
    const Figure* published = figure("memory_gb_per_s");
    return published == nullptr ? std::nullopt : std::optional(published->value);
  }
  std::vector<int> counts;
  for (const ReadPoint& point : reads) counts.push_back(point.threads);
  const int measured_threads = nearest_threads(counts, threads);
  std::map<uint64_t, double> best;  // by footprint, over the page sizes
  for (const ReadPoint& point : reads) {
    if (point.threads != measured_threads) continue;
    double& rate = best[point.footprint_bytes];
    rate = std::max(rate, point.gb_per_s.value);
  }
  auto above = best.lower_bound(footprint_bytes);
  if (above == best.end()) return best.rbegin()->second;
  if (above == best.begin() || above->first == footprint_bytes) return above->second;
  auto below = std::prev(above);
  auto log_of = [](uint64_t bytes) { return std::log2(static_cast<double>(bytes)); };
  double part = (log_of(footprint_bytes) - log_of(below->first)) / (log_of(above->first) - log_of(below->first));
  return std::lerp(below->second, above->second, part);
}

std::optional<double> MachineProfile::peak_gops(std::string_view type, int threads) const {
  std::vector<int> counts;
  for (const PeakPoint& p : peaks) {
    if (p.type == type) counts.push_back(p.threads);
  }
  if (counts.empty()) return std::nullopt;
  const int measured_threads = nearest_threads(counts, threads);
  double best = 0;
  for (const PeakPoint& p : peaks) {
    if (p.type == type && p.threads == measured_threads) best = std::max(best, p.gops.value);
  }
  return best * threads / measured_threads;
}

int MachineProfile::most_threads() const {
  int most = 1;
  for (const ReadPoint& point : reads) most = std::max(most, point.threads);
  return most;
}

std::optional<double> MachineProfile::storage_gb_per_s() const {
  std::optional<double> direct, buffered;
  for (const StoragePoint& point : storage) {
    std::optional<double>& best = point.direct ? direct : buffered;
    best = std::max(best.value_or(0), point.gb_per_s.value);
  }
  if (direct || buffered) return direct ? direct : buffered;
  const Figure* published = figure("storage_gb_per_s");
  return published == nullptr ? std::nullopt : std::optional(published->value);
}

Result<MachineProfile> load_profile(const std::string& path) {
  std::string text = RIDGE_TRY(read_file(path));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return profile_error(path, fmt::format("line {}: not TOML: {}", error.source().begin.line, error.description()));
  }
  Reader top{parsed.table(), path, ""};
  int64_t format = RIDGE_TRY(top.positive("format", 1'000'000));
  if (format > kFormat) {
    return bad_input(
        fmt::format("{}: format {} was written by a newer ridge (this one knows {}); update ridge, or "
                    "write a new one with 'ridge probe'",
                    path, format, kFormat));
  }
  MachineProfile profile;
  profile.name = RIDGE_TRY(top.text("name"));
  profile.measured_at = RIDGE_TRY(top.text("measured_at"));
  profile.contended = RIDGE_TRY(top.flag("contended"));
  profile.contention = RIDGE_TRY(top.text("contention"));
  profile.storage_path = RIDGE_TRY(top.text("storage_path"));
  profile.int8_gops_per_core = RIDGE_TRY(top.optional_rate("int8_gops_per_core"));
  profile.float_gops_per_core = RIDGE_TRY(top.optional_rate("float_gops_per_core"));
  profile.reads = RIDGE_TRY(points(top, "reads", "read point", read_point));
  profile.storage = RIDGE_TRY(points(top, "storage", "storage point", storage_point));
  profile.streams = RIDGE_TRY(points(top, "streams", "stream point", stream_point));
  profile.latencies = RIDGE_TRY(points(top, "latencies", "latency", latency_point));
  profile.levels = RIDGE_TRY(points(top, "levels", "level", memory_level));
  profile.peaks = RIDGE_TRY(points(top, "peaks", "peak", peak_point));
  profile.formats = RIDGE_TRY(points(top, "formats", "format", format_point));
  profile.clock_ghz_before = RIDGE_TRY(top.optional_rate("clock_ghz_before"));
  profile.clock_ghz_after = RIDGE_TRY(top.optional_rate("clock_ghz_after"));
  profile.figures = RIDGE_TRY(points(top, "figures", "figure", figure_of));
  return profile;
}

Result<void> save_profile(const MachineProfile& profile, const std::string& path) {
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // a missing folder shows in the next call, with its own reason
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);

  std::string beside = path + ".XXXXXX";
  int fd = ::mkostemp(beside.data(), O_CLOEXEC);
  if (fd < 0) {
    return io_error(
        fmt::format("{}: cannot write the machine profile ({}); choose another place", path, std::strerror(errno)));
  }
  Result<void> written = write_whole(fd, to_toml(profile), path);
  (void)::fchmod(fd, 0644);
  if (::close(fd) != 0 && written.ok()) {
    written = io_error(fmt::format("{}: cannot write the machine profile ({})", path, std::strerror(errno)));
  }
  if (written.ok() && ::rename(beside.c_str(), path.c_str()) != 0) {
    written = io_error(
        fmt::format("{}: cannot write the machine profile ({}); choose another place", path, std::strerror(errno)));
  }
  if (!written.ok()) (void)::unlink(beside.c_str());
  return written;
}

std::string default_profile_path() {
  std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/machine.toml";
}

}  // namespace ridge
