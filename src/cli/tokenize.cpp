// ridge tokenize and detokenize: text to token ids and back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "format/gguf.h"
#include "model/model_file.h"
#include "text/tokenizer_file.h"

namespace ridge::cli {
namespace {

constexpr const char* kTokenizeExamples =
    "Examples:\n"
    "  ridge tokenize model.gguf \"Hello world\"\n"
    "  ridge tokenize model.gguf \"<|im_start|>user\" --parse-special --json\n"
    "  ridge tokenize spiece.model \"red apple\"     (or a tokenizer.json)\n"
    "  ridge tokenize model.gguf < text.txt\n"
    "  echo '[\"one\", \"two\"]' | ridge tokenize model.gguf --lines-json\n\n"
    "By default special tokens (BOS, EOS) are added as the model wants, and text that\n"
    "looks like one is ordinary text.";
constexpr const char* kDetokenizeExamples =
    "Examples:\n"
    "  ridge detokenize model.gguf 19556 905\n"
    "  ridge tokenize model.gguf Hello | ridge detokenize model.gguf -";

struct Flags {
  std::string model;
  std::optional<std::string> text;
  std::vector<std::string> ids;
  bool no_special = false, parse_special = false, json = false, lines_json = false, show_special = false;
};

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& model) {
  const std::string path = RIDGE_TRY(resolve_model(model));
  if (RIDGE_TRY(tokenizer_file_kind(path)) != TokenizerFileKind::other) return open_tokenizer_file(path);
  ModelFile file = RIDGE_TRY(open_model_file(path, Verify::headers));
  return Tokenizer::from_metadata(file.header.metadata());
}

EncodeOptions encode_options(const Flags& flags) {
  return {.add_special = !flags.no_special, .parse_special = flags.parse_special};
}

Result<void> tokenize_lines(const Tokenizer& tokenizer, const Flags& flags) {
  std::string input = RIDGE_TRY(read_text("-"));
  nlohmann::json lines = nlohmann::json::parse(input, nullptr, false);
  bool good = lines.is_array() && std::all_of(lines.begin(), lines.end(), [](const auto& l) { return l.is_string(); });
  if (!good) return bad_input("standard input is no JSON array of strings, as --lines-json expects");
  std::string out = "[";
  for (const auto& line : lines) {
    nlohmann::json ids = tokenizer.encode(line.get_ref<const std::string&>(), encode_options(flags));
    out += (out.size() > 1 ? ",\n" : "") + ids.dump();
  }
  return print(out + "]\n");
}

Result<void> tokenize(const Flags& flags) {
  if (flags.no_special && flags.parse_special) {
    return usage_error("--no-special and --parse-special exclude one another: give one");
  }
  if (flags.lines_json && flags.text) return usage_error("--lines-json reads standard input: leave the text out");
  if (flags.lines_json && flags.json) return usage_error("--json and --lines-json are two forms: give one");
  auto tokenizer = RIDGE_TRY(open_tokenizer(flags.model));
  if (flags.lines_json) return tokenize_lines(*tokenizer, flags);
  const bool given = flags.text && *flags.text != "-";
  std::string text = given ? *flags.text : RIDGE_TRY(read_text("-"));
  RIDGE_TRY(require_utf8(text, given ? "the text" : "standard input"));
  std::vector<TokenId> ids = tokenizer->encode(text, encode_options(flags));
  if (!flags.json) return print(fmt::format("{}\n", fmt::join(ids, " ")));
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (TokenId id : ids) out.push_back({{"id", id}, {"text", tokenizer->piece(id, true)}});
  return print(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Result<void> detokenize(const Flags& flags) {
  auto tokenizer = RIDGE_TRY(open_tokenizer(flags.model));
  std::string words = fmt::format("{}", fmt::join(flags.ids, " "));
  if (words.empty() || words == "-") words = RIDGE_TRY(read_text("-"));
  std::vector<TokenId> ids = RIDGE_TRY(parse_ids(words));
  for (TokenId id : ids) {
    if (static_cast<size_t>(id) >= tokenizer->size()) {
      return bad_input(fmt::format("token {} is outside the vocabulary of {} tokens", id, tokenizer->size()));
    }
  }
  return print(tokenizer->decode(ids, {.show_special = flags.show_special}) + "\n");
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("tokenize", "text to token ids");
  command->add_option("MODEL", flags->model, "a model, spiece.model or tokenizer.json")->type_name("")->required();
  command->add_option("TEXT", flags->text, "the text; - or nothing: standard input")->type_name("");
  command->add_flag("--no-special", flags->no_special, "add no BOS or EOS");
  command->add_flag("--parse-special", flags->parse_special, "text such as <|im_end|> becomes its token");
  command->add_flag("--json", flags->json, "ids with their texts, as JSON");
  command->add_flag("--lines-json", flags->lines_json, "array of strings in, array of id arrays out");
  command->footer(kTokenizeExamples);
  on_run(*command, [flags] { return tokenize(*flags); });
}

void add_detokenize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("detokenize", "token ids to text");
  command->add_option("MODEL", flags->model, "a model, spiece.model or tokenizer.json")->type_name("")->required();
  command->add_option("IDS", flags->ids, "token ids (default: standard input)")->type_name("");
  command->add_flag("--show-special", flags->show_special, "print control tokens too");
  command->footer(kDetokenizeExamples);
  on_run(*command, [flags] { return detokenize(*flags); });
}

}  // namespace ridge::cli
