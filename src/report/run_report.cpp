#include "report/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/seconds.h"
#include "base/units.h"
#include "machine/memory_limits.h"
#include "report/task_report.h"
#include "report/wrapped.h"

namespace ridge {
namespace {

double per_second(uint64_t count, std::chrono::nanoseconds time) {
  double s = std::chrono::duration<double>(time).count();
  return s > 0 ? static_cast<double>(count) / s : 0;
}

double tokens_per_pass(const RunFigures& f) {
  return f.decode_passes > 0 ? static_cast<double>(f.decode_tokens) / static_cast<double>(f.decode_passes) : 0;
}

std::string roof_words(const RunFigures& f) {
  if (f.decode_tokens == 0 || f.bound_tokens_per_s <= 0) return "";
  if (!f.bound_measured) return "`ridge probe` tells how far from the bound";
  return fmt::format("{:.0f} % of the bound ({:.1f} {}/s{})", f.bound_share * 100, f.bound_tokens_per_s,
                     f.decode_passes == f.decode_tokens ? "tok" : "passes",
                     f.bound_contended ? ", contended: `ridge probe` again" : "");
}

// "no pressure; 64 of 80 pinned blocks (300 MiB) may go" or what pressure did.
std::string live_words(const Engine& engine) {
  const LiveStats& live = *engine.live();
  const ElasticState state = engine.source().elastic_state();
  auto ms = [](std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); };
  if (live.releases == 0) {
    return fmt::format("no memory pressure; {} blocks ({}) may be released", state.blocks, format_bytes(state.bytes));
  }
  return fmt::format(
      "{} released in {} ({:.1f} ms), {} read again in {} ({:.1f} ms), {} of those failed; {} of {} blocks "
      "that may go stream now",
      format_bytes(live.released_bytes), counted(live.releases, "step"), ms(live.releasing),
      format_bytes(live.returned_bytes), counted(live.returns + live.failed_returns, "step"), ms(live.returning),
      live.failed_returns, state.gone, state.blocks);
}

nlohmann::ordered_json live_json(const Engine& engine) {
  if (engine.live() == nullptr) return nullptr;
  const LiveStats& live = *engine.live();
  const ElasticState state = engine.source().elastic_state();
  return {{"blocks", state.blocks},
          {"bytes", state.bytes},
          {"released_blocks", state.gone},
          {"releases", live.releases},
          {"released_bytes", live.released_bytes},
          {"most_released_bytes", live.most_away},
          {"release_s", seconds(live.releasing)},
          {"returns", live.returns},
          {"returned_bytes", live.returned_bytes},
          {"return_s", seconds(live.returning)},
          {"failed_returns", live.failed_returns}};
}

}  // namespace

RunFigures run_figures(const Engine& engine) {
  RunFigures f;
  const EngineTimes& t = engine.times();
  SourceStats s = engine.source().stats();
  ProcessMemory memory = process_memory();
  f.prompt_tokens = t.prompt_tokens;
  f.decode_tokens = t.decode_tokens;
  f.prompt_tokens_per_s = per_second(t.prompt_tokens, t.prompt);
  f.decode_tokens_per_s = per_second(t.decode_tokens, t.decode);
  f.decode_passes = t.decode_passes;
  f.drafted_tokens = t.drafted_tokens;
  f.accepted_tokens = t.drafted_tokens - t.wrong_tokens;
  f.draft_s = std::chrono::duration<double>(t.draft).count();
  f.load_s = std::chrono::duration<double>(t.load).count();
  f.peak_bytes = memory.peak_resident + memory.page_tables;
  f.budget_bytes = engine.budget();
  f.bytes_read = s.bytes_read;
  f.load_bytes = s.load_bytes;
  if (engine.draft() != nullptr) f.load_bytes += engine.draft()->source().stats().load_bytes;
  double passes_s = std::chrono::duration<double>(t.prompt + t.decode).count();
  if (passes_s > 0) f.draft_share = f.draft_s / passes_s;
  if (passes_s > 0) f.wait_share = std::chrono::duration<double>(s.wait).count() / passes_s;
  if (s.visits > 0) f.hit_ratio = static_cast<double>(s.pinned_visits) / static_cast<double>(s.visits);
  f.experts_asked = s.experts_asked;
  f.experts_passed = s.experts_passed;
  const NeuronUse& neurons = engine.neuron_use();
  if (neurons.groups > 0) f.neuron_share = static_cast<double>(neurons.touched) / static_cast<double>(neurons.groups);
  if (s.experts_asked > 0)
    f.expert_hit_ratio = static_cast<double>(s.expert_hits) / static_cast<double>(s.experts_asked);
  double bound_s = engine.plan().bound.seconds();
  if (bound_s > 0) f.bound_tokens_per_s = 1 / bound_s;
  // Bound and rates are those of passes, which are fewer than tokens if drafts were right.
  const double passes_per_s = per_second(t.decode_passes, t.decode);
  if (f.bound_tokens_per_s > 0) f.bound_share = passes_per_s / f.bound_tokens_per_s;
  f.bound_measured = engine.rates().measured();
  f.bound_contended = !engine.rates().contention.empty();
  f.memory_gb_per_s = passes_per_s * static_cast<double>(engine.plan().program.memory_bytes_of_a_pass()) / 1e9;
  f.read_roof_share = f.memory_gb_per_s * 1e9 / engine.rates().memory;
  if (passes_s > 0) f.storage_gb_per_s = static_cast<double>(f.bytes_read) / passes_s / 1e9;
  f.storage_roof_share = f.storage_gb_per_s * 1e9 / engine.rates().storage;
  return f;
}

