#include "report/trace_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"

namespace ridge {
namespace {

// More events are neither drawn nor seen.
constexpr size_t kMostDrawn = 60'000;
// Names of passes and of work that are told apart; a file may hold any number.
constexpr size_t kMostKinds = 8, kMostNamed = 12;

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// What two spans have in common; empty where they do not meet.
Span common(const Span& a, const Span& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Spans that touch or overlap become one.
void merge(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Span& s : spans) {
    if (kept > 0 && s.begin <= spans[kept - 1].end) {
      spans[kept - 1].end = std::max(spans[kept - 1].end, s.end);
    } else {
      spans[kept++] = s;
    }
  }
  spans.resize(kept);
}

// `from` without `these`; both merged.
std::vector<Span> without(const std::vector<Span>& from, const std::vector<Span>& these) {
  std::vector<Span> left;
  size_t t = 0;
  for (Span s : from) {
    while (t < these.size() && these[t].end <= s.begin) ++t;
    for (size_t u = t; u < these.size() && these[u].begin < s.end; ++u) {
      if (these[u].begin > s.begin) left.push_back({s.begin, these[u].begin});
      s.begin = std::max(s.begin, these[u].end);
    }
    if (s.begin < s.end) left.push_back(s);
  }
  return left;
}

// How much of a span lies within merged ones.
int64_t time_within(const std::vector<Span>& spans, const Span& span) {
  auto at = std::partition_point(spans.begin(), spans.end(), [&](const Span& s) { return s.end <= span.begin; });
  int64_t ns = 0;
  for (; at != spans.end() && at->begin < span.end; ++at) ns += common(*at, span).length();
  return ns;
}

// Tells `each` what a span has in common with passes, which are in order and do not overlap.
template <class Each>
void over_passes(const std::vector<TracedPass>& passes, const Span& span, Each each) {
  auto at =
      std::partition_point(passes.begin(), passes.end(), [&](const TracedPass& p) { return p.span.end <= span.begin; });
  for (; at != passes.end() && at->span.begin < std::max(span.end, span.begin + 1); ++at) {
    each(static_cast<size_t>(at - passes.begin()), common(at->span, span));
  }
}

// Sums by kind of pass, while the events go by.
class Sums {
 public:
  Sums(const RecordedTrace& trace, TraceSummary& summary) : trace_(trace), summary_(summary) {}

  void find_passes();
  void find_causes();
  void add_events();
  void finish();

 private:
  struct Waits {
    double storage = 0, init = 0, release = 0;
  };
  size_t kind_of(size_t pass) const { return kinds_.at(summary_.each[pass].name); }
  void add_compute(const RecordedEvent& e, const Span& span);
  void add_wait(const Span& span);
  void add_read(const RecordedEvent& e, const Span& device);

