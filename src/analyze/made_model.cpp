#include "analyze/made_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "analyze/made_file.h"
#include "base/cache_folder.h"
#include "format/file_stream.h"
#include "model/model_file.h"
#include "tensor/quantize.h"

namespace ridge {
namespace {

// Bytes of rows that are turned into another type at a time, and as many floats.
constexpr size_t kPieceFloats = 128 * 1024;

std::string folder_of(const MadeOptions& options) {
  if (!options.folder.empty()) return options.folder;
  const std::string folder = cache_folder();
  std::error_code ignored;  // making the file says why the folder is of no use
  if (folder.empty()) return std::filesystem::temp_directory_path(ignored).string();
  std::filesystem::create_directories(folder, ignored);
  return folder;
}

struct LayerName {
  uint32_t layer = 0;
  std::string_view suffix;
};

// "blk.12.attn_q.weight" → 12, "attn_q.weight".
std::optional<LayerName> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  LayerName found;
  const char* begin = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), found.layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  found.suffix = name.substr(static_cast<size_t>(end - name.data()) + 1);
  return found;
}

// Vectors and routers stay, as quantisers leave them.
Type type_of(const GgufTensor& tensor, const ModelChange& change) {
  if (!change.type || tensor.dims < 2 || tensor.name.find("ffn_gate_inp") != std::string::npos) return tensor.type;
  return tensor.cols() % type_info(*change.type).block == 0 ? *change.type : Type::F16;
}

// What has an entry for each layer gets as many as there will be.
void change_layers(Metadata& metadata, const std::string& architecture, uint64_t before, uint32_t layers) {
  auto repeat = [&](auto& values) {
    if constexpr (!std::is_same_v<std::decay_t<decltype(values)>, StringPool>) {
      if (values.size() != before) return;
      auto all = values;
      all.clear();
      for (uint32_t i = 0; i < layers; ++i) all.push_back(values[i % before]);
      values = std::move(all);
    }
  };
  for (auto& [key, value] : metadata.entries()) {
    if (!key.starts_with(architecture + ".")) continue;
    if (auto* array = std::get_if<MetadataArray>(&value)) std::visit(repeat, *array);
  }
  metadata.entries()[architecture + ".block_count"] = int64_t{layers};
}

// A tensor of the new file, and the one of the old file whose bytes it has.
struct MadeTensors {
  std::vector<GgufTensor> tensors;
  std::vector<const GgufTensor*> sources;
};

MadeTensors tensors_of(const Gguf& file, uint64_t before, const ModelChange& change) {
  MadeTensors made;
  auto add = [&](const GgufTensor& source, std::string name) {
    made.tensors.push_back(source);
    made.tensors.back().name = std::move(name);
    made.tensors.back().type = type_of(source, change);
    made.sources.push_back(&source);
  };
  for (const GgufTensor& t : file.tensors()) {
    const auto name = layer_of(t.name);
    if (!name || change.layers == 0) {
      add(t, t.name);
      continue;
    }
    for (uint64_t il = name->layer; il < change.layers; il += before)
      add(t, fmt::format("blk.{}.{}", il, name->suffix));
  }
  return made;
}

Result<void> copy_tensor(const Gguf& file, const GgufTensor& from, const GgufTensor& to, MadeFile& out) {
  FileStream in = RIDGE_TRY(FileStream::open(file.files()[from.file].path));
  RIDGE_TRY(in.skip(from.offset));
  const size_t block = type_info(from.type).block, from_row = row_bytes(from.type, from.cols());
  const size_t to_row = row_bytes(to.type, to.cols()), cols = from.cols();
  const size_t rows = std::max<size_t>(1, kPieceFloats / cols);
  RIDGE_CHECK(cols % block == 0, "a file that was read has whole blocks");
  std::vector<uint8_t> bytes(rows * from_row), made(from.type == to.type ? 0 : rows * to_row);
  std::vector<float> values(from.type == to.type ? 0 : rows * cols);
  for (uint64_t row = 0; row < from.rows(); row += rows) {
    const size_t now = std::min<uint64_t>(rows, from.rows() - row);
    RIDGE_TRY(in.read(bytes.data(), now * from_row));
    if (from.type == to.type) {
      RIDGE_TRY(out.append({bytes.data(), now * from_row}));
      continue;
    }
    type_info(from.type).dequantize(bytes.data(), values.data(), now * cols);
    for (size_t r = 0; r < now; ++r) quantize_row(to.type, values.data() + r * cols, cols, made.data() + r * to_row);
    RIDGE_TRY(out.append({made.data(), now * to_row}));
  }
  return {};
}

}  // namespace

Result<MadeFile> MadeFile::create(const Metadata& metadata, std::vector<GgufTensor>& tensors,
                                  const MadeOptions& options) {
  MadeFile file(RIDGE_TRY(SpoolFile::create(folder_of(options))), options.interrupted);
  const std::string header = gguf_header(metadata, tensors);
  RIDGE_TRY(file.append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  return file;
}

Result<void> MadeFile::append(std::span<const uint8_t> bytes) {
  constexpr size_t kPiece = 512 * 1024;
  if (interrupted_ != nullptr && interrupted_->load())
    return io_error("stopped by Ctrl-C while a model was being made");
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  if (pending_.size() < kPiece) return {};
  RIDGE_TRY(spool_.append(pending_));
  pending_.clear();
  return {};
}

Result<void> MadeFile::pad_to(uint64_t offset) {
  const std::vector<uint8_t> zeros(offset - size());
  return append(zeros);
}

Result<SpoolFile> MadeFile::spool() && {
  RIDGE_TRY(spool_.append(pending_));
  return std::move(spool_);
}

Result<MadeModel> change_model(const std::string& path, const ModelChange& change, const MadeOptions& options) {
  RIDGE_CHECK(!change.type || can_quantize(*change.type), "the type can be made");
  ModelFile model = RIDGE_TRY(open_model_file(path, Verify::headers));
  if (!model.panels.empty()) {
    return bad_input(fmt::format("{}: is a pack, and a sweep changes the model itself: give the GGUF file", path));
  }
  Gguf& file = model.header;
  const std::string architecture = RIDGE_TRY(file.metadata().require_string("general.architecture"));
  const uint64_t before = RIDGE_TRY(file.metadata().require_uint(architecture + ".block_count"));
  if (before == 0) return bad_input(fmt::format("{}: key '{}.block_count' is 0", path, architecture));
  if (change.layers != 0) {
    if (file.metadata().find(architecture + ".nextn_predict_layers") != nullptr) {
      return bad_input(
          fmt::format("{}: its last layers predict further tokens and cannot be taken apart by number; "
                      "sweep another model",
                      path));
    }
    change_layers(file.metadata(), architecture, before, change.layers);
  }
  Metadata& metadata = file.metadata();
  std::vector<std::string> words;  // a vocabulary is of no use to a model without sense
  for (const auto& [key, value] : metadata.entries()) {
    if (key.starts_with("tokenizer.") || key.starts_with("split.")) words.push_back(key);
  }
  for (const std::string& key : words) metadata.erase(key);
  metadata.entries()["general.name"] = options.name;
  MadeTensors made = tensors_of(file, before, change);
  MadeFile out = RIDGE_TRY(MadeFile::create(metadata, made.tensors, options));
  for (size_t i = 0; i < made.tensors.size(); ++i) {
    RIDGE_TRY(out.pad_to(made.tensors[i].offset));
    RIDGE_TRY(copy_tensor(file, *made.sources[i], made.tensors[i], out));
  }
  return MadeModel(RIDGE_TRY(std::move(out).spool()));
}

}  // namespace ridge
