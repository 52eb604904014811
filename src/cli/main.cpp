// The program: one command per file, listed here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <new>
#include <system_error>

#include "base/log.h"
#include "cli/common.h"
#include "kernels/choose.h"
#include "machine/heap.h"

namespace {

constexpr const char* kAbout =
    "Ridge runs language models that do not fit in memory and shows what limits them.\n\n"
    "  ridge run smollm2-135m --memory 64M -p \"What is the capital of France?\"\n"
    "  ridge run model.gguf                  (a chat)\n"
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

}  // namespace

int main(int argc, char** argv) {
  ridge::tune_heap();
  // A closed pipe and a file size limit are errors of write(), with a line of their own.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(kAbout, "ridge");
  app.set_version_flag("-V,--version", version_text, "print version, build and instruction set");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Exit codes: 0 done, 2 usage, 3 bad input, 4 does not fit, 5 I/O, 70 a bug.");
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
  for (auto* add :
       {add_run, add_info, add_tokenize, add_detokenize, add_logits, add_perplexity, add_bench, add_kernels,
        add_roofline, add_probe, add_plan, add_sim, add_ladder, add_doctor, add_pack, add_models, add_image}) {
    add(app);
  }
  if (argc == 1 || (argc == 2 && std::string_view(argv[1]) == "help")) {
    const ridge::Result<void> printed = print(app.help());
    return printed.ok() ? 0 : report(printed.error());
  }
  try {
    app.parse(argc, argv);
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
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      return report(ridge::usage_error(fmt::format("'{}' is no command of ridge; see `ridge --help`", argv[1])));
    }
    std::string command = app.get_subcommands().empty() ? "ridge" : "ridge " + app.get_subcommands()[0]->get_name();
    return report(ridge::usage_error(fmt::format("{}; see `{} --help`", e.what(), command)));
  } catch (const std::exception& e) {
    return report({ridge::ErrorCode::bug, fmt::format("bug: {}; please report it with the command you ran", e.what())});
  }
  return exit_code();
}
