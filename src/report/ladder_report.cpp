#include "report/ladder_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

// NPU contexts on a ROCK 5C: 11.3 GiB of added PSS for 3.36 GiB of weights (docs/ladder.md).
constexpr double kNpuOverhead = 3.4;

std::string gib_or_less(double bytes) { return format_bytes(static_cast<uint64_t>(std::max(0.0, bytes))); }

std::string signed_or_dash(const std::optional<int64_t>& bytes) { return bytes ? signed_bytes(*bytes) : "–"; }

std::string seconds(double s) { return s >= 100 ? fmt::format("{:.0f} s", s) : fmt::format("{:.3g} s", s); }

// Which rows are worth a line: the first, the last, and every so many that a screen holds them, as the document has 1,
// 4, 8, 12, 16, 18.
std::vector<const LadderRow*> rows_shown(const Ladder& ladder) {
  constexpr size_t kMost = 20;
  uint32_t stride = 1;
  const uint32_t contexts = ladder.rows.empty() ? 0 : ladder.rows.back().contexts;
  while (contexts / stride > kMost) stride *= 2;
  std::vector<const LadderRow*> shown;
  for (const LadderRow& row : ladder.rows) {
    const bool last = &row == &ladder.rows.back(), first = &row == &ladder.rows.front();
    if (first || last || ladder.rows.size() <= kMost || row.contexts % stride == 0) shown.push_back(&row);
  }
  return shown;
}

// Text that holds its width in columns, not in bytes.
std::string right(const std::string& text, int width) {
  const auto columns =
      static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  return std::string(static_cast<size_t>(std::max(0, width - columns)), ' ') + text;
}

std::string rows_text(const Ladder& ladder) {
  const MemoryState& base = ladder.baseline;
  const bool cgroup = base.cgroup.charged.has_value();
  std::string text =
      fmt::format("{:>8} {:>9} {:>10} {:>9} {:>12} {:>9} {:>8} {:>9}{}\n", "contexts", base.pss_is_rss ? "RSS" : "PSS",
                  base.pss_is_rss ? "added RSS" : "added PSS", "weights", "MemAvailable", "swap", "mappings",
                  "load+init", cgroup ? "     cgroup" : "");
  auto line = [&](const std::string& contexts, const MemoryState& state, uint64_t weights, double s) {
    text += right(contexts, 8) + " " + right(format_bytes(state.pss), 9) + " " +
            right(signed_bytes(growth(base.pss, state.pss)), 10) + " " + right(format_bytes(weights), 9) + " " +
            right(signed_or_dash(growth(base.available, state.available)), 12) + " " +
            right(signed_or_dash(growth(base.swap_used, state.swap_used)), 9) + " " +
            right(std::to_string(state.mappings), 8) + " " + right(s > 0 ? seconds(s) : "", 9);
    if (cgroup) text += " " + right(signed_or_dash(growth(base.cgroup.charged, state.cgroup.charged)), 10);
    text += "\n";
  };
  line("0", base, 0, 0);
  for (const LadderRow* row : rows_shown(ladder)) {
    line(std::to_string(row->contexts), row->state, row->weight_bytes, row->load_s + row->init_s);
  }
  return text;
}

std::string end_text(const Ladder& ladder) {
  const size_t loaded = ladder.contexts.size();
  switch (ladder.end) {
    case LadderEnd::all_loaded:
      return fmt::format("all {} loaded; no gate stopped it\n", counted(loaded, "context is", "contexts are"));
    case LadderEnd::enough:
      return fmt::format("{} of {}, as asked for\n", loaded, counted(ladder.blocks, "context"));
    case LadderEnd::gate:
      return fmt::format("stopped at {} of {}: {}\n", loaded, counted(ladder.blocks, "context"), ladder.why);
    case LadderEnd::interrupted:
      break;
  }
  return fmt::format("interrupted at {} of {}\n", loaded, counted(ladder.blocks, "context"));
}

