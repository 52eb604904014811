#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "base/progress.h"
#include "base/units.h"
#include "format/file_stream.h"
#include "format/neuron_permute.h"
#include "format/output_file.h"
#include "format/ridge_pack.h"
#include "format/ridge_pack_format.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

// Rows and panels of one piece together; with the stream's buffer well below the 16 MiB that a pack may take.
constexpr uint64_t kPieceBytes = 8 * kMiB;
constexpr size_t kCopiedAtOnce = kMiB;
constexpr std::string_view kUpMatrix = ".ffn_up.weight", kDownMatrix = ".ffn_down.weight";

template <class T>
void append(std::vector<uint8_t>& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void append_name(std::vector<uint8_t>& out, std::string_view name) {
  append(out, static_cast<uint32_t>(name.size()));
  out.insert(out.end(), name.begin(), name.end());
}

struct FileState {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

Result<FileState> state_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return bad_input(fmt::format("{}: cannot be examined: {}", path, std::generic_category().message(errno)));
  }
  return FileState{static_cast<uint64_t>(info.st_size),
                   static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

class PackWriter {
 public:
  PackWriter(const Gguf& source, const std::string& path, const RidgePackOptions& options)
      : source_(source), path_(path), options_(options) {}

  Result<void> write();

 private:
  Result<void> examine_sources();
  Result<void> place_tensors();
  Result<void> find_bundles();
  Result<void> take_order(uint32_t layer, const BundledMatrices& m, const BundleShape& shape);
  size_t index_of(const GgufTensor* tensor) const;
  PackHeader header() const;
  std::vector<uint8_t> table() const;
  Result<void> write_meta(OutputFile& out);
  Result<void> copy_header(OutputFile& out, uint32_t file, uint64_t& at, Hasher& all);
  Result<void> write_tensors(OutputFile& out, uint32_t file);
  Result<void> write_rows(OutputFile& out, FileStream& in, size_t tensor);
  Result<void> write_panels(OutputFile& out, FileStream& in, size_t tensor);
  Result<void> write_bundled(OutputFile& out, size_t tensor, uint64_t row, size_t rows);
  Result<void> hash_bundles(const OutputFile& out);
  Result<void> read_panel_rows(FileStream& in, size_t tensor, uint64_t row, size_t rows);
  void pack(const GgufTensor& t, size_t rows);
  Result<void> check_unchanged() const;

  const Gguf& source_;
  std::string path_;
  const RidgePackOptions& options_;
  std::vector<FileState> states_;       // by source file
  std::vector<uint64_t> header_bytes_;  // by source file: everything before the first tensor
  std::vector<PackedTensor> tensors_;
  std::vector<std::optional<BundleShape>> bundles_;  // by tensor
  uint64_t meta_bytes_ = 0, data_begin_ = 0, file_bytes_ = 0;
  std::vector<uint8_t> rows_, panels_storage_;
  uint8_t* panels_ = nullptr;  // in panels_storage_, 64-byte aligned
  bool bundled_ = false;
  std::vector<NeuronOrder> orders_;  // of layers that lie in bundles
  std::optional<Progress> bar_;
};

Result<void> PackWriter::examine_sources() {
  for (const GgufFile& file : source_.files()) {
    states_.push_back(RIDGE_TRY(state_of(file.path)));
    header_bytes_.push_back(file.bytes);
    if (states_.back().bytes == file.bytes) continue;
    return bad_input(
        fmt::format("{}: changed since it was opened; let the other program finish and try again", file.path));
  }
  for (const GgufTensor& t : source_.tensors()) header_bytes_[t.file] = std::min(header_bytes_[t.file], t.offset);
  return {};
}

std::string name_of(const GgufFile& file) { return fs::path(file.path).filename().string(); }

Result<void> PackWriter::place_tensors() {
  tensors_.resize(source_.tensors().size());
  RIDGE_TRY(find_bundles());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const GgufTensor& t = source_.tensors()[i];
    tensors_[i].panels = options_.as_panels ? options_.as_panels(source_, t) : packs_as_panels(source_, t);
    tensors_[i].bytes = tensors_[i].panels ? panels_bytes(t.type, t.rows(), t.cols()) : t.bytes;
    if (!tensors_[i].bundled) continue;
    const bool down = t.name.ends_with(kDownMatrix);
    tensors_[i].bytes = down ? bundles_[i]->groups * bundles_[i]->stride : 0;
  }
  // Places and checksums are not known yet, but change no length.
  meta_bytes_ = sizeof(PackHeader) + table().size();
  for (size_t f = 0; f < states_.size(); ++f) {
    meta_bytes_ += sizeof(uint32_t) + name_of(source_.files()[f]).size() + 4 * sizeof(uint64_t) + header_bytes_[f];
  }
  data_begin_ = round_up(meta_bytes_, options_.align);
  uint64_t end = data_begin_;
  for (PackedTensor& t : tensors_) {
    t.offset = round_up(end, options_.align);
    end = round_up(t.offset + t.bytes, kPackAlign);
  }
  file_bytes_ = end;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].bundled || tensors_[i].bytes > 0) continue;
    std::string down = source_.tensors()[i].name;
    down.replace(down.size() - kUpMatrix.size(), kUpMatrix.size(), kDownMatrix);
    tensors_[i].offset = tensors_[index_of(source_.find(down))].offset;
  }
  return {};
}