  const RecordedTrace& trace_;
  TraceSummary& summary_;
  std::map<uint32_t, size_t> kinds_;
  std::vector<double> blocks_;                        // by kind
  std::vector<Waits> waits_;                          // by kind
  std::vector<std::map<std::string, double>> named_;  // by kind
  std::vector<std::vector<double>> lengths_;          // of the passes, by kind
  // When a block was made ready, and when one was released while none was read or made ready: what waits were for.
  std::vector<Span> inits_, releases_;
};

void Sums::find_passes() {
  for (const RecordedEvent& e : trace_.events) {
    if (e.lane != Lane::pass) continue;
    // A pass within another makes no sense; its time would count twice.
    if (!summary_.each.empty() && e.begin_ns < summary_.each.back().span.end) continue;
    summary_.each.push_back({.span = {e.begin_ns, e.end_ns}, .name = e.name, .tokens = e.tokens});
    auto [at, added] = kinds_.try_emplace(e.name, std::min(summary_.kinds.size(), kMostKinds - 1));
    if (added && summary_.kinds.size() < kMostKinds) {
      const bool last = summary_.kinds.size() + 1 == kMostKinds;
      summary_.kinds.push_back({.name = last ? "other passes" : trace_.names[e.name]});
    }
    PassKind& kind = summary_.kinds[at->second];
    ++kind.passes;
    kind.tokens += e.tokens;
    kind.seconds += seconds(e.end_ns - e.begin_ns);
    lengths_.resize(summary_.kinds.size());
    lengths_[at->second].push_back(seconds(e.end_ns - e.begin_ns));
  }
  blocks_.resize(summary_.kinds.size());
  waits_.resize(summary_.kinds.size());
  named_.resize(summary_.kinds.size());
}

// Only blocks with an init of their own (contexts) make anyone wait for one, or for a release.
void Sums::find_causes() {
  std::vector<Span> reads;
  for (const RecordedEvent& e : trace_.events) {
    const Span span{e.begin_ns, e.end_ns};
    if (e.block == kNoBlock || span.length() <= 0) continue;
    if (e.lane == Lane::init) inits_.push_back(span);
    if (e.lane == Lane::release) releases_.push_back(span);
    if (e.lane == Lane::read) reads.push_back(span);
  }
  for (auto* spans : {&inits_, &releases_, &reads}) merge(*spans);
  releases_ = inits_.empty() ? std::vector<Span>() : without(without(releases_, inits_), reads);
}

void Sums::add_compute(const RecordedEvent& e, const Span& span) {
  over_passes(summary_.each, span, [&](size_t pass, const Span& part) {
    const size_t kind = kind_of(pass);
    (e.block != kNoBlock ? blocks_[kind] : named_[kind][trace_.names[e.name]]) += seconds(part.length());
  });
}

void Sums::add_wait(const Span& span) {
  over_passes(summary_.each, span, [&](size_t pass, const Span& part) {
    summary_.each[pass].wait_ns += part.length();
    const int64_t init = time_within(inits_, part), release = time_within(releases_, part);
    Waits& waits = waits_[kind_of(pass)];
    waits.init += seconds(init);
    waits.release += seconds(release);
    waits.storage += seconds(part.length() - init - release);
  });
}

// Device spans do not overlap, so their times add up.
void Sums::add_read(const RecordedEvent& e, const Span& device) {
  ++summary_.read_count;
  summary_.read_bytes += e.bytes;
  over_passes(summary_.each, device, [&](size_t pass, const Span& part) {
    if (device.length() <= 0) return;
    const double share = static_cast<double>(part.length()) / static_cast<double>(device.length());
    PassKind& kind = summary_.kinds[kind_of(pass)];
    kind.read_bytes += static_cast<uint64_t>(share * static_cast<double>(e.bytes));
    kind.reading_s += seconds(part.length());
  });
}

void Sums::add_events() {
  const std::vector<Span> device = device_spans(trace_);
  int64_t computed = INT64_MIN, waited = INT64_MIN;  // until then
  for (size_t i = 0; i < trace_.events.size(); ++i) {
    const RecordedEvent& e = trace_.events[i];
    const Span span{e.begin_ns, e.end_ns};
    // A file may say that two things were computed at once; no time counts twice.
    auto rest = [&](int64_t& until) {
      const Span s{std::max(span.begin, until), std::max(span.end, until)};
      until = s.end;
      return s;
    };
    if (e.lane == Lane::compute) add_compute(e, rest(computed));
    if (e.lane == Lane::wait) add_wait(rest(waited));
    if (e.lane == Lane::read) add_read(e, device[i]);
    if (e.lane == Lane::init) summary_.loading_s += seconds(span.length());
    if (e.lane == Lane::memory) summary_.peak_bytes = std::max(summary_.peak_bytes.value_or(0), e.bytes);
  }
}

void Sums::finish() {
  for (size_t k = 0; k < summary_.kinds.size(); ++k) {
    PassKind& kind = summary_.kinds[k];
    std::sort(lengths_[k].begin(), lengths_[k].end());
    kind.median_s = quantile(lengths_[k], 0.5);
    kind.p10_s = quantile(lengths_[k], 0.1);
    kind.p90_s = quantile(lengths_[k], 0.9);
    const Waits& waits = waits_[k];
    kind.exposed_s = std::min(waits.storage, kind.reading_s);
    double rest = kind.seconds - blocks_[k] - waits.storage - waits.init - waits.release;
    kind.parts.push_back({"blocks", blocks_[k]});
    std::vector<TimePart> named;
    for (const auto& [name, s] : named_[k]) named.push_back({name, s});
    std::stable_sort(named.begin(), named.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
    for (size_t n = kMostNamed; n < named.size(); ++n) named[kMostNamed - 1].seconds += named[n].seconds;
    if (named.size() > kMostNamed) {
      named.resize(kMostNamed);
      named.back().name = "other work";
    }
    for (TimePart& part : named) {
      rest -= part.seconds;
      kind.parts.push_back(std::move(part));
    }
    kind.parts.push_back({"waiting for storage", waits.storage});
    kind.parts.push_back({"waiting for init", waits.init});
    kind.parts.push_back({"waiting for release", waits.release});
    kind.parts.push_back({"the rest", std::max(0.0, rest)});
  }
  summary_.passes = summary_.whole;
  if (summary_.each.empty()) return;
  summary_.passes = {summary_.each.front().span.begin, summary_.each.back().span.end};
  summary_.between_s = seconds(summary_.passes.length());
  for (const TracedPass& pass : summary_.each) summary_.between_s -= seconds(pass.span.length());
}

}  // namespace

TraceSummary summarise(const RecordedTrace& trace) {
  TraceSummary summary;
  summary.whole = {trace.events.front().begin_ns, trace.events.front().end_ns};
  for (const RecordedEvent& e : trace.events) summary.whole.end = std::max(summary.whole.end, e.end_ns);
  Sums sums(trace, summary);
  sums.find_passes();
  sums.find_causes();
  sums.add_events();
  sums.finish();
  return summary;
}

std::vector<Span> device_spans(const RecordedTrace& trace) {
  std::vector<Span> spans(trace.events.size());
  std::vector<size_t> reads;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].lane == Lane::read) reads.push_back(i);
  }
  std::stable_sort(reads.begin(), reads.end(),
                   [&](size_t a, size_t b) { return trace.events[a].end_ns < trace.events[b].end_ns; });
  int64_t free = INT64_MIN;
  for (size_t i : reads) {
    const RecordedEvent& e = trace.events[i];
    spans[i] = {std::clamp(free, e.begin_ns, e.end_ns), e.end_ns};
    free = e.end_ns;
  }
  return spans;
}

std::vector<double> bandwidth(const RecordedTrace& trace, const Span& span, size_t bins) {
  std::vector<double> bytes(bins, 0.0);
  const double width = static_cast<double>(span.length()) / static_cast<double>(bins);
  if (width <= 0) return bytes;
  const std::vector<Span> device = device_spans(trace);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].lane != Lane::read) continue;
    // One that took no time still has to be somewhere.
    const double begin = static_cast<double>(device[i].begin - span.begin) / width;
    const double end = std::max(static_cast<double>(device[i].end - span.begin) / width, begin + 1e-9);
    const double rate = static_cast<double>(trace.events[i].bytes) / (end - begin);
    const size_t first = static_cast<size_t>(std::clamp(begin, 0.0, static_cast<double>(bins)));
    for (size_t bin = first; bin < bins && static_cast<double>(bin) < end; ++bin) {
      const double left = static_cast<double>(bin);
      bytes[bin] += rate * std::max(0.0, std::min(end, left + 1) - std::max(begin, left));
    }
  }
  for (double& b : bytes) b /= width * 1e-9;
  return bytes;
}

std::vector<uint64_t> memory_over_time(const RecordedTrace& trace, const Span& span, size_t bins) {
  std::vector<uint64_t> most(bins, 0);
  uint64_t last = 0;
  size_t next = 0;  // bins before it are done
  for (const RecordedEvent& e : trace.events) {
    if (e.lane != Lane::memory || span.length() <= 0) continue;
    const double at = static_cast<double>(e.begin_ns - span.begin) / static_cast<double>(span.length());
    const size_t bin = static_cast<size_t>(std::clamp(at, 0.0, 1.0) * static_cast<double>(bins));
    for (; next <= bin && next < bins; ++next) most[next] = last;
    if (bin < bins) most[bin] = std::max(most[bin], e.bytes);
    last = e.bytes;
  }
  for (; next < bins; ++next) most[next] = last;
  return most;
}

