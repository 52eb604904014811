#include "engine/image_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace ridge {
namespace {

namespace fs = std::filesystem;

enum class Part : uint8_t { none, model, text_encoder, vae };

constexpr std::string_view kPackEnding = ".ridge";
constexpr std::string_view kEndings[] = {".safetensors.index.json", ".safetensors", ".gguf", kPackEnding};

// The name without what tells its format; empty where that is none of weights.
std::string_view stem_of(std::string_view name) {
  for (std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return {};
}

Part part_of(std::string_view name) {
  if (stem_of(name).empty() || name.find("-of-") != std::string_view::npos) return Part::none;
  if (name.find("vae") != std::string_view::npos) return Part::vae;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower.starts_with("anima")) return Part::model;
  return lower.starts_with("qwen") ? Part::text_encoder : Part::none;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

void ImageBundle::fill_from(const ImageBundle& others) {
  for (std::string ImageBundle::*part : {&ImageBundle::model, &ImageBundle::text_encoder, &ImageBundle::vae,
                                         &ImageBundle::tokenizer_qwen, &ImageBundle::tokenizer_t5}) {
    if ((this->*part).empty()) this->*part = others.*part;
  }
}

Result<ImageBundle> find_bundle(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return bad_input(fmt::format("{}: is no folder; give the one that holds the parts of the model", folder));
  }
  ImageBundle bundle;
  std::string* parts[] = {nullptr, &bundle.model, &bundle.text_encoder, &bundle.vae};
  for (const char* below : {"", "diffusion_models", "text_encoders", "vae"}) {
    const fs::path place = fs::path(folder) / below;
    for (const std::string& name : files_in(place)) {
      const std::string path = (place / name).string();
      if (name == "tokenizer.json" && bundle.tokenizer_qwen.empty()) bundle.tokenizer_qwen = path;
      if (name == "spiece.model" && bundle.tokenizer_t5.empty()) bundle.tokenizer_t5 = path;
      std::string* part = parts[static_cast<size_t>(part_of(name))];
      if (part == nullptr) continue;
      if (!part->empty() && stem_of(*part) == stem_of(path)) {
        if (path.ends_with(kPackEnding)) *part = path;
        if (part->ends_with(kPackEnding)) continue;
      }
      if (!part->empty()) {
        return bad_input(
            fmt::format("{}: {} and {} could both be meant; name the parts with --model, --text-encoder and "
                        "--vae",
                        folder, *part, path));
      }
      *part = path;
    }
  }
  for (auto [part, what] : {std::pair(&bundle.model, "diffusion model (anima….safetensors, .gguf or .ridge)"),
                            std::pair(&bundle.text_encoder, "text encoder (qwen….safetensors or .gguf)"),
                            std::pair(&bundle.vae, "VAE (…vae….safetensors)")}) {
    if (part->empty()) return bad_input(fmt::format("{}: holds no {}", folder, what));
  }
  return bundle;
}

}  // namespace ridge