Result<void> PackWriter::find_bundles() {
  bundles_.resize(tensors_.size());
  if (options_.bundle_neurons == 0) return {};
  for (uint32_t layer = 0;; ++layer) {
    const BundledMatrices m = matrices_of_layer(source_, layer);
    if (m.down == nullptr) return {};
    const auto shape = bundle_shape(m, options_.bundle_neurons, options_.align);
    if (!shape) continue;
    RIDGE_TRY(take_order(layer, m, *shape));
    for (const GgufTensor* t : {m.up, m.down}) {
      if (t == nullptr) continue;
      bundles_[index_of(t)] = shape;
      tensors_[index_of(t)].bundled = true;
      bundled_ = true;
    }
  }
}

// The order of a layer's neurons, if it has one: every vector and matrix of the part has to allow it.
Result<void> PackWriter::take_order(uint32_t layer, const BundledMatrices& m, const BundleShape& shape) {
  for (const NeuronOrder& order : options_.orders) {
    if (order.layer != layer) continue;
    RIDGE_CHECK(is_order(order, m.down->cols()) && order.unit % order_unit(m.down->type) == 0 &&
                    order.touched.size() == shape.groups,
                "orders are made for the file that they are given with");
    orders_.push_back(order);
    for (const GgufTensor& t : source_.tensors()) {
      const bool rows = permuted_by({&order, 1}, t.name).rows != nullptr;
      if (!rows || (moved_bytes(t) > 0 && t.bytes == m.down->cols() * moved_bytes(t))) continue;
      return bad_input(
          fmt::format("{}: tensor '{}' has no number or row for each of {} neurons: they cannot change "
                      "places; pack without --map",
                      source_.files()[t.file].path, t.name, m.down->cols()));
    }
  }
  return {};
}

size_t PackWriter::index_of(const GgufTensor* tensor) const {
  return static_cast<size_t>(tensor - source_.tensors().data());
}

PackHeader PackWriter::header() const {
  PackHeader header{};
  std::memcpy(header.magic, kPackMagic, sizeof kPackMagic);
  const bool aligned = options_.align != kBundleAlign;
  header.version = !bundled_ ? kPlainPackVersion : aligned || !orders_.empty() ? kRidgePackVersion : kBundlePackVersion;
  if (bundled_) {
    header.bundle_neurons = options_.bundle_neurons;
    header.touched_per_mille = options_.touched_per_mille;
    header.bundle_align = aligned ? static_cast<uint32_t>(options_.align) : 0;
    header.orders = static_cast<uint32_t>(orders_.size());
  }
  header.panel_layout = kPanelLayoutVersion;
  header.file_bytes = file_bytes_;
  header.meta_bytes = meta_bytes_;
  header.data_begin = data_begin_;
  header.sources = static_cast<uint32_t>(states_.size());
  header.tensors = static_cast<uint32_t>(tensors_.size());
  return header;
}