std::string hold_text(const Ladder& ladder) {
  if (!ladder.hold) return "";
  const LadderHold& h = *ladder.hold;
  return fmt::format("held for {}: PSS {} (at most {}), MemAvailable {}, swap {}\n", seconds(h.seconds),
                     signed_bytes(growth(h.before.pss, h.after.pss)), signed_bytes(h.most_pss),
                     signed_or_dash(growth(h.before.available, h.after.available)),
                     signed_or_dash(growth(h.before.swap_used, h.after.swap_used)));
}

std::string release_text(const Ladder& ladder) {
  return fmt::format("released in {}: PSS {} from where it began, mappings {:+}, MemAvailable {}\n",
                     seconds(ladder.release_s), signed_bytes(growth(ladder.baseline.pss, ladder.released.pss)),
                     growth(ladder.baseline.mappings, ladder.released.mappings),
                     signed_or_dash(growth(ladder.baseline.available, ladder.released.available)));
}

std::string pools_text(const std::vector<LadderPool>& pools) {
  if (pools.empty()) return "";
  std::string text = "\nfresh process with   added PSS   loaded in\n";
  for (const LadderPool& p : pools) {
    if (!p.failure.empty()) {
      text += fmt::format("{:>20}   {}\n", counted(p.contexts, "context"), p.failure);
      continue;
    }
    text += fmt::format("{:>20}   {:>9}   {:>9}{}\n", counted(p.contexts, "context"), signed_bytes(p.added_pss),
                        seconds(p.seconds),
                        p.loaded < p.contexts ? fmt::format("   (a gate stopped it at {})", p.loaded) : "");
  }
  return text;
}

std::string interval(const Prediction& p) {
  if (p.freedom == 0 || p.low >= p.high) return gib_or_less(p.value);
  return fmt::format("{} ({} to {})", gib_or_less(p.value), gib_or_less(p.low), gib_or_less(p.high));
}

std::string kinds_text(const Ladder& ladder, const LadderTrend& trend) {
  std::string text;
  for (size_t k = 0; k < ladder.kinds.size(); ++k) {
    size_t loaded = 0;
    double s = 0;
    for (const LadderContext& c : ladder.contexts) {
      if (c.kind != ladder.kinds[k]) continue;
      ++loaded;
      s += c.cost.seconds();
    }
    std::optional<double> own = trend.ratios ? trend.ratios->ratio(k) : std::nullopt;
    text += fmt::format("  {:<18} {:>5} of {:<5} {:>9} of weights   {}{}\n", printable(ladder.kinds[k]), loaded,
                        ladder.blocks_of_kind[k], format_bytes(ladder.weights_of_kind[k]),
                        own ? fmt::format("{:.2f} × weights", *own) : "as all together",
                        loaded > 0 ? fmt::format(", {} each", seconds(s / static_cast<double>(loaded))) : "");
  }
  return text;
}

std::string room_text(const Ladder& ladder, const LadderTrend& trend) {
  const std::string room =
      ladder.room.bytes == UINT64_MAX ? "" : fmt::format("{} ({})", format_bytes(ladder.room.bytes), ladder.room.gate);
  if (room.empty()) return fmt::format("room: {}\n", ladder.room.gate);
  if (trend.ends_at)
    return fmt::format("room: {} ends at {} of {}\n", room, *trend.ends_at, counted(ladder.blocks, "context"));
  return fmt::format("room: {} holds all {}\n", room, counted(ladder.blocks, "context"));
}

