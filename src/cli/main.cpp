// The program: one command per file, listed here.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/common.h"
#include "kernels/choose.h"
#include "machine/heap.h"

namespace {

constexpr const char* kAbout =
    "Ridge runs language models that do not fit in memory and shows what limits them.\n\n"
    "  ridge run smollm2-135m --memory 64M -p \"Why is the sky blue?\"\n"
    "  ridge info model.gguf                 (what it is and what it needs)";

std::string version_text() {
  std::string isa = "unknown";
  if (auto choice = ridge::choose_kernels({}); choice.ok()) isa = ridge::name_of(choice.value().kernels.isa);
  return fmt::format("ridge {} ({}; {} {}; kernels: {})", RIDGE_VERSION, RIDGE_BUILD_TYPE,
#if defined(__clang__)
                     "clang", __clang_major__,
#else
                     "g++", __GNUC__,
#endif
                     isa);
}

// A stream that the caller closed would be the number of the next file that is opened, and what is said would go into
// that. Opened for the other direction, it stays an error of whoever uses it.
void keep_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  ridge::tune_heap();
  // A closed pipe and a file size limit are errors of write(), with a line of their own.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(kAbout, "ridge");
  app.set_version_flag("-V,--version", version_text, "print version, build and instruction set");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(ridge::cli::kExitCodes);
  app.get_formatter()->column_width(26);
  bool verbose = false, quiet = false;
  app.add_flag("-v,--verbose", verbose, "say more on stderr");
  app.add_flag("-q,--quiet", quiet, "say only what went wrong");
  app.parse_complete_callback([&] {
    ridge::set_verbosity(quiet     ? ridge::Verbosity::quiet
                         : verbose ? ridge::Verbosity::verbose
                                   : ridge::Verbosity::normal);
  });
  using namespace ridge::cli;
  for (auto* add : {add_run,      add_info,    add_tokenize, add_detokenize, add_logits, add_perplexity, add_importance,
                    add_bench,    add_kernels, add_roofline, add_probe,      add_plan,   add_sim,        add_ladder,
                    add_doctor,   add_compare, add_image,    add_distill,    add_tune,   add_claims,     add_pack,
                    add_quantize, add_ir,      add_models,   add_report}) {
    add(app);
  }
  check_words(app);
  if (argc == 1 || (argc == 2 && std::string_view(argv[1]) == "help")) {
    const ridge::Result<void> printed = print(app.help());
    return printed.ok() ? 0 : report(printed.error());
  }
  std::vector<std::string> words = with_help(app, argc, argv);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
  try {
    app.parse(words);
  } catch (const CLI::Success& e) {  // help or version was asked for
    int code = app.exit(e);
    if (std::cout.flush()) return code;
    return report(ridge::io_error("standard output cannot be written: the text is not complete"));
  } catch (const std::bad_alloc&) {
    return report(
        ridge::does_not_fit("out of memory: the system refused an allocation; give --memory a smaller value"));
  } catch (const std::system_error& e) {
    return report(
        ridge::io_error(fmt::format("the system refused a resource ({}): fewer --threads may help", e.what())));
  } catch (const CLI::ParseError& e) {
    return report(ridge::usage_error(words_for(app, e)));
  } catch (const std::exception& e) {
    return report({ridge::ErrorCode::bug, fmt::format("bug: {}; please report it with the command you ran", e.what())});
  }
  return exit_code();
}
