#include "report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <queue>

#include "base/units.h"

namespace ridge {
namespace {

constexpr size_t kCapacity = 4096;  // events in the buffer of a trace, and in the window that puts them in order
constexpr size_t kText = 64 * kKiB;
constexpr size_t kReadAtOnce = 512;
constexpr uint64_t kOutputCached = 512 * kKiB;  // pages that OutputFile lets stand
constexpr int kFirstReadLane = 10;

std::string json_text(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
  if (plain) return fmt::format("\"{}\"", text);
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// In the order of their beginnings; those that begin together in the order in which they came.
struct Waiting {
  TraceEvent event;
  uint64_t number = 0;
};
struct Later {
  bool operator()(const Waiting& a, const Waiting& b) const {
    return a.event.begin != b.event.begin ? a.event.begin > b.event.begin : a.number > b.number;
  }
};

// Turns events, nearly in order, into lines of the file.
class Lines {
 public:
  Lines(OutputFile& out, const TraceInfo& info) : out_(out), info_(info) { text_.reserve(kText + 1024); }

  Result<void> head();
  Result<void> event(const TraceEvent& e);
  Result<void> tail();

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void line() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }
  Result<void> drain(size_t least = kText) {
    if (text_.size() < least) return {};
    RIDGE_TRY(out_.write(text_));
    text_.clear();
    return {};
  }
  Result<void> blocks();
  void name_lane(int lane, std::string_view name);
  void microseconds(std::string_view key, TraceClock::duration d);
  void counter(std::string_view name, std::string_view unit, TraceClock::time_point at, double value);
  void slice(int lane, const TraceEvent& e, std::string_view more);
  void read(const TraceEvent& e);
  std::string_view name_of(const TraceEvent& e) const;

  OutputFile& out_;
  const TraceInfo& info_;
  std::string text_;
  bool first_ = true;
  std::vector<TraceClock::time_point> read_lanes_;  // until when each is taken
  TraceClock::time_point device_free_;              // when the last read was over
  uint64_t passes_ = 0;
};

std::string_view Lines::name_of(const TraceEvent& e) const {
  if (e.name != nullptr) return e.name;
  if (e.block < info_.program->blocks.size()) return info_.program->blocks[e.block].name;
  return "work";
}

// What is not an event, as one object before the events: one line per block.
Result<void> Lines::head() {
  nlohmann::ordered_json about = {{"version", 1}, {"producer", info_.producer}, {"title", info_.title}};
  about["facts"] = info_.facts;
  about["budget_bytes"] = info_.budget_bytes;
  about["account"] = info_.account;
  about["bound_pass"] = info_.bound_pass;
  about["bounds"] = info_.bounds;
  about["rates"] = info_.rates;
  about["storage_roof_bytes_per_s"] = info_.storage_roof_bytes_per_s;
  about["left_out"] = info_.left_out;
  std::string text = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.pop_back();
  put("{{\"displayTimeUnit\":\"ms\",\n\"ridge\":{},\"blocks\":[", text);
  RIDGE_TRY(blocks());
  text_ += "]},\n\"traceEvents\":[";
  first_ = true;
  line();
  put("{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
      json_text(info_.producer + ": " + info_.title));
  name_lane(1, "passes");
  name_lane(2, "compute");
  name_lane(3, "waiting for storage");
  name_lane(4, "loading and init");
  name_lane(5, "release");
  return drain();
}

// [name, bytes in the file, bytes in memory, pinned, on demand]
Result<void> Lines::blocks() {
  const Program& program = *info_.program;
  for (BlockId b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    const bool pinned = info_.placement != nullptr && info_.placement->pinned[b] != 0;
    line();
    put("[{},{},{},{},{}]", json_text(block.name), block.storage_bytes, block.memory_bytes, pinned ? 1 : 0,
        block.on_demand ? 1 : 0);
    RIDGE_TRY(drain());
  }
  return {};
}

void Lines::name_lane(int lane, std::string_view name) {
  line();
  put("{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}", lane, json_text(name));
  line();
  put("{{\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{0}}}}}", lane);
}

// The unit of the format, with three decimals: nanoseconds.
void Lines::microseconds(std::string_view key, TraceClock::duration d) {
  const int64_t ns = std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  put("\"{}\":{}.{:03}", key, ns / 1000, ns % 1000);
}

void Lines::counter(std::string_view name, std::string_view unit, TraceClock::time_point at, double value) {
  line();
  put("{{\"ph\":\"C\",\"pid\":1,\"name\":\"{}\",", name);
  microseconds("ts", at - info_.start);
  put(",\"args\":{{\"{}\":{:.3f}}}}}", unit, value);
}

// A slice, or an instant where there is no length. `more` are further arguments, each with a comma before it.
void Lines::slice(int lane, const TraceEvent& e, std::string_view more) {
  line();
  const bool instant = e.begin == e.end && e.lane == Lane::release;
  put("{{\"ph\":\"{}\",\"pid\":1,\"tid\":{},\"cat\":\"{}\",\"name\":{},", instant ? "i\",\"s\":\"t" : "X", lane,
      name_of_lane(e.lane), json_text(name_of(e)));
  microseconds("ts", e.begin - info_.start);
  if (!instant) {
    text_ += ',';
    microseconds("dur", e.end - e.begin);
  }
  std::string arguments;
  if (e.block != kNoBlock) arguments += fmt::format(",\"block\":{}", e.block);
  if (e.bytes != 0) arguments += fmt::format(",\"bytes\":{}", e.bytes);
  arguments += more;
  if (!arguments.empty()) put(",\"args\":{{{}}}", std::string_view(arguments).substr(1));
  text_ += '}';
}

// Reads overlap, and slices of one lane must not: each goes to the first lane that is free. A device that has several
// requests serves them one after the other as far as bandwidth is concerned, so the rate counts from when it was free.
void Lines::read(const TraceEvent& e) {
  auto lane = std::find_if(read_lanes_.begin(), read_lanes_.end(), [&](auto free) { return free <= e.begin; });
  if (lane == read_lanes_.end()) {
    name_lane(kFirstReadLane + static_cast<int>(read_lanes_.size()), fmt::format("reading {}", read_lanes_.size() + 1));
    read_lanes_.push_back(e.end);
    lane = read_lanes_.end() - 1;
  }
  *lane = e.end;
  const TraceClock::time_point begin = std::clamp(device_free_, e.begin, std::max(e.begin, e.end));
  const double seconds = std::chrono::duration<double>(e.end - begin).count();
  const double rate = seconds > 0 ? static_cast<double>(e.bytes) / seconds / 1e9 : 0;
  slice(kFirstReadLane + static_cast<int>(lane - read_lanes_.begin()), e,
        seconds > 0 ? fmt::format(",\"GB/s\":{:.3f}", rate) : "");
  if (seconds <= 0) return;
  if (begin > device_free_ && device_free_ != TraceClock::time_point{}) counter("reading", "GB/s", device_free_, 0);
  counter("reading", "GB/s", begin, rate);
  device_free_ = e.end;
}

Result<void> Lines::event(const TraceEvent& e) {
  switch (e.lane) {
    case Lane::pass:
      slice(1, e, fmt::format(",\"pass\":{},\"tokens\":{}", passes_++, e.tokens));
      break;
    case Lane::compute:
      slice(2, e, "");
      break;
    case Lane::wait:
      slice(3, e, "");
      break;
    case Lane::init:
      slice(4, e, "");
      break;
    case Lane::release:
      slice(5, e, "");
      break;
    case Lane::read:
      read(e);
      break;
    case Lane::memory:
      counter("memory", "MiB", e.begin, static_cast<double>(e.bytes) / kMiB);
      break;
  }
  return drain();
}

Result<void> Lines::tail() {
  if (device_free_ != TraceClock::time_point{}) counter("reading", "GB/s", device_free_, 0);
  text_ += "\n]}\n";
  return drain(0);
}

}  // namespace

TraceOptions ChromeTraceWriter::trace_options() {
  constexpr uint64_t kBuffer = kCapacity * sizeof(TraceEvent);
  constexpr uint64_t kWindow = kCapacity * sizeof(Waiting) + kReadAtOnce * sizeof(TraceEvent);
  return {.capacity = kCapacity, .sink_bytes = SpoolFile::cached_bytes(kBuffer) + kWindow + 2 * kText + kOutputCached};
}

Result<std::unique_ptr<ChromeTraceWriter>> ChromeTraceWriter::create(const std::string& path) {
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  const size_t slash = out.path().rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : out.path().substr(0, slash);
  SpoolFile spool = RIDGE_TRY(SpoolFile::create(folder));
  return std::unique_ptr<ChromeTraceWriter>(new ChromeTraceWriter(std::move(spool), std::move(out)));
}

void ChromeTraceWriter::take(std::span<const TraceEvent> events) {
  const size_t room = static_cast<size_t>(std::min<uint64_t>(events.size(), kMostEvents - events_));
  left_out_ += events.size() - room;
  events_ += room;
  if (error_ || room == 0) return;
  auto done = spool_.append({reinterpret_cast<const uint8_t*>(events.data()), room * sizeof(TraceEvent)});
  if (!done.ok()) error_ = std::move(done).error();
}

Result<void> ChromeTraceWriter::finish(const TraceInfo& info) {
  RIDGE_CHECK(info.program != nullptr, "a trace belongs to a program");
  if (error_) return *error_;
  Lines lines(out_, info);
  RIDGE_TRY(lines.head());
  std::vector<Waiting> storage;
  storage.reserve(kCapacity);
  std::priority_queue<Waiting, std::vector<Waiting>, Later> window(Later{}, std::move(storage));
  std::vector<TraceEvent> chunk(kReadAtOnce);
  uint64_t number = 0;
  auto pop = [&]() -> Result<void> {
    const TraceEvent event = window.top().event;
    window.pop();
    return lines.event(event);
  };
  while (number < events_) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(kReadAtOnce, events_ - number));
    RIDGE_TRY(spool_.read(number * sizeof(TraceEvent),
                          {reinterpret_cast<uint8_t*>(chunk.data()), count * sizeof(TraceEvent)}));
    for (size_t i = 0; i < count; ++i) {
      if (window.size() >= kCapacity) RIDGE_TRY(pop());
      window.push({chunk[i], number++});
    }
  }
  while (!window.empty()) RIDGE_TRY(pop());
  RIDGE_TRY(lines.tail());
  return out_.commit();
}

}  // namespace ridge