std::vector<uint8_t> PackWriter::table() const {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const GgufTensor& t = source_.tensors()[i];
    append_name(out, t.name);
    append(out, static_cast<uint32_t>(t.type));
    append(out, (tensors_[i].panels ? kPackedAsPanels : 0u) | (tensors_[i].bundled ? kPackedInBundles : 0u));
    append(out, t.rows());
    append(out, t.cols());
    append(out, tensors_[i].offset);
    append(out, tensors_[i].bytes);
    append(out, tensors_[i].hash);
  }
  for (const NeuronOrder& order : orders_) {
    append(out, order.layer);
    append(out, order.unit);
    append(out, static_cast<uint32_t>(order.units.size()));
    append(out, static_cast<uint32_t>(order.touched.size()));
    for (const uint32_t unit : order.units) append(out, unit);
    for (const uint32_t touched : order.touched) append(out, touched);
  }
  return out;
}

// The header of one source, verbatim, in small pieces: a vocabulary may be larger than what packing may use.
Result<void> PackWriter::copy_header(OutputFile& out, uint32_t file, uint64_t& at, Hasher& all) {
  FileStream in = RIDGE_TRY(FileStream::open(source_.files()[file].path));
  Hasher own;
  std::vector<uint8_t> piece(64 * kKiB);
  for (uint64_t left = header_bytes_[file]; left > 0;) {
    std::span<uint8_t> bytes(piece.data(), static_cast<size_t>(std::min<uint64_t>(left, piece.size())));
    RIDGE_TRY(in.read(bytes.data(), bytes.size()));
    own.add(bytes);
    all.add(bytes);
    RIDGE_TRY(out.write_at(at, bytes));
    at += bytes.size();
    left -= bytes.size();
  }
  std::vector<uint8_t> hash;
  append(hash, own.value());
  all.add(hash);
  RIDGE_TRY(out.write_at(at, hash));
  at += hash.size();
  return {};
}

// Everything before the tensors; comes last, since it holds their checksums.
Result<void> PackWriter::write_meta(OutputFile& out) {
  PackHeader head = header();
  std::vector<uint8_t> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  Hasher all;
  all.add(std::span(bytes).first(offsetof(PackHeader, checksum)));

  uint64_t at = sizeof head;
  for (uint32_t f = 0; f < states_.size(); ++f) {
    std::vector<uint8_t> record;
    append_name(record, name_of(source_.files()[f]));
    append(record, states_[f].bytes);
    append(record, states_[f].modified_ns);
    append(record, header_bytes_[f]);
    all.add(record);
    RIDGE_TRY(out.write_at(at, record));
    at += record.size();
    RIDGE_TRY(copy_header(out, f, at, all));
  }
  std::vector<uint8_t> entries = table();
  all.add(entries);
  RIDGE_TRY(out.write_at(at, entries));
  RIDGE_CHECK(at + entries.size() == meta_bytes_, "the length of the table was known beforehand");

  head.checksum = all.value();
  std::memcpy(bytes.data(), &head, sizeof head);
  return out.write_at(0, bytes);
}

Result<void> PackWriter::write_rows(OutputFile& out, FileStream& in, size_t tensor) {
  PackedTensor& packed = tensors_[tensor];
  const GgufTensor& t = source_.tensors()[tensor];
  const NeuronOrder* order = permuted_by(orders_, t.name).rows;
  const size_t step = order != nullptr ? moved_bytes(t) : 1;
  Hasher hasher;
  rows_.resize(std::max<size_t>({rows_.size(), kCopiedAtOnce, step}));
  for (uint64_t done = 0; done < packed.bytes;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(packed.bytes - done, rows_.size() / step * step));
    RIDGE_TRY(order != nullptr
                  ? read_permuted_rows(source_.files()[t.file].path, t, *order, done / step, n / step, rows_.data())
                  : in.read(rows_.data(), n));
    hasher.add({rows_.data(), n});
    RIDGE_TRY(out.write_at(packed.offset + done, {rows_.data(), n}));
    done += n;
    bar_->advance(n);
  }
  packed.hash = hasher.value();
  return {};
}

