// ridge run: answers a prompt, continues a text, or chats.
#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <type_traits>

#include "base/log.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/trace_file.h"
#include "format/file_stream.h"
#include "report/run_report.h"
#include "sim/recorded_trace.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge run smollm2-135m -p \"Why is the sky blue?\"\n"
    "  ridge run model.gguf --memory 300M -f notes.txt -n 200 --stats\n"
    "  printf \"Once upon a time\" | ridge run model.gguf --raw -n 50 -\n"
    "  ridge run model.gguf                                 (a chat; Ctrl-D leaves)\n"
    "  ridge run model.gguf -p Hi --temp 0 --json           (greedy, as JSON)\n"
    "  ridge run model.gguf --system \"$LONG\" -p \"\" -n 0 --save-state long.state\n"
    "  ridge run model.gguf --system \"$LONG\" -p Hi --load-state long.state\n"
    "  ridge run model.gguf --memory 300M -f a.c --draft-ngram 4  (same text, sooner)\n"
    "  ridge run model.gguf --memory 300M -p Hi --trace out.json";

Result<std::vector<std::pair<TokenId, float>>> parse_bias(const std::vector<std::string>& words) {
  std::vector<std::pair<TokenId, float>> out;
  for (const std::string& word : words) {
    // "1234=-5" or "1234+5" or "1234-5"
    size_t cut = word.find_first_of("=+-", 1);
    TokenId id = 0;
    float bias = 0;
    bool good =
        cut != std::string::npos && std::from_chars(word.data(), word.data() + cut, id).ptr == word.data() + cut;
    if (good) {
      std::string number = word.substr(word[cut] == '=' || word[cut] == '+' ? cut + 1 : cut);
      if (!number.empty() && number[0] == '+') number.erase(0, 1);
      auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bias);
      good = error == std::errc() && end == number.data() + number.size();
    }
    if (!good)
      return usage_error(fmt::format("--logit-bias '{}' is not understood: write TOKEN=BIAS, such as 15043=-2", word));
    out.emplace_back(id, bias);
  }
  return out;
}

// The prompt of -p and -f. A text that no tokenizer brings into the context is refused before all of it is read: 64
// bytes a token is more than prose or code ever has.
Result<std::string> prompt_text(const RunFlags& flags, const EngineOptions& options) {
  constexpr uint64_t kMostBytesPerToken = 64, kDefaultContext = 4096;
  uint64_t context = options.context != 0 ? options.context : kDefaultContext;
  TextLimit limit{.most_bytes = context * kMostBytesPerToken,
                  .too_long = fmt::format("the prompt is longer than a context of {} can hold: shorten it or raise "
                                          "--context",
                                          context)};
  std::string text = flags.prompt.value_or("");
  RIDGE_TRY(require_utf8(text, "the prompt"));
  if (text.size() > limit.most_bytes) return bad_input(limit.too_long);
  if (!flags.file) return text;
  std::string from_file = RIDGE_TRY(read_text(*flags.file, limit));
  RIDGE_TRY(require_utf8(from_file, *flags.file == "-" ? "standard input" : *flags.file));
  return text.empty() || from_file.empty() ? text + from_file : text + "\n\n" + from_file;
}

Result<ExpertPolicy> parse_expert_policy(const std::string& name) {
  for (ExpertPolicy policy : {ExpertPolicy::lru, ExpertPolicy::decayed_lfu, ExpertPolicy::importance}) {
    if (name_of(policy) == name) return policy;
  }
  return usage_error(
      fmt::format("--expert-policy {} is not known: give lru, decayed-lfu, importance, or leave it out", name));
}

// Why the text ends where it does.
std::string end_words(const RunFlags& flags, StopReason reason) {
  switch (reason) {
    case StopReason::end_of_generation:
      return "by the model";
    case StopReason::stop_text:
      return "by --stop";
    case StopReason::token_limit:
      return fmt::format("by -n {}; a larger one lets the model go on", flags.max_tokens);
    case StopReason::context_full:
      return "by the context, which is full; --context asks for more";
    case StopReason::interrupted:
      break;
  }
  return "by Ctrl-C";
}

