// ridge logits: F32 logits of every position as a NumPy file, for checking against other implementations.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/log.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/common.h"
#include "format/npy.h"
#include "report/run_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge logits model.gguf --tokens 1,2,3 -o out.npy\n"
    "  ridge logits model.gguf --tokens 1,2,3 -o out.npy --numerics exact\n"
    "  ridge logits model.gguf --tokens 1,2,3 -o out.npy --memory 64M --io threads\n\n"
    "The array is [tokens, vocabulary]; row i follows token i.";

struct Flags {
  EngineFlags engine;
  std::string tokens, out;
};

// Rows computed at a time: enough to keep the head's weights busy, few enough for small budgets.
constexpr uint32_t kLogitsRows = 8;

Result<void> run(const Flags& flags) {
  std::vector<TokenId> ids = RIDGE_TRY(parse_ids(flags.tokens));
  if (ids.empty()) return usage_error("--tokens is empty: give ids such as 1,2,3");
  RIDGE_TRY(check_output(flags.out, "-o"));
  EngineOptions options = RIDGE_TRY(engine_options(flags.engine));
  options.need_tokenizer = false;
  options.logits_rows = kLogitsRows;
  options.default_context = std::max<uint64_t>(ids.size(), 16);
  auto engine = RIDGE_TRY(Engine::open(options));
  RIDGE_TRY(refuse_overwriting(flags.out, *engine, options));
  auto file = RIDGE_TRY(NpyWriter::create(flags.out, ids.size(), engine->model().config().vocabulary));
  Progress bar("evaluating", ids.size(), ProgressUnit::items);
  RIDGE_TRY(engine->evaluate_all(ids, [&](std::span<const float> row) {
    bar.advance(1);
    return file.append(row);
  }));
  RIDGE_TRY(file.finish());
  note(fmt::format("{} is written: {} × {} F32, {}", flags.out, counted(ids.size(), "row"),
                   engine->model().config().vocabulary,
                   format_bytes(ids.size() * engine->model().config().vocabulary * sizeof(float))));
  detail(run_summary(*engine));
  return {};
}

}  // namespace

void add_logits(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("logits", "write the logits of every position to a NumPy file");
  add_engine_flags(*command, flags->engine);
  add_lora_flag(*command, flags->engine);
  command->add_option("--tokens", flags->tokens, "token ids, such as 1,2,3")->type_name("LIST")->required();
  command->add_option("-o,--output", flags->out, "the .npy file")->type_name("FILE")->required();
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli
