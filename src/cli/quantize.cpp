// ridge quantize: fewer bits per weight, by how much the loss depends on each matrix, checked before the file is kept.
#include "cli/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "analyze/neuron_order.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/window_flags.h"
#include "machine/cpu.h"
#include "tensor/quantize_fit.h"
#include "tensor/type_names.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge quantize model.gguf -o small.gguf --type Q4_K\n"
    "  ridge quantize model.gguf -o small.gguf --size 300M --data notes.txt\n"
    "  ridge quantize model.gguf -o small.gguf --max-kl 0.02 --data notes.txt\n"
    "  ridge quantize model.gguf -o small.gguf --bits 3.5 --imatrix sums.gguf \\\n"
    "      --check held-out.txt --max-loss 5%\n\n"
    "The last quarter of --data is held out for the check, unless --check has one.\n"
    "Exit code 6: the check measured more than --max-loss or --max-kl allows.";

struct Flags {
  std::string model, out;
  std::optional<std::string> type, size, map, imatrix, data, check, max_loss;
  std::optional<double> bits, max_kl;
  std::optional<int> threads;
  WindowFlags windows;
  bool json = false, explain = false;
};

// What the flags ask for.
struct Wish {
  std::optional<Type> type;
  std::optional<uint64_t> bytes;  // of the file
  std::optional<double> bits, max_kl, max_rise_percent;
  WindowOptions windows;
};