// Prints the answer; why it ended.
Result<StopReason> answer(Engine& engine, const RunFlags& flags, const std::string& text, const Prompt& prompt,
                          Sampler& sampler, Speculator* speculator) {
  std::vector<ChatMessage> messages;
  if (flags.system && prompt.is_chat()) messages.push_back({"system", *flags.system});
  messages.push_back({"user", text});
  std::vector<TokenId> ids = RIDGE_TRY(prompt.conversation(messages));
  if (flags.show_prompt) show_prompt(*engine.tokenizer(), ids);
  Result<void> printed;
  GenerateOptions options = generate_options(flags);
  options.interrupted = &interrupt_flag();
  options.speculator = speculator;
  if (flags.save_state) options.on_prompt = [&] { return save_state(engine, *flags.save_state); };
  Generation g = RIDGE_TRY(generate(engine, ids, options, sampler, [&](std::string_view piece) {
    if (flags.json) return true;
    printed = print(piece);
    return printed.ok();
  }));
  RIDGE_TRY(std::move(printed));
  if (flags.json) {
    nlohmann::ordered_json out = {{"text", g.text},
                                  {"stop_reason", name_of(g.reason)},
                                  {"tokens", g.ids},
                                  {"prompt_tokens", g.prompt_tokens},
                                  {"reused_tokens", g.reused_tokens},
                                  {"seed", flags.sampler.seed},
                                  {"stats", run_json(engine)}};
    RIDGE_TRY(print(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
    return g.reason;
  }
  RIDGE_TRY(print("\n"));
  if (flags.load_state) note(fmt::format("{} of {} prompt tokens were in the state", g.reused_tokens, g.prompt_tokens));
  if (g.reason == StopReason::context_full)
    note(fmt::format("stopped: the context of {} is full; --context asks for more", engine.context()));
  if (g.reason == StopReason::interrupted) note("stopped by Ctrl-C");
  return g.reason;
}

Result<void> run(RunFlags& flags) {
  if (flags.input && *flags.input != "-") {
    return usage_error(fmt::format(
        "'{}' is not understood: give the prompt with -p, or - to read it from standard input", *flags.input));
  }
  if (flags.input) flags.file = "-";
  if (flags.max_tokens < -1) {
    return usage_error(
        fmt::format("-n {} is no usable number: give 0 or more; without -n the model ends the text", flags.max_tokens));
  }
  flags.sampler.logit_bias = RIDGE_TRY(parse_bias(flags.logit_bias));
  flags.sampler.seed = flags.seed ? *flags.seed : std::random_device{}();
  RIDGE_TRY(check(flags.sampler));
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  bool has_prompt = flags.prompt || flags.file;
  bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (!has_prompt && !terminal) flags.file = "-";
  if (!has_prompt && terminal && flags.json) return usage_error("--json needs a prompt: give -p TEXT, -f FILE or -");
  bool chats = !has_prompt && terminal;
  std::string text = chats ? "" : RIDGE_TRY(prompt_text(flags, options));
  if (flags.system) RIDGE_TRY(require_utf8(*flags.system, "--system"));
  for (const std::string& stop : flags.stops) RIDGE_TRY(require_utf8(stop, "--stop"));
  options.text_bytes = text.size();
  options.states = flags.save_state || flags.load_state;
  // Found out now, not after minutes of loading and reading.
  if (flags.load_state) (void)RIDGE_TRY(FileStream::open(*flags.load_state));
  if (flags.save_state) RIDGE_TRY(check_output(*flags.save_state, "--save-state"));
  if (flags.record) RIDGE_TRY(check_output(*flags.record, "--record"));
  options.record = flags.record.has_value();
  options.all_neurons = flags.all_neurons;
  if (flags.expert_policy) options.expert_policy = RIDGE_TRY(parse_expert_policy(*flags.expert_policy));
  RIDGE_TRY(apply(flags.cache, options));
  RIDGE_TRY(apply(flags.drafts, options));
  std::optional<TraceFile> trace;
  if (flags.trace) trace.emplace(RIDGE_TRY(TraceFile::create(*flags.trace, "ridge run")));
  if (trace) options.trace = trace->trace();
  auto engine = RIDGE_TRY(Engine::open(options));
  RIDGE_TRY(check(flags.sampler, engine->model().config().vocabulary));
  tell_masking(*engine);
  if (flags.save_state) RIDGE_TRY(refuse_overwriting(*flags.save_state, *engine, options, "--save-state"));
  for (const auto& [file, flag] : {std::pair(flags.save_state, "--save-state"), std::pair(flags.record, "--record")})
    if (file && flags.cache.map) RIDGE_TRY(refuse_overwriting(*file, *flags.cache.map, flag));
  if (flags.record) RIDGE_TRY(refuse_overwriting(*flags.record, *engine, options, "--record"));
  if (flags.trace) RIDGE_TRY(refuse_overwriting(*flags.trace, *engine, options, "--trace"));
  if (flags.load_state) RIDGE_TRY(engine->load_state(*flags.load_state));
  if (flags.explain) note_block(explanation(*engine));
  Prompt prompt = RIDGE_TRY(Prompt::create(*engine, flags.raw ? PromptKind::raw : PromptKind::automatic));
  if (flags.system && !prompt.is_chat()) {
    note(flags.raw ? "--system is not used with --raw" : "--system is not used: this model has no chat template");
  }
  Sampler sampler(flags.sampler, engine->model().config().vocabulary);
  auto speculator = make_speculator(flags.drafts, *engine, flags.sampler, sampler);
  std::optional<StopReason> reason;
  auto generated = [&]() -> Result<void> {
    if (chats) return chat(*engine, flags, prompt, sampler, speculator.get());
    reason = RIDGE_TRY(answer(*engine, flags, text, prompt, sampler, speculator.get()));
    return {};
  };
  Result<void> done = generated();
  uint64_t told = 0;
  if (!chats) tell_switches(*engine, told);
  // What happened before an error is worth as much.
  Result<void> traced = trace ? trace->finish(*engine) : Result<void>{};
  RIDGE_TRY(std::move(done));
  RIDGE_TRY(std::move(traced));
  if (flags.record) RIDGE_TRY(write_recording(*engine, *flags.record));
  if (flags.stats) {
    if (flags.sampler.temperature > 0) note(fmt::format("--seed {} gives this text again", flags.sampler.seed));
    note_block(run_table(*engine));
    if (reason) note_block(fmt::format("  {:<22} {}\n", "ended", end_words(flags, *reason)));
  } else {
    const bool cut = reason == StopReason::token_limit && flags.max_tokens > 0;
    note(run_summary(*engine) + (cut ? fmt::format(" · ended by -n {}", flags.max_tokens) : ""));
  }
  return {};
}

void add_sampler_flags(CLI::App& command, RunFlags& f) {
  auto add = [&](const char* names, auto& value, const char* what) {
    const char* type = std::is_integral_v<std::remove_reference_t<decltype(value)>> ? "N" : "X";
    command.add_option(names, value, what)->type_name(type)->capture_default_str()->group("Sampling");
  };
  add("--temp", f.sampler.temperature, "temperature; 0 is greedy");
  add("--top-k", f.sampler.top_k, "keep the k likeliest tokens; 0 is all");
  add("--top-p", f.sampler.top_p, "keep the likeliest of this total probability");
  add("--min-p", f.sampler.min_p, "drop what is less likely than this × the best");
  add("--repeat-penalty", f.sampler.repeat_penalty, "divide the logits of recent tokens; 1: off");
  add("--presence-penalty", f.sampler.presence_penalty, "subtract this from recent tokens");
  add("--frequency-penalty", f.sampler.frequency_penalty, "subtract this for every occurrence");
  add("--penalty-window", f.sampler.penalty_window, "last tokens that the penalties look at");
  command.add_option("--logit-bias", f.logit_bias, "TOKEN=BIAS, may be repeated")
      ->type_name("T=B")
      ->expected(1)
      ->take_all()
      ->group("Sampling");
  command.add_option("--seed", f.seed, "the same seed gives the same text")
      ->type_name("N")
      ->check(CLI::Validator(refuse_negative, ""))
      ->group("Sampling");
}

}  // namespace

Result<void> write_recording(const Engine& engine, const std::string& path) {
  const RecordingSource& recording = *engine.recording();
  if (recording.full()) {
    note(fmt::format("the recording ends after {}: it takes no more memory than was planned",
                     counted(recording.pass_begins().size(), "pass", "passes")));
  }
  return sim::write_recorded(engine.plan().program, recording.order(), recording.pass_begins(),
                             engine.model().file().metadata().where, path);
}

void show_prompt(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  note(fmt::format("the model reads {}:", counted(ids.size(), "token")));
  note_block(tokenizer.decode(ids, {.show_special = true}) + "\n");
}

Result<void> save_state(Engine& engine, const std::string& path) {
  RIDGE_TRY(engine.save_state(path));
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  note(fmt::format("{} is written: {}, {}", path, counted(engine.reusable(), "token"),
                   error ? "size unknown" : format_bytes(bytes)));
  return {};
}

GenerateOptions generate_options(const RunFlags& flags) {
  return {.max_tokens = flags.max_tokens, .stops = flags.stops, .ignore_end = flags.ignore_end};
}

void add_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  auto* command = app.add_subcommand("run", "answer a prompt, continue a text, or chat");
  add_engine_flags(*command, flags->engine);
  add_lora_flag(*command, flags->engine);
  command->add_option("-p,--prompt", flags->prompt, "the text to answer or to continue")->type_name("TEXT");
  command->add_option("-f,--file", flags->file, "read the prompt from a file, after the text of -p")->type_name("FILE");
  command->add_option("INPUT", flags->input, "- reads the prompt from standard input")->type_name("");
  command->add_option("-n,--n-predict", flags->max_tokens, "most tokens to generate (default: no limit)")
      ->type_name("N");
  command->add_option("--system", flags->system, "system message of the conversation")->type_name("TEXT");
  command->add_option("--save-state", flags->save_state, "keep what was read of the prompt (a chat: of all) here")
      ->type_name("FILE");
  command->add_option("--load-state", flags->load_state, "read only what this state does not begin with")
      ->type_name("FILE");
  command->add_option("--record", flags->record, "write the order of visited blocks, for `ridge sim`")
      ->type_name("FILE");
  command->add_option("--stop", flags->stops, "end before this text, may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command->add_flag("--raw", flags->raw, "no chat template: the text as it is");
  command->add_flag("--show-prompt", flags->show_prompt, "say what the model gets to read; alone with -n 0");
  command->add_flag("--ignore-eos", flags->ignore_end, "go on after the model ends");
  command->add_flag("--json", flags->json, "print one JSON object");
  add_cache_flags(*command, flags->cache);
  command->add_option("--expert-policy", flags->expert_policy, "caching: lru, decayed-lfu, importance")
      ->type_name("NAME");
  command->add_flag("--all-neurons", flags->all_neurons, "to compare: read also neurons that rest");
  command->add_option("--trace", flags->trace, "write what happened when, for `ridge report`")->type_name("FILE");
  command->add_flag("--stats", flags->stats, "say where the time and the bytes went");
  command->add_flag("--explain", flags->explain, "say what was planned and why");
  add_sampler_flags(*command, *flags);
  add_draft_flags(*command, flags->drafts);
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