// Rearranges the first `rows` rows of rows_ into panels_.
void PackWriter::pack(const GgufTensor& t, size_t rows) {
  const size_t stride = row_bytes(t.type, t.cols()), panel = panel_bytes(t.type, t.cols());
  const auto type = static_cast<size_t>(t.type);
  auto pack_one = options_.pack != nullptr && options_.pack[type] != nullptr ? options_.pack[type] : &pack_panel;
  options_.pool->split(rows, kPanelRows, [&](size_t begin, size_t end, int) {
    for (size_t row = begin; row < end; row += kPanelRows) {
      pack_one({.type = t.type,
                .rows = rows_.data() + row * stride,
                .row_stride = stride,
                .row_count = std::min(kPanelRows, end - row),
                .cols = t.cols(),
                .panel = panels_ + row / kPanelRows * panel});
    }
  });
}

// Rows of the pack's order into rows_.
Result<void> PackWriter::read_panel_rows(FileStream& in, size_t tensor, uint64_t row, size_t rows) {
  const GgufTensor& t = source_.tensors()[tensor];
  const Permuted how = permuted_by(orders_, t.name);
  if (how.rows != nullptr)
    return read_permuted_rows(source_.files()[t.file].path, t, *how.rows, row, rows, rows_.data());
  RIDGE_TRY(in.read(rows_.data(), rows * row_bytes(t.type, t.cols())));
  if (how.columns != nullptr) permute_columns(*how.columns, t, rows_.data(), rows);
  return {};
}

Result<void> PackWriter::write_panels(OutputFile& out, FileStream& in, size_t tensor) {
  constexpr size_t kSlack = 64;  // packers may read past the last row
  const GgufTensor& t = source_.tensors()[tensor];
  PackedTensor& packed = tensors_[tensor];
  const size_t stride = row_bytes(t.type, t.cols()), panel = panel_bytes(t.type, t.cols());
  const size_t panels = std::max<size_t>(1, kPieceBytes / (kPanelRows * stride + panel));
  const size_t most = std::min<size_t>(panels * kPanelRows, round_up(t.rows(), kPanelRows));
  rows_.resize(std::max(rows_.size(), most * stride + kSlack));
  panels_storage_.resize(std::max(panels_storage_.size(), most / kPanelRows * panel + kSlack));
  auto address = std::bit_cast<uintptr_t>(panels_storage_.data());
  panels_ = panels_storage_.data() + (round_up(address, 64) - address);

  Hasher hasher;
  uint64_t offset = packed.offset;
  for (uint64_t row = 0; row < t.rows(); row += most) {
    size_t rows = static_cast<size_t>(std::min<uint64_t>(most, t.rows() - row));
    RIDGE_TRY(read_panel_rows(in, tensor, row, rows));
    pack(t, rows);
    if (packed.bundled) {
      RIDGE_TRY(write_bundled(out, tensor, row, rows));
      bar_->advance(rows * stride);
      continue;
    }
    std::span<const uint8_t> bytes(panels_, panels_bytes(t.type, rows, t.cols()));
    hasher.add(bytes);
    RIDGE_TRY(out.write_at(offset, bytes));
    offset += bytes.size();
    bar_->advance(rows * stride);
  }
  packed.hash = hasher.value();
  return {};
}

// The panels of `rows` rows from `row` on, each bundle's part into its place. Of the up matrix a bundle has whole
// panels, of the down matrix a range of columns of every panel.
Result<void> PackWriter::write_bundled(OutputFile& out, size_t tensor, uint64_t row, size_t rows) {
  const GgufTensor& t = source_.tensors()[tensor];
  const BundleShape& shape = *bundles_[tensor];
  const uint64_t region = tensors_[tensor].offset;
  const size_t panel = panel_bytes(t.type, t.cols()), count = (rows + kPanelRows - 1) / kPanelRows;
  if (!t.name.ends_with(kDownMatrix)) {
    const uint64_t per_bundle = shape.neurons / kPanelRows;
    for (size_t p = 0; p < count;) {
      const uint64_t at = row / kPanelRows + p, inside = at % per_bundle;
      const size_t n = static_cast<size_t>(std::min<uint64_t>(count - p, per_bundle - inside));
      RIDGE_TRY(
          out.write_at(region + at / per_bundle * shape.stride + inside * panel, {panels_ + p * panel, n * panel}));
      p += n;
    }
    return {};
  }
  const size_t part = panel_bytes(t.type, shape.neurons);
  rows_.resize(std::max(rows_.size(), count * part));
  for (uint32_t group = 0; group < shape.groups; ++group) {
    for (size_t p = 0; p < count; ++p) std::memcpy(rows_.data() + p * part, panels_ + p * panel + group * part, part);
    const uint64_t at = region + group * shape.stride + shape.up_bytes + row / kPanelRows * part;
    RIDGE_TRY(out.write_at(at, {rows_.data(), count * part}));
  }
  return {};
}