std::string trend_text(const Ladder& ladder, const LadderTrend& trend) {
  std::string text = fmt::format("\nadded PSS of all {}, 95 % intervals\n", counted(ladder.blocks, "context"));
  if (trend.by_line) {
    text +=
        fmt::format("  {:<34} {}\n",
                    fmt::format("line, {} + {} per context", signed_bytes(static_cast<int64_t>(trend.line->intercept)),
                                gib_or_less(trend.line->slope)),
                    interval(*trend.by_line));
  }
  if (trend.by_kind) text += fmt::format("  {:<34} {}\n", "weights by kind of block", interval(*trend.by_kind));
  if (trend.by_last_step)
    text += fmt::format("  {:<34} {}\n", "growth of the last step alone", gib_or_less(*trend.by_last_step));
  if (trend.mapped)
    text += fmt::format("  {:<34} {} of address space\n", "mapped, in proportion", gib_or_less(*trend.mapped));
  text += kinds_text(ladder, trend);
  text += fmt::format("memory is {:.2f} × the weights so far (the NPU contexts of docs/ladder.md: {:.1f} ×)\n",
                      trend.overhead, kNpuOverhead);
  text += room_text(ladder, trend);
  const LifecycleSum& w = trend.walk;
  text += fmt::format("one walk over all blocks: load {} + init {} + release {} = {}\n", seconds(w.load_s),
                      seconds(w.init_s), seconds(w.release_s), seconds(w.load_s + w.init_s + w.release_s));
  return text;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json state_json(const MemoryState& s) {
  return {{"pss", s.pss},
          {"page_tables", s.page_tables},
          {"available", or_null(s.available)},
          {"swap_used", or_null(s.swap_used)},
          {"mappings", s.mappings},
          {"mapped_bytes", s.mapped_bytes},
          {"cgroup_charged", or_null(s.cgroup.charged)},
          {"cgroup_left", or_null(s.cgroup.left)}};
}

Json prediction_json(const std::optional<Prediction>& p) {
  if (!p) return nullptr;
  return {{"value", p->value}, {"low", p->low}, {"high", p->high}, {"degrees_of_freedom", p->freedom}};
}

const char* name_of(LadderEnd end) {
  switch (end) {
    case LadderEnd::all_loaded:
      return "all_loaded";
    case LadderEnd::enough:
      return "enough";
    case LadderEnd::gate:
      return "gate";
    case LadderEnd::interrupted:
      break;
  }
  return "interrupted";
}

Json rows_json(const Ladder& ladder) {
  Json rows = Json::array();
  for (const LadderRow& r : ladder.rows) {
    rows.push_back({{"contexts", r.contexts},
                    {"added_pss", growth(ladder.baseline.pss, r.state.pss)},
                    {"available_change", or_null(growth(ladder.baseline.available, r.state.available))},
                    {"swap_growth", or_null(growth(ladder.baseline.swap_used, r.state.swap_used))},
                    {"weight_bytes", r.weight_bytes},
                    {"overhead_bytes", r.overhead_bytes},
                    {"load_s", r.load_s},
                    {"init_s", r.init_s},
                    {"state", state_json(r.state)}});
  }
  return rows;
}

Json contexts_json(const Ladder& ladder) {
  Json contexts = Json::array();
  for (const LadderContext& c : ladder.contexts) {
    contexts.push_back({{"block", c.name},
                        {"kind", c.kind},
                        {"weight_bytes", c.cost.weight_bytes},
                        {"overhead_bytes", c.cost.overhead_bytes},
                        {"load_s", c.cost.load_s},
                        {"init_s", c.cost.init_s},
                        {"release_s", c.cost.release_s}});
  }
  return contexts;
}

Json trend_json(const Ladder& ladder, const LadderTrend& t) {
  Json kinds = Json::array();
  for (size_t k = 0; k < ladder.kinds.size(); ++k) {
    kinds.push_back({{"kind", ladder.kinds[k]},
                     {"blocks", ladder.blocks_of_kind[k]},
                     {"weight_bytes", ladder.weights_of_kind[k]},
                     {"ratio", or_null(t.ratios ? t.ratios->ratio(k) : std::nullopt)}});
  }
  return {{"line", t.line ? Json{{"intercept", t.line->intercept}, {"slope", t.line->slope}} : Json(nullptr)},
          {"by_line", prediction_json(t.by_line)},
          {"by_kind", prediction_json(t.by_kind)},
          {"by_last_step", or_null(t.by_last_step)},
          {"mapped_in_proportion", or_null(t.mapped)},
          {"ratio_to_weights", t.overhead},
          {"ends_at", or_null(t.ends_at)},
          {"kinds", std::move(kinds)},
          {"walk", {{"load_s", t.walk.load_s}, {"init_s", t.walk.init_s}, {"release_s", t.walk.release_s}}}};
}

Json pools_json(const std::vector<LadderPool>& pools) {
  Json out = Json::array();
  for (const LadderPool& p : pools) {
    Json j = {{"contexts", p.contexts}};
    if (p.failure.empty()) {
      j["loaded"] = p.loaded;
      j["added_pss"] = p.added_pss;
      j["seconds"] = p.seconds;
    } else {
      j["failure"] = p.failure;
    }
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

std::string signed_bytes(int64_t bytes) {
  if (bytes == 0) return "0 B";
  const auto magnitude = bytes < 0 ? uint64_t{0} - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
  return (bytes < 0 ? "−" : "+") + format_bytes(magnitude);
}

std::string ladder_table(const LadderReport& report) {
  const Ladder& ladder = *report.ladder;
  std::string text = fmt::format("{}: {}, {} of weights; room for {} per run\n{}\n\n", printable(report.model),
                                 counted(ladder.blocks, "block"), format_bytes(ladder.weight_bytes),
                                 counted(report.tokens, "token"), ladder.executor);
  text +=
      rows_text(ladder) + "\n" + end_text(ladder) + hold_text(ladder) + release_text(ladder) + pools_text(report.pools);
  if (!ladder.rows.empty()) text += trend_text(ladder, trend_of(ladder));
  return text;
}

Json ladder_json(const LadderReport& report) {
  const Ladder& ladder = *report.ladder;
  Json j = {{"model", report.model},
            {"executor", ladder.executor},
            {"blocks", ladder.blocks},
            {"weight_bytes", ladder.weight_bytes},
            {"tokens", report.tokens},
            {"pss_is_rss", ladder.baseline.pss_is_rss},
            {"baseline", state_json(ladder.baseline)},
            {"rows", rows_json(ladder)},
            {"contexts", contexts_json(ladder)},
            {"end", name_of(ladder.end)},
            {"why", ladder.why}};
  if (ladder.hold) {
    j["hold"] = {{"seconds", ladder.hold->seconds},
                 {"pss_growth", growth(ladder.hold->before.pss, ladder.hold->after.pss)},
                 {"most_pss_growth", ladder.hold->most_pss},
                 {"swap_growth", or_null(growth(ladder.hold->before.swap_used, ladder.hold->after.swap_used))},
                 {"available_change", or_null(growth(ladder.hold->before.available, ladder.hold->after.available))}};
  }
  j["release"] = {{"seconds", ladder.release_s},
                  {"pss_left", growth(ladder.baseline.pss, ladder.released.pss)},
                  {"mappings_left", growth(ladder.baseline.mappings, ladder.released.mappings)},
                  {"state", state_json(ladder.released)}};
  j["room"] = {{"bytes", ladder.room.bytes == UINT64_MAX ? Json(nullptr) : Json(ladder.room.bytes)},
               {"gate", ladder.room.gate}};
  if (!report.pools.empty()) j["pools"] = pools_json(report.pools);
  if (!ladder.rows.empty()) j["trend"] = trend_json(ladder, trend_of(ladder));
  return j;
}

LadderPool pool_of(const Json& ladder, uint32_t contexts) {
  LadderPool pool{.contexts = contexts};
  if (!ladder.is_object() || !ladder.contains("rows") || ladder["rows"].empty()) {
    pool.failure = "it said nothing of its memory";
    return pool;
  }
  const Json& row = ladder["rows"].back();
  pool.loaded = row["contexts"].get<uint32_t>();
  pool.added_pss = row["added_pss"].get<int64_t>();
  pool.seconds = row["load_s"].get<double>() + row["init_s"].get<double>();
  return pool;
}

}  // namespace ridge
