#include "model/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/units.h"
#include "format/quote.h"
#include "format/safetensors.h"
#include "format/safetensors_gguf.h"

namespace ridge {
namespace {

enum class Role : uint8_t { down, up, alpha };

struct Ending {
  std::string_view text;
  Role role;
};
constexpr Ending kEndings[] = {
    {".lora_down.weight", Role::down}, {".lora_up.weight", Role::up},          {".lora_A.weight", Role::down},
    {".lora_B.weight", Role::up},      {".lora_A.default.weight", Role::down}, {".lora_B.default.weight", Role::up},
    {".alpha", Role::alpha},
};
constexpr std::string_view kPrefixes[] = {"base_model.model.",      "lora_unet_",       "lora_transformer_",
                                          "model.diffusion_model.", "diffusion_model.", "net."};
constexpr std::string_view kTextPrefixes[] = {"lora_te", "text_encoder"};

// Tools write the dots of a name as underscores, or not: one form for both.
std::string plain(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '.', '_');
  return out;
}

// "blocks.0.mlp.layer1" of whatever stands before and behind it, in its plain form.
std::string module_of(std::string_view name) {
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return plain(name);
}

// What one file has for one matrix.
struct Found {
  const SafeTensor *down = nullptr, *up = nullptr, *alpha = nullptr;
};

class LoraReader {
 public:
  LoraReader(LoraSet& set, const std::vector<const GgufTensor*>& targets) : set_(set), targets_(targets) {
    for (size_t i = 0; i < targets.size(); ++i) {
      const std::string_view name = targets[i]->name;
      by_module_[plain(name.substr(0, name.size() - std::string_view(".weight").size()))] = i;
    }
  }

  Result<void> read(const LoraFile& lora, size_t number);
  std::vector<GgufTensor> tensors;  // to be added to the model's
  std::vector<GgufFile> files;

 private:
  Result<void> sort(const Safetensors& file);
  Result<LoraPair> pair(const Safetensors& file, const LoraFile& lora, size_t target, const Found& found) const;