TraceWindow window_of(const TraceSummary& summary, const PassRange& range) {
  RIDGE_CHECK(range.first <= range.last && range.last < summary.each.size(), "passes of this trace");
  return {.span = {summary.each[range.first].span.begin, summary.each[range.last].span.end}, .passes = range};
}

TraceWindow default_window(const RecordedTrace& trace, const TraceSummary& summary) {
  const size_t passes = summary.each.size();
  if (passes == 0) {
    const size_t first = trace.events.size() > kMostDrawn ? trace.events.size() - kMostDrawn : 0;
    return {.span = {trace.events[first].begin_ns, summary.whole.end}, .passes = std::nullopt};
  }
  TraceWindow window = window_of(summary, {passes - 1, passes - 1});
  if (passes == 1 || summary.each[passes - 2].name != summary.each[passes - 1].name) return window;
  const TraceWindow two = window_of(summary, {passes - 2, passes - 1});
  const auto drawn = std::count_if(trace.events.begin(), trace.events.end(), [&](const RecordedEvent& e) {
    return e.end_ns > two.span.begin && e.begin_ns < two.span.end;
  });
  return static_cast<size_t>(drawn) <= kMostDrawn ? two : window;
}

std::vector<Residency> residency(const RecordedTrace& trace, const Span& window) {
  const size_t count = trace.blocks.size();
  std::vector<Residency> map(count);
  std::vector<uint8_t> own_init(count, 0);
  for (const RecordedEvent& e : trace.events) {
    if (e.lane == Lane::init && e.block != kNoBlock) own_init[e.block] = 1;
  }
  auto cut = [&](Span s, std::vector<Span>& into) {
    s.begin = std::max(s.begin, window.begin);
    s.end = std::min(s.end, window.end);
    if (s.begin < s.end) into.push_back(s);
  };
  std::vector<int64_t> since(count, INT64_MAX);  // resident from then on
  for (size_t b = 0; b < count; ++b) {
    if (trace.blocks[b].pinned && own_init[b] == 0) since[b] = INT64_MIN;
  }
  for (const RecordedEvent& e : trace.events) {
    if (e.block == kNoBlock || e.begin_ns >= window.end) continue;
    Residency& block = map[e.block];
    const Span span{e.begin_ns, e.end_ns};
    switch (e.lane) {
      case Lane::compute:
        cut(span, block.computed);
        break;
      case Lane::wait:
        cut(span, block.waited);
        break;
      case Lane::read:
      case Lane::init:
        cut(span, e.lane == Lane::read ? block.loading : block.init);
        since[e.block] = std::min(since[e.block], e.end_ns);
        break;
      case Lane::release:
        cut({since[e.block], e.begin_ns}, block.resident);
        cut(span, block.release);
        since[e.block] = INT64_MAX;
        break;
      default:
        break;
    }
  }
  for (size_t b = 0; b < count; ++b) {
    cut({since[b], window.end}, map[b].resident);
    Residency& m = map[b];
    for (auto* spans : {&m.resident, &m.loading, &m.init, &m.release, &m.waited, &m.computed}) merge(*spans);
  }
  return map;
}

}  // namespace ridge
