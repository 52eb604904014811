// What a command line must be beyond what CLI11 looks at, and words for what it finds wrong.
//
// Not for: what a command asks of its own values (ranges, names): that is in its file.
//
//   CLI::App app;
//   add_run(app);
//   check_words(app);                          // after all commands are added
//   …
//   catch (const CLI::ParseError& e) { return report(usage_error(words_for(app, e))); }
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace ridge::cli {

// The last line of every help. One line, because that of the program has no room for two.
inline constexpr const char* kExitCodes =
    "Exit codes: 2 usage, 3 bad input, 4 does not fit, 5 I/O, 6 refused, 70 a bug.";

// Gives every option of every command that takes a whole number (type name N or K), another number (X, FLOAT) or the
// name of a file (FILE, FILES, DIR, MODEL) a look at its word: whole numbers in decimal that 64 bits hold, nothing
// empty. CLI11 reads 010 as eight and takes a number that is too large for the largest there is.
void check_words(CLI::App& app);

// The same for an option whose numbers may not be negative, such as a seed: CLI11 would wrap -1 around.
std::string refuse_negative(std::string& word);

// One line for what CLI11 found, with where to read on.
std::string words_for(const CLI::App& app, const CLI::ParseError& error);

// The words of `ridge help COMMAND…` as `ridge COMMAND… --help`; other command lines as they are.
std::vector<std::string> with_help(const CLI::App& app, int argc, char** argv);

}  // namespace ridge::cli