  LoraSet& set_;
  const std::vector<const GgufTensor*>& targets_;
  std::map<std::string, size_t, std::less<>> by_module_;
  std::map<size_t, Found> found_;
};

// Every tensor of the file to the matrix that it is for.
Result<void> LoraReader::sort(const Safetensors& file) {
  found_.clear();
  size_t of_text = 0;
  for (const SafeTensor& t : file.tensors()) {
    const std::string_view name = t.name;
    if (std::any_of(std::begin(kTextPrefixes), std::end(kTextPrefixes),
                    [&](std::string_view p) { return name.starts_with(p); })) {
      ++of_text;
      continue;
    }
    const Ending* ending =
        std::find_if(std::begin(kEndings), std::end(kEndings), [&](const Ending& e) { return name.ends_with(e.text); });
    if (ending == std::end(kEndings)) {
      return bad_input(fmt::format("{}: tensor {} is of no LoRA that Ridge knows: expected names that end in "
                                   ".lora_down.weight, .lora_up.weight, .lora_A.weight, .lora_B.weight or .alpha",
                                   file.where(), in_quotes(t.name)),
                       t.offset);
    }
    const auto target = by_module_.find(module_of(name.substr(0, name.size() - ending->text.size())));
    if (target == by_module_.end()) {
      return bad_input(fmt::format("{}: tensor {} is for no matrix of this model: the LoRA belongs to another one",
                                   file.where(), in_quotes(t.name)),
                       t.offset);
    }
    Found& found = found_[target->second];
    const SafeTensor*& place = ending->role == Role::down ? found.down
                               : ending->role == Role::up ? found.up
                                                          : found.alpha;
    if (place != nullptr) {
      return bad_input(fmt::format("{}: tensors {} and {} are for the same matrix: keep one of them", file.where(),
                                   in_quotes(place->name), in_quotes(t.name)),
                       t.offset);
    }
    place = &t;
  }
  if (of_text > 0) {
    note(fmt::format("{}: {} for the text encoder left out: Ridge changes the diffusion model alone", file.where(),
                     counted(of_text, "tensor")));
  }
  return {};
}

Result<LoraPair> LoraReader::pair(const Safetensors& file, const LoraFile& lora, size_t target,
                                  const Found& found) const {
  const GgufTensor& weight = *targets_[target];
  if (found.down == nullptr || found.up == nullptr) {
    return bad_input(fmt::format("{}: for {} it has {} alone: a LoRA has both matrices, down (A) and up (B)",
                                 file.where(), in_quotes(weight.name),
                                 found.down != nullptr ? "the one down"
                                 : found.up != nullptr ? "the one up"
                                                       : "an alpha"));
  }
  LoraPair out{.weight = weight.name,
               .rows = static_cast<uint32_t>(weight.rows()),
               .cols = static_cast<uint32_t>(weight.cols())};
  const uint64_t rank = found.down->dims == 2 ? found.down->shape[0] : 0;
  auto has = [](const SafeTensor& t, uint64_t rows, uint64_t cols) {
    return t.dims == 2 && t.shape[0] == rows && t.shape[1] == cols;
  };
  if (rank == 0 || rank > kMostRank || !has(*found.down, rank, out.cols) || !has(*found.up, out.rows, rank)) {
    return bad_input(
        fmt::format(
            "{}: {} and {} have the shapes [{}] and [{}], expected [rank, {}] and [{}, rank], a rank of 1 to {}",
            file.where(), in_quotes(found.down->name), in_quotes(found.up->name),
            fmt::join(found.down->dimensions(), ", "), fmt::join(found.up->dimensions(), ", "), out.cols, out.rows,
            kMostRank),
        found.down->offset);
  }
  out.rank = static_cast<uint32_t>(rank);
  std::optional<double> alpha;
  if (found.alpha != nullptr) {
    const std::vector<float> values = RIDGE_TRY(read_floats(file, *found.alpha, 1));
    if (values.size() != 1 || !std::isfinite(values[0])) {
      return bad_input(fmt::format("{}: {} is no number", file.where(), in_quotes(found.alpha->name)),
                       found.alpha->offset);
    }
    alpha = static_cast<double>(values[0]);
  }
  out.scale = RIDGE_TRY(
      lora_scale(file.where(), found.alpha != nullptr ? found.alpha->name : weight.name, lora.strength, alpha, rank));
  return out;
}

Result<void> LoraReader::read(const LoraFile& lora, size_t number) {
  const Safetensors file = RIDGE_TRY(Safetensors::open(lora.path));
  RIDGE_TRY(sort(file));
  if (found_.empty()) {
    return bad_input(fmt::format("{}: holds nothing for the diffusion model: give a LoRA of this model", lora.path));
  }
  // Types are checked there as well.
  const Gguf all = RIDGE_TRY(as_gguf(file));
  const auto first_file = static_cast<uint32_t>(set_.file.files().size() + files.size());
  files.insert(files.end(), all.files().begin(), all.files().end());
  auto add = [&](const SafeTensor& from, std::string name) {
    GgufTensor t = *all.find(from.name);
    t.file += first_file;
    t.name = std::move(name);
    tensors.push_back(std::move(t));
  };
  for (const auto& [target, found] : found_) {
    LoraPair p = RIDGE_TRY(pair(file, lora, target, found));
    p.down = fmt::format("lora.{}.{}.down", number, p.weight);
    p.up = fmt::format("lora.{}.{}.up", number, p.weight);
    add(*found.down, p.down);
    add(*found.up, p.up);
    set_.pairs.push_back(std::move(p));
  }
  return {};
}

}  // namespace

Result<float> lora_scale(const std::string& where, const std::string& name, double strength,
                         std::optional<double> alpha, uint64_t rank) {
  const double whole = static_cast<double>(rank);
  const auto scale = static_cast<float>(strength * alpha.value_or(whole) / whole);
  if (std::isfinite(scale)) return scale;
  return bad_input(fmt::format("{}: {} is too large: {:g} times the strength {:g} is no 32-bit float", where,
                               in_quotes(name), alpha.value_or(whole), strength));
}

Result<LoraSet> add_loras(Gguf model, std::span<const LoraFile> loras) {
  LoraSet set{.file = std::move(model), .pairs = {}};
  if (loras.empty()) return set;
  std::vector<const GgufTensor*> targets;
  for (const GgufTensor& t : set.file.tensors()) {
    // A table of rows by token is looked up, not multiplied with.
    if (t.rows() > 1 && t.name.ends_with(".weight") && !t.name.ends_with("embed.weight")) targets.push_back(&t);
  }
  LoraReader reader(set, targets);
  for (size_t i = 0; i < loras.size(); ++i) RIDGE_TRY(reader.read(loras[i], i));
  std::vector<GgufTensor> tensors(set.file.tensors().begin(), set.file.tensors().end());
  tensors.insert(tensors.end(), reader.tensors.begin(), reader.tensors.end());
  std::vector<GgufFile> files(set.file.files().begin(), set.file.files().end());
  files.insert(files.end(), reader.files.begin(), reader.files.end());
  Metadata metadata = std::move(set.file.metadata());
  set.file = RIDGE_TRY(Gguf::assemble(std::move(metadata), std::move(tensors), std::move(files)));
  return set;
}

}  // namespace ridge
