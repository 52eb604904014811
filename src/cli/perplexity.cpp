// ridge perplexity: how well a model predicts a text, and how far the default arithmetic is from the exact one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/quality.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/cache_flags.h"
#include "cli/run.h"
#include "cli/window_flags.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge perplexity smollm2-135m book.txt\n"
    "  ridge perplexity model.gguf book.txt --window 1024 --windows 8 --memory 300M\n"
    "  ridge perplexity model.gguf book.txt --kl --windows 2\n\n"
    "The first half of every window is context, the second half is scored.";

struct Flags {
  EngineFlags engine;
  CacheFlags cache;
  std::string file;
  WindowFlags windows{.window = 512, .windows = {}};
  std::optional<std::string> record;
  bool kl = false, json = false;
};

constexpr uint32_t kLogitsRows = 16;
// More windows than a text that is read (1 GiB) can have.
constexpr uint64_t kMostWindows = uint64_t{1} << 30;

// With --windows the rest of the text is of no use; 64 bytes a token is more than prose or code ever has.
void keep_enough(std::string& text, const WindowOptions& windows) {
  constexpr uint64_t kMostBytesPerToken = 64;
  if (windows.most_windows > kMostWindows) return;
  uint64_t enough = windows.most_windows * windows.window * kMostBytesPerToken;
  if (text.size() <= enough) return;
  while (enough > 0 && (static_cast<unsigned char>(text[enough]) & 0xc0) == 0x80) --enough;  // never inside a character
  text.resize(enough);
  text.shrink_to_fit();
}

// The options of the exact engine that --kl compares with. Two engines then share the budget: the account of the second
// contains the first, which gets what the second can do without.
Result<EngineOptions> share_budget(const Flags& flags, EngineOptions& first) {
  EngineOptions exact = first;
  exact.numerics = Numerics::exact;
  exact.kv_type.reset();
  if (!flags.kl || !first.memory) return exact;
  constexpr uint64_t kSpread = kMiB;  // what the first engine leaves on the heap varies
  const uint64_t contexts[] = {std::max<uint64_t>(first.context, static_cast<uint64_t>(flags.windows.window))};
  const Engine::Needs other = RIDGE_TRY(Engine::needs(exact, contexts)).front();
  const uint64_t second = other.smallest - other.program + kSpread;
  const uint64_t least = RIDGE_TRY(Engine::needs(first, contexts)).front().smallest + second;
  if (*first.memory < least) {
    return does_not_fit(
        fmt::format("--kl runs two engines within {} (--memory), which need {} together: give --memory "
                    "{} or more, a smaller --window, or leave --kl out",
                    format_bytes(*first.memory), format_bytes(least), budget_text(named_budget(least))));
  }
  first.memory = *first.memory - second;
  return exact;
}

Result<void> run(const Flags& flags) {
  const WindowOptions window = RIDGE_TRY(window_options(flags.windows));
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  options.default_context = window.window;
  RIDGE_TRY(apply(flags.cache, options));
  // Where the choice depends on what is there, and where it is recorded, a token at a time, as answers are written.
  options.logits_rows = flags.cache.mask_absent || flags.record ? 1 : kLogitsRows;
  options.record = flags.record.has_value();
  if (flags.record) RIDGE_TRY(check_output(*flags.record, "--record"));
  std::string text = RIDGE_TRY(read_text(flags.file));
  keep_enough(text, window);
  options.text_bytes = text.size();
  RIDGE_TRY(require_utf8(text, flags.file));
  if (flags.kl && flags.cache.mask_absent)
    return usage_error("--kl measures arithmetic, which --mask-absent is outside of: leave one of them out");
  const EngineOptions exact_options = RIDGE_TRY(share_budget(flags, options));
  auto engine = RIDGE_TRY(Engine::open(options));
  tell_masking(*engine);
  if (flags.record) RIDGE_TRY(refuse_overwriting(*flags.record, *engine, options, "--record"));
  std::vector<TokenId> ids = engine->tokenizer()->encode(text, {.add_special = false, .parse_special = false});
  uint64_t total = std::min<uint64_t>(ids.size() / window.window, window.most_windows) * window.window;

  Likelihood l;
  {
    Progress bar("reading", total, ProgressUnit::items);
    l = RIDGE_TRY(likelihood(*engine, ids, window, [&](uint64_t n, double nll) {
      bar.annotate(fmt::format("NLL {:.4f}", nll));
      bar.advance(n);
    }));
  }
  if (flags.record) RIDGE_TRY(write_recording(*engine, *flags.record));
  std::optional<Divergence> d;
  if (flags.kl) {
    auto exact = RIDGE_TRY(Engine::open(exact_options));
    Progress bar("comparing", total, ProgressUnit::items);
    d = RIDGE_TRY(divergence(*exact, *engine, ids, window, [&](uint64_t n, double kl) {
      bar.annotate(fmt::format("KL {:.5f}", kl));
      bar.advance(n);
    }));
  }
  if (flags.json) {
    nlohmann::ordered_json out = {{"nll", l.nll},
                                  {"standard_error", l.standard_error},
                                  {"perplexity", std::exp(l.nll)},
                                  {"scored", l.scored},
                                  {"windows", l.windows},
                                  {"window", window.window},
                                  {"mask_absent", engine->mask_absent()},
                                  {"tokens", total},
                                  {"bytes_read", engine->source().stats().bytes_read}};
    if (d)
      out["kl"] = {{"pooled", d->kl},
                   {"standard_error", d->standard_error},
                   {"same_top", d->same_top},
                   {"positions", d->positions}};
    return print(out.dump(2) + "\n");
  }
  std::string out = fmt::format("NLL {:.4f} ± {:.4f} nats per token, perplexity {:.3f} ({} scored in {} of {})\n",
                                l.nll, l.standard_error, std::exp(l.nll), counted(l.scored, "token"),
                                counted(l.windows, "window"), window.window);
  if (flags.cache.mask_absent || flags.cache.map) {
    const uint64_t bytes = engine->source().stats().bytes_read;
    out += fmt::format(
        "read {}, {} for each of {}{}\n", format_bytes(bytes), format_bytes(bytes / total), counted(total, "token"),
        engine->mask_absent() == 1 ? "" : fmt::format(", scores of absent experts × {}", engine->mask_absent()));
  }
  if (d) {
    out += fmt::format("KL(exact ‖ {}) {:.6f} ± {:.6f} nats over {}; the same likeliest token in {:.2f} %\n",
                       name_of(engine->numerics()), d->kl, d->standard_error, counted(d->positions, "position"),
                       d->same_top * 100);
  }
  return print(out);
}

}  // namespace

void add_perplexity(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("perplexity", "how well a model predicts a text");
  add_engine_flags(*command, flags->engine);
  add_lora_flag(*command, flags->engine);
  add_cache_flags(*command, flags->cache);
  command->add_option("FILE", flags->file, "the text, - for standard input")->type_name("")->required();
  add_window_flags(*command, flags->windows);
  command->add_option("--record", flags->record, "write visited blocks; reads a token at a time")->type_name("FILE");
  command->add_flag("--kl", flags->kl, "also KL(exact ‖ the numerics chosen)");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
