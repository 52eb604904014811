#include "report/trace_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "base/printable.h"
#include "base/units.h"

namespace ridge {
namespace {

constexpr uint64_t kMostBytes = 2 * kGiB;
constexpr double kMostMicroseconds = 1e13;  // four months
constexpr const char* kNotOurs =
    "is no trace of ridge: `ridge report` reads what --trace of ridge run, bench or sim wrote";

// Turns the parser's values into a RecordedTrace. The first thing that makes no sense is kept, and ends the parsing.
class Reader {
 public:
  explicit Reader(RecordedTrace& trace) : trace_(trace) {}

  // For nlohmann::json::parse(): every event is taken when it is complete, and then forgotten.
  bool on(int depth, nlohmann::json::parse_event_t what, nlohmann::json& value);
  Result<void> finish();
  bool failed() const { return error_.has_value(); }

 private:
  void fail(std::string what) {
    if (!error_) error_ = std::move(what);
  }
  void about(const nlohmann::json& value);
  void block(const nlohmann::json& value);
  void event(const nlohmann::json& value);
  void counter(const nlohmann::json& value);
  bool times(const nlohmann::json& value, RecordedEvent& e);
  void arguments(const nlohmann::json& value, RecordedEvent& e);
  uint32_t index_of(const std::string& name);

  template <class T>
  void get(const nlohmann::json& from, const char* key, T& into) {
    auto found = from.find(key);
    if (found == from.end()) return fail(fmt::format("\"ridge\" has no \"{}\"", key));
    take(*found, fmt::format("\"{}\" of \"ridge\"", key), into);
  }
  void take(const nlohmann::json& value, const std::string& where, std::string& into) {
    if (!value.is_string()) return fail(where + " is no text");
    into = value.get<std::string>();
  }
  void take(const nlohmann::json& value, const std::string& where, uint64_t& into) {
    if (!value.is_number_unsigned()) return fail(where + " is no count");
    into = value.get<uint64_t>();
  }
  void take(const nlohmann::json& value, const std::string& where, double& into) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      return fail(where + " is no number of 0 or more");
    }
    into = value.get<double>();
  }
  void take(const nlohmann::json& value, const std::string& where, bool& into) {
    if (!value.is_boolean()) return fail(where + " is neither true nor false");
    into = value.get<bool>();
  }
  template <class T>
  void take(const nlohmann::json& value, const std::string& where, std::vector<std::pair<std::string, T>>& into) {
    if (!value.is_array()) return fail(where + " is no list");
    for (const nlohmann::json& row : value) {
      if (!row.is_array() || row.size() != 2) return fail(where + " has a row that is no pair");
      std::pair<std::string, T> pair{};
      take(row[0], where, pair.first);
      take(row[1], where, pair.second);
      into.push_back(std::move(pair));
    }
  }

  RecordedTrace& trace_;
  std::string key_;  // of the outermost object
  bool seen_about_ = false, seen_events_ = false;
  uint64_t number_ = 0;  // of the event
  std::unordered_map<std::string, uint32_t> names_;
  std::optional<std::string> error_;
};

bool Reader::on(int depth, nlohmann::json::parse_event_t what, nlohmann::json& value) {
  using Event = nlohmann::json::parse_event_t;
  if (depth == 0 && what == Event::array_start) return false;
  if (depth == 1 && what == Event::key) {
    key_ = value.get<std::string>();
    return key_ == "traceEvents" || key_ == "ridge";  // the rest may be of any size
  }
  const bool element = key_ == "traceEvents" && depth == 2;
  if (element && (what == Event::value || what == Event::array_start)) {
    fail(fmt::format("event {} is no object", ++number_));
    return false;
  }
  if (key_ == "traceEvents" && depth == 1 && what == Event::array_start) seen_events_ = true;
  if (element && what == Event::object_end) {
    event(value);
    return false;
  }
  if (key_ == "ridge" && depth == 1 && what == Event::object_end) {
    about(value);
    return false;
  }
  return true;
}