std::string run_summary(const Engine& engine) {
  RunFigures f = run_figures(engine);
  std::string text;
  auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : " · ") + part;
  };
  if (f.prompt_tokens > 0)
    add(fmt::format("prompt {} at {:.1f}/s", counted(f.prompt_tokens, "token"), f.prompt_tokens_per_s));
  if (f.decode_tokens > 0) add(fmt::format("{} at {:.1f}/s", counted(f.decode_tokens, "token"), f.decode_tokens_per_s));
  if (f.drafted_tokens > 0) add(fmt::format("{:.2f} tokens per pass", tokens_per_pass(f)));
  add(engine.budget_is_promise()
          ? fmt::format("peak {} of {}", format_bytes(f.peak_bytes), format_bytes(f.budget_bytes))
          : fmt::format("peak {}", format_bytes(f.peak_bytes)));
  add(f.bytes_read > 0 ? fmt::format("loaded {}, then read {}", format_bytes(f.load_bytes), format_bytes(f.bytes_read))
                       : fmt::format("loaded {}", format_bytes(f.load_bytes)));
  add(roof_words(f));
  if (engine.numerics() != Numerics::standard) add(fmt::format("{} numerics", name_of(engine.numerics())));
  if (engine.mask_absent() != 1) add(fmt::format("masked × {}", engine.mask_absent()));
  return text;
}

std::string run_table(const Engine& engine) {
  RunFigures f = run_figures(engine);
  std::string text;
  auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", name, wrapped(value, 25));
  };
  row("load", fmt::format("{:.2f} s, {}", f.load_s, format_bytes(f.load_bytes)));
  row("prompt", fmt::format("{}, {:.1f} tok/s", counted(f.prompt_tokens, "token"), f.prompt_tokens_per_s));
  row("decode", fmt::format("{}, {:.1f} tok/s", counted(f.decode_tokens, "token"), f.decode_tokens_per_s));
  if (engine.verify_tokens() > 1) {
    row("drafts", fmt::format("{} checked, {} right: {:.2f} tokens per pass, {:.1f} % of the time spent on guessing",
                              f.drafted_tokens, f.accepted_tokens, tokens_per_pass(f), 100 * f.draft_share));
  }
  const Rates& rates = engine.rates();
  auto roof = [&](double share, double rate, bool measured) {
    return fmt::format("{:.0f} % of the {} roof of {:.1f} GB/s", share * 100, rate_word(rates, measured), rate / 1e9);
  };
  row("memory at decode", fmt::format("{:.2f} GB/s of weights, {}", f.memory_gb_per_s,
                                      roof(f.read_roof_share, engine.rates().memory, engine.rates().memory_measured)));
  row("storage", fmt::format("{} read, {:.2f} GB/s, {}", format_bytes(f.bytes_read), f.storage_gb_per_s,
                             roof(f.storage_roof_share, engine.rates().storage, engine.rates().storage_measured)));
  row("found in memory", fmt::format("{:.1f} % of block visits", f.hit_ratio * 100));
  const NeuronUse& neurons = engine.neuron_use();
  if (neurons.groups > 0) {
    row("neurons", fmt::format("{:.1f} % of {} touched: the others were not read", 100 * f.neuron_share,
                               counted(neurons.groups, "bundle", "bundles")));
  }
  if (f.experts_asked > 0) {
    row(neurons.groups > 0 ? "bundles" : "experts",
        fmt::format("{:.1f} % of {} in a slot; {} of the rest passed by the cache", f.expert_hit_ratio * 100,
                    counted(f.experts_asked, "unpinned block was", "unpinned blocks were"), f.experts_passed));
  }
  row("waiting for storage", fmt::format("{:.1f} % of the time", f.wait_share * 100));
  row("I/O", engine.source().io_description());
  const Bound& b = engine.plan().bound;
  row("bound of a decode pass",
      fmt::format("{:.2f} ms: storage {:.2f}, memory {:.2f}, memory and rearranging {:.2f} ({})", b.seconds() * 1e3,
                  b.storage_s * 1e3, b.memory_s * 1e3, b.rearrange_s * 1e3,
                  f.bound_measured ? "rates of ridge probe" : "assumed rates, run `ridge probe`"));
  if (f.bound_contended) row("", contention_sentence(rates));
  if (f.decode_tokens > 0) {
    row("share of the bound",
        fmt::format("{:.0f} %{}", f.bound_share * 100, f.bound_contended ? ", of a contended bound" : ""));
  }
  if (engine.live() != nullptr) row("live budget", live_words(engine));
  if (engine.task_stats() != nullptr) row("cache", task_words(engine));
  row("numerics", name_of(engine.numerics()));
  if (engine.mask_absent() != 1)
    row("masking",
        fmt::format("scores of absent experts × {}: lossy, outside of the arithmetic contract", engine.mask_absent()));
  row("peak memory",
      fmt::format("{} of {} ({})", format_bytes(f.peak_bytes), format_bytes(f.budget_bytes), engine.budget_reason()));
  return text;
}

