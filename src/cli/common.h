// What the commands share: engine flags, error lines, output that notices a closed pipe.
//
// A command is one file: it adds its subcommand with flags, help and examples to the app, and a function that runs it
// and returns an exit code. main.cpp lists them.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace CLI {
class App;
}

namespace ridge::cli {

// What a command does; its error is printed and decides what exit_code() is after parsing.
using Run = std::function<Result<void>()>;
void on_run(CLI::App& command, Run run);
int exit_code();

// The error's line on stderr; returns its exit code.
int report(const Error& error);

// Flags that every command with an engine takes.
struct EngineFlags {
  std::string model;
  std::optional<std::string> memory;
  std::optional<int64_t> context;
  std::optional<int> threads;
  std::optional<std::string> cpus;
  std::optional<std::string> isa;
  std::string numerics = "default";
  std::optional<std::string> kv_type;
  std::string io = "auto";
  std::optional<std::string> floor, pins;
  std::vector<std::string> loras;  // FILE or FILE=SCALE
};
void add_engine_flags(CLI::App& command, EngineFlags& flags);
// --lora, of commands that run the model.
void add_lora_flag(CLI::App& command, EngineFlags& flags);
Result<EngineOptions> engine_options(const EngineFlags& flags);
// A number of --threads that can be used, noted if there are fewer CPUs; a usage error otherwise.
Result<int> thread_count(int64_t threads);
// Of these only what is about the machine: memory, threads, CPUs, instructions, I/O. No model.
Result<EngineOptions> machine_options(const EngineFlags& flags);

// The model argument: a path, or the name of a demo model that is in the cache (`ridge models`).
Result<std::string> resolve_model(const std::string& name);

// Writes to stdout at once; an I/O error if stdout is closed or full.
Result<void> print(std::string_view text);

// The text of a file, or of standard input for "-", as long as it has at most `most_bytes`; a longer one is bad input
// with the words of `too_long`, found without reading further. Bad input for what cannot be read.
struct TextLimit {
  uint64_t most_bytes = uint64_t{1} << 30;
  std::string too_long = "the text is longer than 1 GiB: cut it into parts";
};
Result<std::string> read_text(const std::string& path, const TextLimit& limit = {});
// Usage error if writing to `path` would replace one of these files.
Result<void> refuse_overwriting(const std::string& path, std::span<const GgufFile> inputs,
                                std::string_view flag = "-o");
Result<void> refuse_overwriting(const std::string& path, const std::string& input, std::string_view flag = "-o");
// The model's files and its adapters.
Result<void> refuse_overwriting(const std::string& path, const Engine& engine, const EngineOptions& options,
                                std::string_view flag = "-o");
// A file or folder that a command will write, and the flag that named it.
struct OutputName {
  std::string flag;
  std::string path;
};
// Usage error if two of them are one file, however they are spelt.
Result<void> refuse_twice(std::span<const OutputName> outputs);
// Whether a result can be written to `path`, found out before minutes of work are spent on it: a usage error for no
// name and for "-", else what creating it says. Nothing is left there.
Result<void> check_output(const std::string& path, std::string_view flag);
// A whole new file, or none: whatever fails leaves `path` as it was.
Result<void> write_text(const std::string& path, std::string_view text);
// Bad input with the byte offset if the text is no UTF-8.
Result<void> require_utf8(std::string_view text, std::string_view what);
// A text file in the tokens of an engine's model, as it stands there. Bad input: no UTF-8, or a model without a
// tokenizer.
Result<std::vector<TokenId>> tokens_of_file(const Engine& engine, const std::string& path);

// Ctrl-C: the first sets the flag, a second one ends the program.
const std::atomic<bool>& interrupt_flag();
void clear_interrupt();

// Token ids as people write them: "1,2,3".
Result<std::vector<TokenId>> parse_ids(std::string_view text);

// One per command.
void add_run(CLI::App& app);
void add_info(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_detokenize(CLI::App& app);
void add_logits(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_importance(CLI::App& app);
void add_probe(CLI::App& app);
void add_pack(CLI::App& app);
void add_quantize(CLI::App& app);
void add_ir(CLI::App& app);
void add_models(CLI::App& app);
void add_sim(CLI::App& app);
void add_plan(CLI::App& app);
void add_bench(CLI::App& app);
void add_kernels(CLI::App& app);
void add_ladder(CLI::App& app);
void add_doctor(CLI::App& app);
void add_report(CLI::App& app);
void add_roofline(CLI::App& app);
void add_compare(CLI::App& app);
void add_image(CLI::App& app);
void add_distill(CLI::App& app);
void add_claims(CLI::App& app);
void add_tune(CLI::App& app);

}  // namespace ridge::cli