Result<Type> fitted_type(const std::string& word) {
  const std::optional<Type> type = type_named(word);
  if (type && can_fit(*type)) return *type;
  std::string names;
  for (const TypeInfo& info : all_types()) {
    if (!can_fit(info.type)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return usage_error(fmt::format("--type {} is no type that models are quantised to: give one of {}", word, names));
}

// "5%" or "5".
Result<double> percent(const std::string& word) {
  const std::string digits = word.ends_with('%') ? word.substr(0, word.size() - 1) : word;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || end != digits.c_str() + digits.size() || !(value >= 0) || !std::isfinite(value))
    return usage_error(fmt::format("--max-loss {} is no share: give percent of perplexity, such as 5%", word));
  return value;
}

Result<Wish> wish_of(const Flags& f) {
  const int targets = (f.type ? 1 : 0) + (f.bits ? 1 : 0) + (f.size ? 1 : 0) + (f.max_kl ? 1 : 0);
  if (targets != 1)
    return usage_error("give one of --type, --bits, --size and --max-kl: it says how small the model becomes");
  if ((f.map ? 1 : 0) + (f.imatrix ? 1 : 0) + (f.data ? 1 : 0) > 1)
    return usage_error("give one of --data, --imatrix and --map: each says what matters");
  Wish wish;
  if (f.type) wish.type = RIDGE_TRY(fitted_type(*f.type));
  if (f.type && f.map) return usage_error("--map chooses between types, and --type names one: leave one of them out");
  if (f.size) wish.bytes = RIDGE_TRY(parse_bytes(*f.size));
  if (f.bits && !(*f.bits > 0 && *f.bits <= 32))
    return usage_error(fmt::format("--bits {} is no number of bits per weight: give more than 0, up to 32", *f.bits));
  if (f.max_kl && !(*f.max_kl > 0 && std::isfinite(*f.max_kl)))
    return usage_error(
        fmt::format("--max-kl {} is no divergence: give nats per token above 0, such as 0.02", *f.max_kl));
  wish.bits = f.bits;
  wish.max_kl = f.max_kl;
  if (f.max_loss) wish.max_rise_percent = RIDGE_TRY(percent(*f.max_loss));
  if ((f.max_loss || f.max_kl) && !f.data && !f.check)
    return usage_error(
        fmt::format("{} needs a text to measure on: give --data or --check", f.max_loss ? "--max-loss" : "--max-kl"));
  wish.windows = RIDGE_TRY(window_options(f.windows));
  wish.windows.interrupted = &interrupt_flag();
  return wish;
}

struct Texts {
  std::vector<TokenId> data, check;  // check: empty where nothing is measured
};

class Quantizer {
 public:
  Quantizer(const Flags& flags, const Wish& wish, std::string path, QuantizeSource source)
      : f_(flags),
        wish_(wish),
        path_(std::move(path)),
        source_(std::move(source)),
        pool_(ThreadPoolOptions{.threads = threads_, .cpus = {}}) {}

  Result<void> run() {
    Result<OutputFile> made = make();
    if (!made.ok() && interrupt_flag()) return io_error("stopped by Ctrl-C: nothing was written");
    OutputFile file = RIDGE_TRY(std::move(made));
    RIDGE_TRY(file.commit());
    if (f_.explain) note_block(quantize_reasons(outcome_));
    return print(f_.json ? quantize_json(outcome_) : quantize_table(outcome_));
  }

 private:
  // Measured and within the limits; it has no name yet.
  Result<OutputFile> make() {
    outcome_.model = path_;
    outcome_.output = f_.out;
    outcome_.wish = wish_.type;
    outcome_.bytes_before = source_.file.files().front().bytes;
    for (size_t i : source_.matrices) outcome_.tensors.push_back(source_.file.tensors()[i]);
    if (f_.data || f_.check) RIDGE_TRY(read_texts());
    RIDGE_TRY(find_weights());
    if (!wish_.type) RIDGE_TRY(weigh_matrices());
    std::optional<OutputFile> file = wish_.max_kl ? RIDGE_TRY(search()) : RIDGE_TRY(once());
    RIDGE_TRY(judge());
    RIDGE_CHECK(file.has_value(), "what no limit refuses was written");
    return std::move(*file);
  }

  EngineOptions engine_options_of(const std::string& path) const {
    EngineOptions o;
    o.path = path;
    o.threads = threads_;
    o.default_context = wish_.windows.window;
    o.logits_rows = 16;
    return o;
  }

  // Whole windows: three quarters to learn from, the rest to check on.
  Result<void> read_texts() {
    original_ = RIDGE_TRY(Engine::open(engine_options_of(path_)));
    const size_t window = wish_.windows.window;
    if (f_.check) texts_.check = RIDGE_TRY(tokens_of_file(*original_, *f_.check));
    if (f_.check && texts_.check.size() < window) return too_short(*f_.check, texts_.check.size(), 1);
    if (!f_.data) return {};
    texts_.data = RIDGE_TRY(tokens_of_file(*original_, *f_.data));
    const size_t count = texts_.data.size() / window, held = f_.check ? 0 : std::max<size_t>(1, count / 4);
    if (count < held + 1) return too_short(*f_.data, texts_.data.size(), held + 1);
    if (f_.check) return {};
    const auto cut = texts_.data.begin() + static_cast<ptrdiff_t>((count - held) * window);
    texts_.check.assign(cut, texts_.data.end());
    texts_.data.erase(cut, texts_.data.end());
    return {};
  }

  Error too_short(const std::string& name, size_t tokens, size_t need) const {
    return bad_input(fmt::format("{}: the text has {}, fewer than {} of {}: give more text or a smaller --window", name,
                                 counted(tokens, "token"), counted(need, "window"), wish_.windows.window));
  }

  Result<void> find_weights() {
    if (f_.imatrix) weights_ = RIDGE_TRY(column_weights(source_, RIDGE_TRY(read_imatrix(*f_.imatrix)), *f_.imatrix));
    if (!f_.data) return {};
    ActivationStats stats(0);
    EngineOptions options = engine_options_of(path_);
    options.probe = &stats;
    const auto watched = RIDGE_TRY(Engine::open(options));
    RIDGE_TRY(read_task(*watched, stats, "data", texts_.data, wish_.windows));
    weights_ = column_weights(watched->model(), stats);
    return {};
  }

  // Of the matrices.
  uint64_t all_elements() const {
    uint64_t sum = 0;
    for (const GgufTensor& t : outcome_.tensors) sum += t.elements();
    return sum;
  }

  // Errors of all types, and what they cost.
  Result<void> weigh_matrices() {
    const uint64_t elements = all_elements();
    {
      Progress bar("trying types", elements, ProgressUnit::items);
      outcome_.matrices = RIDGE_TRY(measure_errors(source_, weights_, work(bar)));
    }
    if (f_.map) {
      const ImportanceMap map = RIDGE_TRY(read_map(*f_.map));
      const auto model = RIDGE_TRY(Model::open(path_));
      RIDGE_TRY(require_same_model(map, *f_.map, *model, path_));
      set_scales(map, outcome_.matrices);
      return {};
    }
    if (!f_.data) {
      note("all matrices count alike by the share of their output that is lost: --data FILE measures what that costs");
      return {};
    }
    Progress bar("measuring what errors cost", elements, ProgressUnit::items);
    WindowOptions one = wish_.windows;
    one.most_windows = 1;
    auto kl = [&](const std::string& model) -> Result<double> {
      return RIDGE_TRY(diverge(model, texts_.data, one)).kl;
    };
    outcome_.groups = RIDGE_TRY(measure_scales(source_, outcome_.matrices, weights_, kl, f_.out, work(bar)));
    outcome_.calibrated = true;
    return {};
  }

  QuantizeWork work(Progress& bar) {
    return {.pool = &pool_, .interrupted = &interrupt_flag(), .progress = [&bar](uint64_t n) { bar.advance(n); }};
  }

  Result<Divergence> diverge(const std::string& model, std::span<const TokenId> ids, const WindowOptions& windows) {
    const auto other = RIDGE_TRY(Engine::open(engine_options_of(model)));
    return divergence(*original_, *other, ids, windows);
  }

  std::vector<Type> types_of(const BitMix& mix) const {
    std::vector<Type> types;
    for (size_t i = 0; i < mix.chosen.size(); ++i) types.push_back(outcome_.matrices[i].choices[mix.chosen[i]].type);
    return types;
  }

  // Bytes of the file that are no matrix's.
  uint64_t other_bytes() const {
    std::vector<Type> types;
    uint64_t matrices = 0;
    for (const GgufTensor& t : outcome_.tensors) {
      types.push_back(t.type);
      matrices += t.bytes;
    }
    return quantized_bytes(source_, types) - matrices;
  }

  Result<BitMix> mix_of_size() const {
    const uint64_t elements = all_elements();
    const uint64_t other = other_bytes(), least = least_bytes(outcome_.matrices);
    const uint64_t room = wish_.bits ? static_cast<uint64_t>(*wish_.bits * static_cast<double>(elements) / 8)
                                     : *wish_.bytes - std::min(*wish_.bytes, other);
    std::optional<BitMix> mix = mix_under_bytes(outcome_.matrices, room);
    if (mix) return *mix;
    if (wish_.bits) {
      return does_not_fit(fmt::format("--bits {}: the matrices of {} have {:.2f} bits per weight at least", *wish_.bits,
                                      path_, 8.0 * static_cast<double>(least) / static_cast<double>(elements)));
    }
    return does_not_fit(fmt::format("--size {}: the smallest file of {} has {} bytes ({}): give --size {}", *f_.size,
                                    path_, format_count(other + least), format_bytes(other + least), other + least));
  }

  Result<OutputFile> write(const std::vector<Type>& types) {
    uint64_t elements = 0;
    for (size_t i = 0; i < types.size(); ++i)
      elements += types[i] != outcome_.tensors[i].type ? outcome_.tensors[i].elements() : 0;
    Progress bar("quantising", elements, ProgressUnit::items);
    outcome_.types = types;
    outcome_.bytes_after = quantized_bytes(source_, types);
    return write_quantized(source_, types, weights_, f_.out, work(bar));
  }

  Result<void> measure(const OutputFile& file) {
    outcome_.check = RIDGE_TRY(diverge(file.readable_path(), texts_.check, wish_.windows));
    return {};
  }

  // One type, or a size.
  Result<std::optional<OutputFile>> once() {
    std::vector<Type> types;
    if (wish_.type) {
      for (const GgufTensor& t : outcome_.tensors) types.push_back(type_or_next(t, *wish_.type).value_or(t.type));
      tell_other_types(types);
    } else {
      outcome_.mix = RIDGE_TRY(mix_of_size());
      types = types_of(*outcome_.mix);
    }
    OutputFile file = RIDGE_TRY(write(types));
    if (!texts_.check.empty()) RIDGE_TRY(measure(file));
    return std::optional<OutputFile>(std::move(file));
  }

  void tell_other_types(const std::vector<Type>& types) const {
    const auto others = std::count_if(types.begin(), types.end(), [&](Type t) { return t != *wish_.type; });
    if (others == 0) return;
    note(
        fmt::format("{} of {} matrices cannot be {} or would not get smaller, and get another type or stay: --explain "
                    "names them",
                    others, types.size(), type_info(*wish_.type).name));
  }

  // The smallest mix whose measured divergence is within --max-kl: predictions are corrected by what was measured.
  Result<std::optional<OutputFile>> search() {
    constexpr int kMostTries = 5;
    std::optional<OutputFile> best;
    QuantizeOutcome best_outcome;
    double passed = 0, failed = INFINITY, target = *wish_.max_kl;  // predicted losses that held, and that did not
    for (int i = 0; i < kMostTries; ++i) {
      std::optional<BitMix> mix = mix_under_loss(outcome_.matrices, target);
      RIDGE_CHECK(mix.has_value(), "a model as it is loses nothing");
      if (best && best_outcome.mix->chosen == mix->chosen) break;
      outcome_.mix = mix;
      OutputFile file = RIDGE_TRY(write(types_of(*mix)));
      RIDGE_TRY(measure(file));
      detail(fmt::format("KL {:.5f} predicted, {:.5f} measured, {}", mix->loss, outcome_.check->kl,
                         format_bytes(outcome_.bytes_after)));
      if (outcome_.check->kl <= *wish_.max_kl) {
        passed = std::max(passed, mix->loss);
        if (!best || outcome_.bytes_after < best_outcome.bytes_after) {
          best = std::move(file);
          best_outcome = outcome_;
        }
      } else {
        failed = std::min(failed, mix->loss);
      }
      const double factor = *wish_.max_kl / std::max(1e-9, outcome_.check->kl);
      target = mix->loss > 0 ? mix->loss * factor * 0.99 : target * 2;
      if (target <= passed || target >= failed) target = std::isfinite(failed) ? (passed + failed) / 2 : target;
      if (failed - passed < 0.02 * failed) break;
    }
    if (best) outcome_ = std::move(best_outcome);
    return best;
  }

  // Both limits; what was written has no name yet.
  Result<void> judge() const {
    if (!outcome_.check) return {};
    const Divergence& d = *outcome_.check;
    if (wish_.max_kl && d.kl > *wish_.max_kl) {
      return Error{
          ErrorCode::refused,
          fmt::format("{}: refused: KL is {:.5f} nats per token, above --max-kl {}; nothing is written: give a "
                      "larger limit, or more --data",
                      f_.out, d.kl, *wish_.max_kl)};
    }
    const double rise = perplexity_rise_percent(d);
    if (wish_.max_rise_percent && !(rise <= *wish_.max_rise_percent)) {
      return Error{
          ErrorCode::refused,
          fmt::format("{}: refused: perplexity rises by {:.2f} % ({:.3f} to {:.3f} on {}), above --max-loss {} %; "
                      "nothing is written: allow more bits ({} now)",
                      f_.out, rise, std::exp(d.reference_nll), std::exp(d.other_nll), counted(d.scored, "token"),
                      *wish_.max_rise_percent, format_bytes(outcome_.bytes_after))};
    }
    return {};
  }

  const Flags& f_;
  Wish wish_;
  std::string path_;
  QuantizeSource source_;
  int threads_ = f_.threads ? *f_.threads : std::min(static_cast<int>(usable_cpus().size()), kMostThreads);
  ThreadPool pool_;
  std::unique_ptr<Engine> original_;
  Texts texts_;
  ColumnWeights weights_;
  QuantizeOutcome outcome_;
};

Result<void> run(Flags flags) {
  const Wish wish = RIDGE_TRY(wish_of(flags));
  const std::string path = RIDGE_TRY(resolve_model(flags.model));
  if (flags.threads) flags.threads = RIDGE_TRY(thread_count(*flags.threads));
  for (const auto& input : {std::optional(path), flags.map, flags.imatrix, flags.data, flags.check}) {
    if (input) RIDGE_TRY(refuse_overwriting(flags.out, *input));
  }
  RIDGE_TRY(check_output(flags.out, "-o"));
  Quantizer quantizer(flags, wish, path, RIDGE_TRY(open_quantize_source(path)));
  return quantizer.run();
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("quantize", "fewer bits per weight, where the loss allows it");
  command->add_option("MODEL", flags->model, "GGUF file, or a name from `ridge models`")->type_name("")->required();
  command->add_option("-o,--output", flags->out, "the smaller model")->type_name("FILE")->required();
  command->add_option("--type", flags->type, "one type for all matrices: Q4_K, Q8_0, …")->type_name("T");
  command->add_option("--bits", flags->bits, "a mix of types with so many bits per weight")->type_name("B");
  command->add_option("--size", flags->size, "a mix, the file at most so large")->type_name("BYTES");
  command->add_option("--max-kl", flags->max_kl, "the smallest mix within this KL, nats per token")->type_name("X");
  command->add_option("--data", flags->data, "text to learn what matters from")->type_name("FILE");
  command->add_option("--imatrix", flags->imatrix, "what matters, as sums of squares")->type_name("FILE");
  command->add_option("--map", flags->map, "what matters, of ridge importance -o")->type_name("FILE");
  command->add_option("--check", flags->check, "text to measure the outcome on")->type_name("FILE");
  command->add_option("--max-loss", flags->max_loss, "refuse a larger rise of perplexity, such as 5%")->type_name("P");
  add_window_flags(*command, flags->windows);
  command->add_option("-t,--threads", flags->threads, "threads (default: all)")->type_name("N");
  command->add_flag("--explain", flags->explain, "a sentence for each matrix");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