void Reader::about(const nlohmann::json& value) {
  if (seen_about_) return fail("\"ridge\" is there twice");
  seen_about_ = true;
  if (error_) return;
  uint64_t version = 0;
  get(value, "version", version);
  if (!error_ && version != 1) return fail(fmt::format("its version is {}, this ridge reads 1", version));
  get(value, "producer", trace_.producer);
  get(value, "title", trace_.title);
  get(value, "facts", trace_.facts);
  get(value, "budget_bytes", trace_.budget_bytes);
  get(value, "account", trace_.account);
  get(value, "bound_pass", trace_.bound_pass);
  get(value, "bounds", trace_.bounds);
  get(value, "rates", trace_.rates);
  get(value, "storage_roof_bytes_per_s", trace_.storage_roof_bytes_per_s);
  get(value, "left_out", trace_.left_out);
  auto blocks = value.find("blocks");
  if (blocks == value.end() || !blocks->is_array()) return fail("\"ridge\" has no list of \"blocks\"");
  for (const nlohmann::json& row : *blocks) block(row);
}

void Reader::block(const nlohmann::json& value) {
  const std::string where = fmt::format("block {}", trace_.blocks.size());
  if (!value.is_array() || value.size() != 5) return fail(where + " is no list of five");
  RecordedBlock b;
  uint64_t pinned = 0, on_demand = 0;
  take(value[0], where, b.name);
  take(value[1], where, b.storage_bytes);
  take(value[2], where, b.memory_bytes);
  take(value[3], where, pinned);
  take(value[4], where, on_demand);
  b.pinned = pinned != 0;
  b.on_demand = on_demand != 0;
  trace_.blocks.push_back(std::move(b));
}

uint32_t Reader::index_of(const std::string& name) {
  auto [at, added] = names_.try_emplace(name, static_cast<uint32_t>(trace_.names.size()));
  if (added) trace_.names.push_back(name);
  return at->second;
}

bool Reader::times(const nlohmann::json& value, RecordedEvent& e) {
  auto number = [&](const char* key) -> double {
    auto found = value.find(key);
    if (found == value.end() || !found->is_number()) return std::nan("");
    return found->get<double>();
  };
  const double begin = number("ts"), length = value.value("ph", "") == "X" ? number("dur") : 0.0;
  if (!(begin >= 0 && begin < kMostMicroseconds && length >= 0 && length < kMostMicroseconds)) {
    fail(fmt::format("event {}: \"ts\" and \"dur\" have to be microseconds from 0 up", number_));
    return false;
  }
  e.begin_ns = std::llround(begin * 1000);
  e.end_ns = e.begin_ns + std::llround(length * 1000);
  return true;
}

void Reader::arguments(const nlohmann::json& value, RecordedEvent& e) {
  auto args = value.find("args");
  if (args == value.end()) return;
  auto count = [&](const char* key, uint64_t most) -> std::optional<uint64_t> {
    auto found = args->find(key);
    if (found == args->end()) return std::nullopt;
    if (!found->is_number_unsigned() || found->get<uint64_t>() > most) {
      fail(fmt::format("event {}: \"{}\" is no usable number", number_, key));
      return std::nullopt;
    }
    return found->get<uint64_t>();
  };
  constexpr uint64_t kMostBytesOfEvent = uint64_t{1} << 50;
  e.bytes = count("bytes", kMostBytesOfEvent).value_or(0);
  e.tokens = static_cast<uint32_t>(count("tokens", UINT32_MAX).value_or(0));
  e.block = static_cast<BlockId>(count("block", kNoBlock - 1).value_or(kNoBlock));
}

