// ridge-distill: `ridge distill` and `ridge tune` with libtorch. Not for people: ridge starts it, with the same words.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/common.h"
#include "cli/distill.h"

namespace ridge::cli {

Result<distill::TrainReport> start_training(const distill::DistillJob& job, const distill::TrainHooks& hooks) {
  return distill::train(job, hooks);
}

Result<distill::TuneReport> start_tuning(const distill::TuneJob& job, const distill::TrainHooks& hooks) {
  return distill::tune(job, hooks);
}

}  // namespace ridge::cli

int main(int argc, char** argv) {
  // As in main.cpp: a closed pipe and a file size limit are errors of write().
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("The trainer of `ridge distill` and `ridge tune`.", "ridge");
  app.require_subcommand(1);
  app.fallthrough();
  bool verbose = false, quiet = false;
  app.add_flag("-v,--verbose", verbose);
  app.add_flag("-q,--quiet", quiet);
  app.parse_complete_callback([&] {
    ridge::set_verbosity(quiet     ? ridge::Verbosity::quiet
                         : verbose ? ridge::Verbosity::verbose
                                   : ridge::Verbosity::normal);
  });
  ridge::cli::add_distill(app);
  ridge::cli::add_tune(app);
  ridge::cli::check_words(app);
  std::vector<std::string> words(argv + 1, argv + argc);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    return ridge::cli::report(ridge::usage_error(ridge::cli::words_for(app, e)));
  } catch (const std::bad_alloc&) {
    return ridge::cli::report(ridge::does_not_fit("out of memory: give a smaller student, --batch or --context"));
  } catch (const std::exception& e) {
    return ridge::cli::report({ridge::ErrorCode::bug, std::string("bug: ") + e.what() + "; please report it"});
  }
  return ridge::cli::exit_code();
}