// Two matrices were written into each region, in no order of the file.
Result<void> PackWriter::hash_bundles(const OutputFile& out) {
  std::vector<uint8_t> piece(kCopiedAtOnce);
  for (PackedTensor& t : tensors_) {
    if (!t.bundled) continue;
    Hasher hasher;
    for (uint64_t done = 0; done < t.bytes;) {
      const std::span<uint8_t> bytes(piece.data(),
                                     static_cast<size_t>(std::min<uint64_t>(t.bytes - done, piece.size())));
      RIDGE_TRY(out.read_at(t.offset + done, bytes));
      hasher.add(bytes);
      done += bytes.size();
    }
    t.hash = hasher.value();
  }
  return {};
}

// The tensors of one source file in the order in which they lie there: the stream goes forward only.
Result<void> PackWriter::write_tensors(OutputFile& out, uint32_t file) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (source_.tensors()[i].file == file) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return source_.tensors()[a].offset < source_.tensors()[b].offset; });
  FileStream in = RIDGE_TRY(FileStream::open(source_.files()[file].path, {.chunk_bytes = kCopiedAtOnce}));
  for (size_t i : order) {
    const GgufTensor& t = source_.tensors()[i];
    if (t.bytes == 0) {
      tensors_[i].hash = Hasher().value();
      continue;
    }
    RIDGE_TRY(in.skip(t.offset - in.position()));
    RIDGE_TRY(tensors_[i].panels ? write_panels(out, in, i) : write_rows(out, in, i));
  }
  return {};
}

Result<void> PackWriter::check_unchanged() const {
  for (size_t f = 0; f < states_.size(); ++f) {
    const std::string& path = source_.files()[f].path;
    if (RIDGE_TRY(state_of(path)) == states_[f]) continue;
    return bad_input(fmt::format("{}: changed while it was packed; let the other program finish and try again", path));
  }
  return {};
}

Result<void> PackWriter::write() {
  RIDGE_CHECK(options_.pool != nullptr, "packing needs a pool");
  RIDGE_CHECK(good_pack_align(options_.align), "tensors begin at multiples of 4,096 bytes");
  RIDGE_TRY(examine_sources());
  RIDGE_TRY(place_tensors());
  OutputFile out = RIDGE_TRY(OutputFile::create(path_));
  RIDGE_TRY(out.preallocate(file_bytes_));
  uint64_t total = 0;
  for (const GgufTensor& t : source_.tensors()) total += t.bytes;
  bar_.emplace("packing " + fs::path(path_).filename().string(), total, ProgressUnit::bytes);
  for (uint32_t f = 0; f < states_.size(); ++f) RIDGE_TRY(write_tensors(out, f));
  RIDGE_TRY(hash_bundles(out));
  RIDGE_TRY(write_meta(out));
  RIDGE_TRY(check_unchanged());
  return out.commit();
}

}  // namespace

bool good_pack_align(uint64_t align) { return align > 0 && align % kBundleAlign == 0 && align <= kMiB; }

bool packs_as_panels_alone(const GgufTensor& tensor) {
  if (tensor.dims < 2 || tensor.rows() < 2) return false;
  // Quantised panels are made of tiles of 32 columns; float ones take any width.
  return type_info(tensor.type).is_float || tensor.cols() % 32 == 0;
}

bool packs_as_panels(const Gguf& gguf, const GgufTensor& tensor) {
  if (!packs_as_panels_alone(tensor)) return false;
  // The matrices of a stack (experts) begin at a panel each only if their rows fill panels.
  if (tensor.dims > 2 && tensor.shape[1] % kPanelRows != 0) return false;
  if (tensor.name.find("ffn_gate_inp") != std::string::npos || tensor.name.ends_with(".bias")) return false;
  if (tensor.name == "token_embd.weight") return gguf.find("output.weight") == nullptr;
  return true;
}

Result<void> write_ridge_pack(const Gguf& source, const std::string& path, const RidgePackOptions& options) {
  return PackWriter(source, path, options).write();
}

}  // namespace ridge