void Reader::counter(const nlohmann::json& value) {
  auto name = value.find("name");
  if (name == value.end() || *name != "memory") return;  // bandwidth is computed anew
  RecordedEvent e{.lane = Lane::memory};
  if (!times(value, e)) return;
  auto args = value.find("args");
  auto mib = args == value.end() ? args : args->find("MiB");
  const bool good = args != value.end() && args->is_object() && mib != args->end() && mib->is_number() &&
                    mib->get<double>() >= 0 && mib->get<double>() < 1e9;
  if (!good) return fail(fmt::format("event {}: a counter of memory has no \"MiB\"", number_));
  e.bytes = static_cast<uint64_t>(mib->get<double>() * static_cast<double>(kMiB));
  e.name = index_of("memory");
  trace_.events.push_back(e);
}

// Events of other phases and categories may have been added by other tools: they are left alone.
void Reader::event(const nlohmann::json& value) {
  ++number_;
  if (error_) return;
  auto text = [&](const char* key) -> std::string {
    auto found = value.find(key);
    return found != value.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string phase = text("ph"), category = text("cat");
  if (phase.empty()) return fail(fmt::format("event {}: has no \"ph\"", number_));
  if (phase == "C") return counter(value);
  if (phase != "X" && phase != "i") return;
  for (size_t lane = 0; lane < kLaneCount; ++lane) {
    if (category != name_of_lane(static_cast<Lane>(lane))) continue;
    if (text("name").empty()) return fail(fmt::format("event {}: has no \"name\"", number_));
    RecordedEvent e{.lane = static_cast<Lane>(lane)};
    if (!times(value, e)) return;
    arguments(value, e);
    e.name = index_of(text("name"));
    trace_.events.push_back(e);
    return;
  }
}

Result<void> Reader::finish() {
  if (!seen_about_ || (!error_ && !seen_events_)) return bad_input(fmt::format("{}: {}", trace_.path, kNotOurs));
  if (!error_ && trace_.events.empty()) fail("no event is in it");
  for (size_t i = 0; !error_ && i < trace_.events.size(); ++i) {
    const RecordedEvent& e = trace_.events[i];
    if (e.block != kNoBlock && e.block >= trace_.blocks.size()) {
      fail(fmt::format("an event is about block {}, of {}", e.block, trace_.blocks.size()));
    }
  }
  if (error_) return bad_input(fmt::format("{}: {}: the trace is damaged; record it again", trace_.path, *error_));
  std::stable_sort(trace_.events.begin(), trace_.events.end(),
                   [](const RecordedEvent& a, const RecordedEvent& b) { return a.begin_ns < b.begin_ns; });
  return {};
}

}  // namespace

Result<RecordedTrace> read_trace(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return bad_input(fmt::format("{}: {}: give the path of a trace", path, std::generic_category().message(errno)));
  }
  if (!S_ISREG(info.st_mode)) return bad_input(fmt::format("{}: is no file: give the path of a trace", path));
  if (static_cast<uint64_t>(info.st_size) > kMostBytes) {
    return bad_input(fmt::format("{}: is larger than {}: record a shorter run", path, format_bytes(kMostBytes)));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(fmt::format("{}: cannot be opened: check its permissions", path));
  RecordedTrace trace;
  trace.path = path;
  Reader reader(trace);
  try {
    const nlohmann::json rest =
        nlohmann::json::parse(file, [&](int depth, nlohmann::json::parse_event_t what, nlohmann::json& value) {
          return reader.on(depth, what, value);
        });
  } catch (const nlohmann::json::parse_error& e) {
    if (!reader.failed()) {
      return bad_input(
          fmt::format("{}: is no whole JSON file, byte {} cannot be read on: record it again", path, e.byte), e.byte);
    }
  } catch (const nlohmann::json::out_of_range&) {
    return bad_input(fmt::format("{}: holds a number beyond all limits: the trace is damaged; record it again", path));
  } catch (const nlohmann::json::exception& e) {
    return bad_input(fmt::format("{}: {} ({})", path, kNotOurs, printable(e.what())));
  }
  RIDGE_TRY(reader.finish());
  return trace;
}

}  // namespace ridge