namespace {

// What of the plan says how many bytes a pass reads: for the comparison with a replay of recorded visits.
nlohmann::ordered_json placement_json(const Engine& engine) {
  const Plan& plan = engine.plan();
  const Placement& p = plan.placement;
  uint64_t in_order = 0, streamed = 0;
  std::vector<BlockId> pinned;
  for (const Visit& v : plan.program.visits) {
    const bool on_demand = plan.program.blocks[v.block].on_demand;
    if (p.pinned[v.block] && on_demand) pinned.push_back(v.block);
    if (p.pinned[v.block] || on_demand) continue;
    in_order += plan.program.blocks[v.block].storage_bytes;
    ++streamed;
  }
  if (streamed <= p.slots) in_order = 0;  // read once, they stay
  return {{"in_order_bytes_per_pass", in_order},
          {"cached_blocks", uint64_t{p.expert_cache} * plan.program.expert_groups.size()},
          {"cache_policy", name_of(p.expert_policy)},
          {"pinned_on_demand", pinned}};
}

}  // namespace

nlohmann::ordered_json run_json(const Engine& engine) {
  RunFigures f = run_figures(engine);
  return {{"load_s", f.load_s},
          {"prompt_tokens", f.prompt_tokens},
          {"prompt_tokens_per_s", f.prompt_tokens_per_s},
          {"decode_tokens", f.decode_tokens},
          {"decode_tokens_per_s", f.decode_tokens_per_s},
          {"decode_passes", f.decode_passes},
          {"drafted_tokens", f.drafted_tokens},
          {"accepted_tokens", f.accepted_tokens},
          {"draft_s", f.draft_s},
          {"peak_bytes", f.peak_bytes},
          {"budget_bytes", f.budget_bytes},
          {"load_bytes", f.load_bytes},
          {"bytes_read", f.bytes_read},
          {"hit_ratio", f.hit_ratio},
          {"experts_asked", f.experts_asked},
          {"expert_hit_ratio", f.expert_hit_ratio},
          {"experts_passed", f.experts_passed},
          {"neurons_touched", f.neuron_share},
          {"placement", placement_json(engine)},
          {"wait_share", f.wait_share},
          {"memory_gb_per_s", f.memory_gb_per_s},
          {"read_roof_share", f.read_roof_share},
          {"storage_gb_per_s", f.storage_gb_per_s},
          {"storage_roof_share", f.storage_roof_share},
          {"bound_tokens_per_s", f.bound_tokens_per_s},
          {"bound_share", f.bound_share},
          {"bound_measured", f.bound_measured},
          {"bound_contended", f.bound_contended},
          {"live", live_json(engine)},
          {"tasks", task_json(engine)},
          {"mask_absent", engine.mask_absent()},
          {"numerics", name_of(engine.numerics())},
          {"io", engine.source().io_description()}};
}

std::string explanation(const Engine& engine) {
  std::string text = fmt::format("plan for {} ({})\n", format_bytes(engine.budget()), engine.budget_reason());
  for (const std::string& reason : engine.plan().reasons) text += fmt::format("  {}\n", wrapped(reason, 4));
  text += fmt::format("memory\n{}kernels\n", engine.plan().account.table());
  for (const std::string& reason : engine.kernel_reasons()) text += fmt::format("  {}\n", wrapped(reason, 4));
  text += fmt::format("reading\n  {}\n", engine.source().io_description());
  return text;
}

}  // namespace ridge
