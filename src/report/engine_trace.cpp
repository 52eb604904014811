#include "report/engine_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "machine/cpu.h"
#include "report/run_report.h"

namespace ridge {
namespace {

std::string plan_words(const Plan& plan) {
  const uint64_t streamed = plan.placement.streamed_bytes(plan.program);
  if (streamed == 0) return fmt::format("resident, {} of weights", format_bytes(plan.program.memory_bytes()));
  const auto pinned = std::count(plan.placement.pinned.begin(), plan.placement.pinned.end(), 1);
  return fmt::format("{} of {} blocks pinned ({}), {} streamed per pass", pinned, plan.program.blocks.size(),
                     format_bytes(plan.placement.pinned_bytes(plan.program)), format_bytes(streamed));
}

std::string speed_words(uint64_t tokens, double per_second) {
  return fmt::format("{} tokens, {:.1f} tok/s", format_count(tokens), per_second);
}

}  // namespace

std::string rates_words(const Rates& rates) {
  return rates.measured() ? "those that ridge probe measured" : "assumed: ridge probe measures them";
}

TraceInfo engine_trace_info(const Engine& engine, const EngineTraceOptions& options) {
  const RunFigures f = run_figures(engine);
  const Plan& plan = engine.plan();
  TraceInfo info;
  info.producer = options.producer;
  info.title = engine.model().file().files().front().path;
  if (const size_t slash = info.title.rfind('/'); slash != std::string::npos) info.title.erase(0, slash + 1);
  auto fact = [&](const char* name, std::string value) { info.facts.emplace_back(name, std::move(value)); };
  fact("model", fmt::format("{}, {} blocks, {} of weights in the file", engine.model().config().architecture,
                            plan.program.blocks.size(), format_bytes(plan.program.storage_bytes())));
  fact("machine", fmt::format("{}, {} kernels", cpu_info().model, name_of(engine.kernels().kernels.isa)));
  fact("threads", std::to_string(engine.threads()));
  fact("budget", fmt::format("{} ({})", format_bytes(engine.budget()), engine.budget_reason()));
  fact("plan", plan_words(plan));
  fact("context", fmt::format("{} positions, {} cache", engine.context(), name_of(engine.kv_type())));
  fact("reading", engine.source().io_description());
  fact("numerics", std::string(name_of(engine.numerics())));
  if (f.prompt_tokens > 0) fact("prompt", speed_words(f.prompt_tokens, f.prompt_tokens_per_s));
  if (f.decode_tokens > 0) fact("decode", speed_words(f.decode_tokens, f.decode_tokens_per_s));
  fact("loaded", fmt::format("{} in {:.2f} s", format_bytes(f.load_bytes), f.load_s));
  fact("peak memory", format_bytes(f.peak_bytes));
  info.program = &plan.program;
  info.placement = &plan.placement;
  info.start = options.start;
  info.budget_bytes = engine.budget_is_promise() ? engine.budget() : 0;
  for (const AccountItem& item : plan.account.items()) info.account.emplace_back(item.name, item.bytes);
  info.bounds = {{"storage", plan.bound.storage_s},
                 {"memory", plan.bound.memory_s},
                 {"memory and rearranging", plan.bound.rearrange_s}};
  info.rates = rates_words(engine.rates());
  info.storage_roof_bytes_per_s = engine.rates().storage_measured ? engine.rates().storage : 0;
  info.left_out = options.left_out;
  return info;
}

}  // namespace ridge
