#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace ridge::cli {
namespace {

// CLI11 then reads the digits as they are written: "010" is ten.
std::string whole_number(std::string& word) {
  std::string_view digits = word;
  const bool negative = !digits.empty() && digits.front() == '-';
  if (!digits.empty() && (negative || digits.front() == '+')) digits.remove_prefix(1);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty() || error == std::errc::invalid_argument) {
    return fmt::format("'{}' is no whole number", word);
  }
  if (error == std::errc::result_out_of_range || (negative && value > uint64_t{INT64_MAX})) {
    return fmt::format("{} is no usable number: it is out of any range", word);
  }
  word = fmt::format("{}{}", negative ? "-" : "", value);
  return {};
}

std::string named(std::string& word) { return word.empty() ? "is empty: give the name of a file" : ""; }

// CLI11 takes an empty word for an option that may be left out as if it were left out.
std::string some_number(std::string& word) { return word.empty() ? "'' is no usable number" : ""; }

bool is_one_of(const std::string& type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// The type name alone, as commands set it; get_type_name() of a positional is empty, so its own name counts.
std::string type_of(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_type_name();
}

}  // namespace

void check_words(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = type_of(*option);
    if (is_one_of(type, {"N", "K"})) option->transform(CLI::Validator(whole_number, ""));
    if (is_one_of(type, {"X", "FLOAT"})) option->check(CLI::Validator(some_number, ""));
    if (is_one_of(type, {"FILE", "FILES", "DIR", "MODEL"})) option->check(CLI::Validator(named, ""));
  }
  for (CLI::App* command : app.get_subcommands({})) check_words(*command);
}

std::string refuse_negative(std::string& word) {
  return word.starts_with('-') ? fmt::format("{} is no usable number: give 0 or more", word) : "";
}

std::string words_for(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "ridge";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::string more = fmt::format("; see `{} --help`", name);
  std::string what = error.what();
  // An option comes with words of its own: it is what is named.
  std::vector<std::string> unknown = app.remaining(true);
  std::stable_partition(unknown.begin(), unknown.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (command == &app && !unknown.empty()) {
    const char* kind = unknown.front().starts_with('-') ? "option" : "command";
    return fmt::format("'{}' is no {} of ridge{}", unknown.front(), kind, more);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
    return fmt::format("'{}' is not understood{}", unknown.front(), more);
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    constexpr std::string_view kBegin = "Could not convert: ", kEquals = " = ";
    if (const size_t cut = what.find(kEquals); what.starts_with(kBegin) && cut != std::string::npos) {
      what = fmt::format("{}: '{}' is no usable number", what.substr(kBegin.size(), cut - kBegin.size()),
                         what.substr(cut + kEquals.size()));
    }
  }
  if (const size_t cut = what.find(": At Most 1 required"); cut != std::string::npos) {
    what = fmt::format("{} is given more than once", what.substr(0, cut));
  }
  return what + more;
}

std::vector<std::string> with_help(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2 || words.front() != "help") return words;
  words.erase(words.begin());
  // What is no command is said so, and not helped with.
  auto is_asked_for = [&](const CLI::App* command) { return command->get_name() == words.front(); };
  if (!app.get_subcommands(is_asked_for).empty()) words.emplace_back("--help");
  return words;
}

}  // namespace ridge::cli
