#include "model/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "format/file_stream.h"
#include "format/quote.h"
#include "tensor/panel.h"
#include "tensor/types.h"

namespace ridge {
namespace {

constexpr std::string_view kDown = ".lora_a", kUp = ".lora_b";
constexpr uint64_t kPanelAlignment = 64;
constexpr uint64_t kOverread = 64;  // kernels may read so far past the last panel

std::string shape_of(const GgufTensor& t) {
  return fmt::format("[{}]", fmt::join(t.shape.begin(), t.shape.begin() + t.dims, ", "));
}

bool has_shape(const GgufTensor& t, uint64_t cols, uint64_t rows) {
  return t.dims <= 2 && t.cols() == cols && t.rows() == rows;
}

Result<void> check_keys(const Metadata& keys, const std::string& architecture) {
  const std::string kind = RIDGE_TRY(keys.string("general.type")).value_or("model");
  if (kind != "adapter") {
    return bad_input(
        fmt::format("{}: is no adapter (its general.type is {}): give the GGUF file that `ridge tune` or "
                    "llama.cpp's convert_lora_to_gguf.py wrote",
                    keys.where, in_quotes(kind)));
  }
  const std::string type = RIDGE_TRY(keys.string("adapter.type")).value_or("");
  if (type != "lora" || keys.find("adapter.alora.invocation_tokens") != nullptr) {
    return bad_input(fmt::format("{}: is an adapter of type {}: Ridge runs plain ones of type 'lora'", keys.where,
                                 type == "lora" ? "'alora'" : in_quotes(type)));
  }
  const std::string of = RIDGE_TRY(keys.require_string("general.architecture"));
  if (of == architecture) return {};
  return bad_input(
      fmt::format("{}: is an adapter for models of the architecture {}, and this model is {}: take the "
                  "model that it was trained on",
                  keys.where, in_quotes(of), in_quotes(architecture)));
}

// What one file has for one matrix.
struct Halves {
  const GgufTensor *down = nullptr, *up = nullptr;
};

// FNV-1a over words, for telling sets apart.
uint64_t mixed(uint64_t hash, const uint8_t* bytes, uint64_t count) {
  for (uint64_t i = 0; i + sizeof(uint64_t) <= count; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

Result<AdapterSet> AdapterSet::open(std::span<const LoraFile> files, std::span<const AdapterTarget> targets,
                                    const std::string& architecture) {
  AdapterSet set;
  for (const LoraFile& file : files) RIDGE_TRY(set.add(file, targets, architecture));
  if (!files.empty()) set.panel_bytes_ += kOverread;
  return set;
}

Result<void> AdapterSet::add(const LoraFile& file, std::span<const AdapterTarget> targets,
                             const std::string& architecture) {
  const Gguf gguf = RIDGE_TRY(Gguf::open(file.path));
  const std::string& where = gguf.metadata().where;
  RIDGE_TRY(check_keys(gguf.metadata(), architecture));
  const double alpha = RIDGE_TRY(gguf.metadata().number("adapter.lora.alpha")).value_or(0);
  std::map<std::string_view, const AdapterTarget*> by_name;
  for (const AdapterTarget& target : targets) by_name[target.name] = &target;
  std::map<const AdapterTarget*, Halves> found;
  for (const GgufTensor& t : gguf.tensors()) {
    const std::string_view name = t.name;
    const bool down = name.ends_with(kDown);
    if (!down && !name.ends_with(kUp)) {
      return bad_input(
          fmt::format("{}: tensor {} is no part of an adapter that Ridge knows: expected names that end in "
                      ".lora_a or .lora_b",
                      where, in_quotes(name)),
          t.offset);
    }
    const auto target = by_name.find(name.substr(0, name.size() - kDown.size()));
    if (target == by_name.end()) {
      return bad_input(fmt::format("{}: tensor {} is for a matrix that the model does not have: take the model that it "
                                   "was trained on",
                                   where, in_quotes(name)),
                       t.offset);
    }
    if (!target->second->product) {
      return bad_input(fmt::format("{}: tensor {} is for a matrix that is no plain product in this model (experts, "
                                   "latent attention, bundled neurons, or a table of tokens): Ridge cannot adapt it",
                                   where, in_quotes(name)),
                       t.offset);
    }
    (down ? found[target->second].down : found[target->second].up) = &t;
  }
  if (found.empty()) return bad_input(fmt::format("{}: the adapter holds no tensors: write it anew", where));
  for (const auto& [target, halves] : found) {
    if (halves.down == nullptr || halves.up == nullptr) {
      return bad_input(fmt::format("{}: for {} it has {} alone: an adapter has both, .lora_a and .lora_b", where,
                                   in_quotes(target->name), halves.down != nullptr ? kDown : kUp));
    }
    Adapter a{.weight = target->id, .rows = target->rows, .cols = target->cols};
    const uint64_t rank = halves.down->rows();
    if (rank == 0 || rank > kMostRank || !has_shape(*halves.down, a.cols, rank) ||
        !has_shape(*halves.up, rank, a.rows)) {
      return bad_input(
          fmt::format("{}: {} and {} have the shapes {} and {}, expected [{}, rank] and [rank, {}], a rank "
                      "of 1 to {}",
                      where, in_quotes(halves.down->name), in_quotes(halves.up->name), shape_of(*halves.down),
                      shape_of(*halves.up), a.cols, a.rows, kMostRank),
          halves.down->offset);
    }
    a.rank = static_cast<uint32_t>(rank);
    // llama.cpp takes an alpha of 0 for none.
    const std::optional<double> given = alpha == 0 ? std::nullopt : std::optional(alpha);
    a.scale = RIDGE_TRY(lora_scale(where, "adapter.lora.alpha", file.strength, given, rank));
    a.down = place(gguf, *halves.down);
    a.up = place(gguf, *halves.up);
    if (by_weight_.size() <= a.weight) by_weight_.resize(a.weight + 1);
    by_weight_[a.weight].push_back(a);
  }
  return {};
}

uint64_t AdapterSet::place(const Gguf& gguf, const GgufTensor& tensor) {
  const uint64_t begin = panel_bytes_;
  sources_.push_back({tensor, gguf.files()[tensor.file].path, begin});
  const uint64_t bytes = panels_bytes(Type::F32, tensor.rows(), tensor.cols());
  panel_bytes_ += (bytes + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
  return begin;
}

Result<void> AdapterSet::load() {
  if (empty()) return {};
  slab_ = RIDGE_TRY(Slab::allocate(panel_bytes_, {.what = "the adapters"}));
  // One pass over each file, front to back.
  std::stable_sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) {
    return std::tie(a.path, a.tensor.offset) < std::tie(b.path, b.tensor.offset);
  });
  for (const Source& source : sources_) RIDGE_TRY(read(source));
  fingerprint_ = mixed(0xcbf29ce484222325u, slab_.data(), panel_bytes_);
  for (const auto& list : by_weight_) {
    for (const Adapter& a : list) {
      const double described[] = {double(a.weight), double(a.rank), double(a.scale), double(a.down), double(a.up)};
      fingerprint_ = mixed(fingerprint_, reinterpret_cast<const uint8_t*>(described), sizeof described);
    }
  }
  return {};
}

// A panel of 16 rows at a time, so that little lies in memory twice.
Result<void> AdapterSet::read(const Source& source) {
  const GgufTensor& t = source.tensor;
  FileStream in = RIDGE_TRY(FileStream::open(source.path));
  RIDGE_TRY(in.skip(t.offset));
  const size_t bytes = row_bytes(t.type, t.cols());
  std::vector<uint8_t> raw(kPanelRows * bytes);
  std::vector<float> values(kPanelRows * t.cols());
  uint8_t* panel = slab_.data() + source.panels;
  for (uint64_t row = 0; row < t.rows(); row += kPanelRows) {
    const uint64_t count = std::min<uint64_t>(kPanelRows, t.rows() - row);
    RIDGE_TRY(in.read(raw.data(), count * bytes));
    for (uint64_t r = 0; r < count; ++r) {
      type_info(t.type).dequantize(raw.data() + r * bytes, values.data() + r * t.cols(), t.cols());
    }
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(count * t.cols());
    if (!std::all_of(values.begin(), end, [](float v) { return std::isfinite(v); })) {
      return bad_input(fmt::format("{}: tensor {} has values that are no finite numbers: the adapter is damaged",
                                   source.path, in_quotes(t.name)),
                       t.offset);
    }
    pack_panel({.type = Type::F32,
                .rows = reinterpret_cast<const uint8_t*>(values.data()),
                .row_stride = t.cols() * sizeof(float),
                .row_count = count,
                .cols = t.cols(),
                .panel = panel});
    panel += panel_bytes(Type::F32, t.cols());
  }
  return {};
}

}  // namespace ridge
