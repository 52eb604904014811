#include "format/ridge_pack.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/units.h"
#include "format/file_stream.h"
#include "format/gguf_reader.h"
#include "format/output_file.h"
#include "format/quote.h"
#include "format/ridge_pack_format.h"
#include "format/safetensors_gguf.h"
#include "format/safetensors_reader.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostMeta = kGiB;  // the largest vocabularies have 20 MB
constexpr size_t kVerifiedAtOnce = kMiB;

int64_t modified_ns(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// The header of a file that is embedded in a pack: a stream of the whole source, of which only the beginning is here.
class EmbeddedHeader final : public ByteStream {
 public:
  EmbeddedHeader(std::span<const uint8_t> header, uint64_t source_bytes, const std::string& pack)
      : ByteStream(pack, source_bytes) {
    set_window(header, 0);
  }

 protected:
  Result<void> refill(uint64_t) override {
    return bad_input(
        fmt::format("{}: the header of its source is incomplete: the pack is damaged; pack again", name()));
  }
};

}  // namespace

// Internal: reads the parts of a pack in order, and may set where the tensors of a Gguf lie.
class RidgePackReader {
 public:
  explicit RidgePackReader(const std::string& path) : path_(path) {}

  Result<RidgePack> read();

 private:
  struct Source {
    std::string name;
    uint64_t bytes = 0;
    int64_t modified_ns = 0;
    std::span<const uint8_t> header;
    uint64_t header_hash = 0;
  };

  Result<void> read_header(FileStream& in);
  Result<void> check_header(uint64_t file_bytes) const;
  Result<Source> read_source(SpanStream& in);
  Result<void> check_fresh(const Source& source) const;
  Result<Gguf> parse_sources();
  Result<void> read_table(SpanStream& in, RidgePack& pack);
  Result<void> read_entry(SpanStream& in, GgufTensor& tensor, PackedTensor& packed);
  Result<void> check_place(const GgufTensor& tensor, const PackedTensor& packed, uint64_t expected) const;
  Result<void> read_bundles(RidgePack& pack, const Gguf& source) const;
  Result<NeuronOrder> read_order(SpanStream& in, const RidgePack& pack) const;
  Result<std::string> read_name(SpanStream& in);
  uint64_t bundle_align() const { return header_.bundle_align == 0 ? kBundleAlign : header_.bundle_align; }
  Error damaged(std::string_view what) const {
    return bad_input(fmt::format("{}: {}: the pack is damaged; pack the model again", path_, what));
  }

  std::string path_;
  PackHeader header_{};
  std::vector<uint8_t> meta_;
  std::vector<Source> sources_;
};

Result<void> RidgePackReader::check_header(uint64_t file_bytes) const {
  if (std::memcmp(header_.magic, kPackMagic, sizeof kPackMagic) != 0) {
    return bad_input(
        fmt::format("{}: not a Ridge pack (it does not begin with RIDGEPCK); give a .gguf file, or pack one", path_),
        0);
  }
  if (header_.version < kPlainPackVersion || header_.version > kRidgePackVersion) {
    return bad_input(fmt::format("{}: pack format {}, this Ridge reads up to format {}; pack the model again", path_,
                                 header_.version, kRidgePackVersion),
                     8);
  }
  if (header_.panel_layout != kPanelLayoutVersion) {
    return bad_input(fmt::format("{}: panels of layout {}, this Ridge computes on layout {}; pack the model again",
                                 path_, header_.panel_layout, kPanelLayoutVersion),
                     12);
  }
  if (header_.file_bytes != file_bytes) {
    return bad_input(fmt::format("{}: has {} bytes, expected {}: the file {}; copy it or pack the model again", path_,
                                 format_count(file_bytes), format_count(header_.file_bytes),
                                 file_bytes < header_.file_bytes ? "is cut short" : "goes on after its end"),
                     file_bytes);
  }
  const bool in_order = header_.meta_bytes >= sizeof(PackHeader) && header_.meta_bytes <= header_.data_begin &&
                        header_.data_begin <= file_bytes && header_.data_begin % kPackAlign == 0;
  if (!in_order || header_.meta_bytes > kMostMeta || header_.sources == 0) return damaged("its header is impossible");
  if (!good_pack_align(bundle_align())) return damaged("its bundles begin nowhere");
  return {};
}

Result<void> RidgePackReader::read_header(FileStream& in) {
  if (in.size() < sizeof(PackHeader)) {
    return bad_input(fmt::format("{}: not a Ridge pack: it has {} bytes, fewer than a header", path_, in.size()), 0);
  }
  RIDGE_TRY(in.read(&header_, sizeof header_));
  RIDGE_TRY(check_header(in.size()));
  meta_.resize(static_cast<size_t>(header_.meta_bytes));
  std::memcpy(meta_.data(), &header_, sizeof header_);
  RIDGE_TRY(in.read(meta_.data() + sizeof header_, meta_.size() - sizeof header_));
  Hasher hasher;
  hasher.add(std::span(meta_).first(offsetof(PackHeader, checksum)));
  hasher.add(std::span(meta_).subspan(sizeof(PackHeader)));
  if (hasher.value() != header_.checksum) return damaged("the checksum of its header and table differs");
  return {};
}

Result<std::string> RidgePackReader::read_name(SpanStream& in) {
  auto length = RIDGE_TRY(in.read_as<uint32_t>());
  if (length > in.remaining()) return damaged("a name is longer than its table");
  std::string name(length, '\0');
  RIDGE_TRY(in.read(name.data(), name.size()));
  return name;
}

Result<RidgePackReader::Source> RidgePackReader::read_source(SpanStream& in) {
  Source source;
  source.name = RIDGE_TRY(read_name(in));
  source.bytes = RIDGE_TRY(in.read_as<uint64_t>());
  source.modified_ns = RIDGE_TRY(in.read_as<int64_t>());
  auto header_bytes = RIDGE_TRY(in.read_as<uint64_t>());
  if (header_bytes > in.remaining() || header_bytes > source.bytes) return damaged("an embedded header is too long");
  source.header = std::span(meta_).subspan(static_cast<size_t>(in.position()), static_cast<size_t>(header_bytes));
  RIDGE_TRY(in.skip(header_bytes));
  source.header_hash = RIDGE_TRY(in.read_as<uint64_t>());
  // A name with a folder in it could make us look anywhere.
  if (source.name.empty() || source.name.find('/') != std::string::npos)
    return damaged("the name of its source is no file name");
  return source;
}

// A source that lies beside its pack must be what was packed; one that is elsewhere, or gone, is not asked for.
Result<void> RidgePackReader::check_fresh(const Source& source) const {
  const std::string beside = (fs::path(path_).parent_path() / source.name).string();
  struct stat info {};
  if (::stat(beside.c_str(), &info) != 0) return {};
  auto stale = [&](std::string_view what) {
    return bad_input(fmt::format("{}: stale: {} changed since ({}); pack it again", path_, beside, what));
  };
  if (static_cast<uint64_t>(info.st_size) != source.bytes) {
    return stale(fmt::format("it has {} bytes, had {}", format_count(static_cast<uint64_t>(info.st_size)),
                             format_count(source.bytes)));
  }
  if (modified_ns(info) != source.modified_ns) return stale("its time of modification differs");
  FileStream in = RIDGE_TRY(FileStream::open(beside));
  Hasher hasher;
  std::vector<uint8_t> piece(64 * kKiB);
  for (uint64_t left = source.header.size(); left > 0;) {
    size_t n = static_cast<size_t>(std::min<uint64_t>(left, piece.size()));
    RIDGE_TRY(in.read(piece.data(), n));
    hasher.add({piece.data(), n});
    left -= n;
  }
  if (hasher.value() != source.header_hash) return stale("its header differs");
  return {};
}

// All sources are GGUF, or all are safetensors (of an image model): the first bytes tell.
Result<Gguf> RidgePackReader::parse_sources() {
  constexpr std::string_view kGgufMagic = "GGUF";
  const std::span<const uint8_t> first = sources_.front().header;
  const bool gguf =
      first.size() >= kGgufMagic.size() && std::memcmp(first.data(), kGgufMagic.data(), kGgufMagic.size()) == 0;
  if (!gguf) {
    std::vector<Safetensors> parts;
    for (const Source& source : sources_) {
      EmbeddedHeader in(source.header, source.bytes, path_);
      parts.push_back(RIDGE_TRY(SafetensorsReader(in).read()));
    }
    return as_gguf(RIDGE_TRY(SafetensorsReader::join(std::move(parts))));
  }
  std::vector<Gguf> parts;
  for (const Source& source : sources_) {
    EmbeddedHeader in(source.header, source.bytes, path_);
    parts.push_back(RIDGE_TRY(GgufReader(in).read()));
  }
  return GgufReader::join(std::move(parts));
}

Result<void> RidgePackReader::read_entry(SpanStream& in, GgufTensor& tensor, PackedTensor& packed) {
  std::string name = RIDGE_TRY(read_name(in));
  auto type = RIDGE_TRY(in.read_as<uint32_t>());
  auto flags = RIDGE_TRY(in.read_as<uint32_t>());
  auto rows = RIDGE_TRY(in.read_as<uint64_t>());
  auto cols = RIDGE_TRY(in.read_as<uint64_t>());
  packed.offset = RIDGE_TRY(in.read_as<uint64_t>());
  packed.bytes = RIDGE_TRY(in.read_as<uint64_t>());
  packed.hash = RIDGE_TRY(in.read_as<uint64_t>());
  packed.panels = (flags & kPackedAsPanels) != 0;
  packed.bundled = (flags & kPackedInBundles) != 0;
  if (name != tensor.name || type != static_cast<uint32_t>(tensor.type) || rows != tensor.rows() ||
      cols != tensor.cols() || (flags & ~(kPackedAsPanels | kPackedInBundles)) != 0) {
    return damaged(
        fmt::format("its table says another thing of tensor {} than its source", ridge::in_quotes(tensor.name)));
  }
  if (packed.panels && !find_type(type)) return damaged("a type has no panels");
  if (packed.bundled && (!packed.panels || header_.bundle_neurons == 0)) return damaged("bundles without neurons");
  // Bundles are measured when all entries are known.
  const uint64_t plain = packed.panels ? panels_bytes(tensor.type, rows, cols) : tensor.bytes;
  RIDGE_TRY(check_place(tensor, packed, packed.bundled ? packed.bytes : plain));
  return {};
}

Result<void> RidgePackReader::check_place(const GgufTensor& tensor, const PackedTensor& packed,
                                          uint64_t expected) const {
  const bool inside = packed.offset % kPackAlign == 0 && packed.offset >= header_.data_begin &&
                      packed.offset <= header_.file_bytes && packed.bytes <= header_.file_bytes - packed.offset;
  if (packed.bytes == expected && inside) return {};
  return damaged(fmt::format("tensor {} lies nowhere", ridge::in_quotes(tensor.name)));
}

// Every bundled matrix belongs to a layer whose two lie in one region, of which the down matrix's entry has the bytes.
Result<void> RidgePackReader::read_bundles(RidgePack& pack, const Gguf& source) const {
  std::map<std::string_view, const PackedTensor*> bundled;
  for (size_t i = 0; i < pack.tensors.size(); ++i) {
    if (pack.tensors[i].bundled) bundled[source.tensors()[i].name] = &pack.tensors[i];
  }
  if (bundled.empty()) return {};
  for (uint32_t layer = 0; bundled.size() > pack.bundles.tensors.size(); ++layer) {
    const BundledMatrices m = matrices_of_layer(source, layer);
    if (m.down == nullptr) return damaged("a matrix lies in a bundle that no layer has");
    const auto down = bundled.find(m.down->name);
    if (down == bundled.end()) continue;
    const auto shape = bundle_shape(m, header_.bundle_neurons, bundle_align());
    if (!shape) return damaged("its bundles do not fit its matrices");
    RIDGE_TRY(check_place(*m.down, *down->second, shape->groups * shape->stride));
    pack.bundles.tensors.push_back(m.down->name);
    if (m.up == nullptr) continue;
    const auto up = bundled.find(m.up->name);
    if (up == bundled.end() || up->second->offset != down->second->offset || up->second->bytes != 0)
      return damaged("a bundle lacks half of it");
    pack.bundles.tensors.push_back(m.up->name);
  }
  std::sort(pack.bundles.tensors.begin(), pack.bundles.tensors.end());
  pack.bundles.neurons = header_.bundle_neurons;
  pack.bundles.align = bundle_align();
  pack.bundles.touched_per_mille = std::min<uint32_t>(header_.touched_per_mille, 1000);
  return {};
}

Result<NeuronOrder> RidgePackReader::read_order(SpanStream& in, const RidgePack& pack) const {
  NeuronOrder order;
  order.layer = RIDGE_TRY(in.read_as<uint32_t>());
  order.unit = RIDGE_TRY(in.read_as<uint32_t>());
  const auto units = RIDGE_TRY(in.read_as<uint32_t>());
  const auto bundles = RIDGE_TRY(in.read_as<uint32_t>());
  if (uint64_t{units} + bundles > in.remaining() / sizeof(uint32_t))
    return damaged("an order is longer than the table");
  order.units.resize(units);
  order.touched.resize(bundles);
  RIDGE_TRY(in.read(order.units.data(), units * sizeof(uint32_t)));
  RIDGE_TRY(in.read(order.touched.data(), bundles * sizeof(uint32_t)));
  const BundledMatrices m = matrices_of_layer(pack.gguf, order.layer);
  const bool follows = pack.bundles.orders.empty() || pack.bundles.orders.back().layer < order.layer;
  if (m.down == nullptr || !pack.bundles.holds(m.down->name) || !follows)
    return damaged("an order of neurons belongs to no layer");
  const bool fits = order.unit > 0 && order.unit % order_unit(m.down->type) == 0 && is_order(order, m.down->cols()) &&
                    uint64_t{bundles} * pack.bundles.neurons == m.down->cols();
  if (!fits || std::any_of(order.touched.begin(), order.touched.end(), [](uint32_t t) { return t > 1'000'000; }))
    return damaged("an order of neurons is none");
  return order;
}

Result<void> RidgePackReader::read_table(SpanStream& in, RidgePack& pack) {
  if (header_.tensors != pack.gguf.tensors_.size()) return damaged("its table and its source differ in length");
  pack.tensors.resize(pack.gguf.tensors_.size());
  for (size_t i = 0; i < pack.tensors.size(); ++i) RIDGE_TRY(read_entry(in, pack.gguf.tensors_[i], pack.tensors[i]));
  RIDGE_TRY(read_bundles(pack, pack.gguf));
  for (uint32_t i = 0; i < header_.orders; ++i) pack.bundles.orders.push_back(RIDGE_TRY(read_order(in, pack)));
  if (in.remaining() != 0) return damaged("bytes follow its table");
  for (size_t i = 0; i < pack.tensors.size(); ++i) {
    GgufTensor& tensor = pack.gguf.tensors_[i];
    tensor.file = 0;
    tensor.offset = pack.tensors[i].offset;
    tensor.bytes = pack.tensors[i].bytes;
  }
  return {};
}

Result<RidgePack> RidgePackReader::read() {
  {
    FileStream in = RIDGE_TRY(FileStream::open(path_));
    RIDGE_TRY(read_header(in));
  }
  SpanStream in(meta_, path_);
  RIDGE_TRY(in.skip(sizeof(PackHeader)));
  for (uint32_t s = 0; s < header_.sources; ++s) sources_.push_back(RIDGE_TRY(read_source(in)));
  for (const Source& source : sources_) RIDGE_TRY(check_fresh(source));

  RidgePack pack;
  pack.gguf = RIDGE_TRY(parse_sources());
  RIDGE_TRY(read_table(in, pack));
  pack.gguf.files_ = {{path_, header_.file_bytes}};
  pack.source = sources_.front().name;
  return pack;
}

Result<bool> is_ridge_pack(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path, {.chunk_bytes = 4 * kKiB}));
  char magic[sizeof kPackMagic];
  if (in.size() < sizeof magic) return false;
  RIDGE_TRY(in.read(magic, sizeof magic));
  return std::memcmp(magic, kPackMagic, sizeof magic) == 0;
}

Result<RidgePack> open_ridge_pack(const std::string& path) { return RidgePackReader(path).read(); }

Result<void> verify_ridge_pack(const std::string& path) {
  RidgePack pack = RIDGE_TRY(open_ridge_pack(path));
  std::vector<size_t> order(pack.tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(pack.tensors[a].offset, pack.tensors[a].bytes) <
           std::pair(pack.tensors[b].offset, pack.tensors[b].bytes);
  });

  FileStream in = RIDGE_TRY(FileStream::open(path, {.chunk_bytes = kVerifiedAtOnce}));
  std::vector<uint8_t> piece(kVerifiedAtOnce);
  Progress bar("verifying " + fs::path(path).filename().string(), in.size(), ProgressUnit::bytes);
  for (size_t i : order) {
    const PackedTensor& t = pack.tensors[i];
    if (t.offset < in.position()) {
      return bad_input(fmt::format("{}: tensors overlap at {}: the pack is damaged; pack the model again", path,
                                   format_count(t.offset)),
                       t.offset);
    }
    RIDGE_TRY(in.skip(t.offset - in.position()));
    Hasher hasher;
    for (uint64_t left = t.bytes; left > 0;) {
      size_t n = static_cast<size_t>(std::min<uint64_t>(left, piece.size()));
      RIDGE_TRY(in.read(piece.data(), n));
      hasher.add({piece.data(), n});
      left -= n;
      bar.advance(n);
    }
    if (hasher.value() != t.hash) {
      return bad_input(
          fmt::format("{}: tensor {} at {} differs from its checksum: the pack is damaged; pack the model again", path,
                      ridge::in_quotes(pack.gguf.tensors()[i].name), format_count(t.offset)),
          t.offset);
    }
  }
  return {};
}

namespace {

// What makes a file this very file; a copy or a write changes it.
Result<std::string> identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return bad_input(fmt::format("{}: cannot be examined: {}", path, std::generic_category().message(errno)));
  }
  return fmt::format("{} {} {} {} {}.{:09}\n", info.st_dev, info.st_ino, info.st_size, modified_ns(info),
                     info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

bool holds_text(const fs::path& path, const std::string& text) {
  auto in = FileStream::open(path.string(), {.chunk_bytes = 4 * kKiB});
  if (!in.ok() || in.value().size() != text.size()) return false;
  std::string found(text.size(), '\0');
  return in.value().read(found.data(), found.size()).ok() && found == text;
}

// Every pack that was ever verified leaves a record, and so does each copy of one: the newest are kept.
void forget_old_records(const fs::path& folder) {
  constexpr size_t kKept = 64;
  std::vector<std::pair<fs::file_time_type, fs::path>> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind("verified-", 0) != 0) continue;
    const auto written = entry.last_write_time(error);
    if (!error) records.emplace_back(written, entry.path());
  }
  if (records.size() <= kKept) return;
  std::sort(records.begin(), records.end(), std::greater<>());
  // Another process may do the same: what is gone is gone.
  for (size_t i = kKept; i < records.size(); ++i) fs::remove(records[i].second, error);
}

Result<void> remember(const fs::path& record, const std::string& identity) {
  std::error_code error;
  fs::create_directories(record.parent_path(), error);
  if (error) return io_error(fmt::format("{}: cannot be made: {}", record.parent_path().string(), error.message()));
  OutputFile out = RIDGE_TRY(OutputFile::create(record.string()));
  RIDGE_TRY(out.write(std::string_view(identity)));
  return out.commit();
}

}  // namespace

Result<void> ensure_verified(const std::string& path, const std::string& where) {
  const std::string folder = where.empty() ? cache_folder() : where;
  const std::string identity = RIDGE_TRY(identity_of(path));
  const fs::path record =
      fs::path(folder) / fmt::format("verified-{:016x}", XXH3_64bits(identity.data(), identity.size()));
  if (!folder.empty() && holds_text(record, identity)) return {};
  RIDGE_TRY(verify_ridge_pack(path));
  // A pack that was written to while we read it is verified again.
  if (RIDGE_TRY(identity_of(path)) != identity) {
    return bad_input(
        fmt::format("{}: was changed while it was verified; let the other program finish and try again", path));
  }
  if (folder.empty()) return {};
  if (auto kept = remember(record, identity); !kept.ok()) {
    detail(fmt::format("{}: verified, which cannot be remembered: {}", path, kept.error().message));
  }
  forget_old_records(folder);
  return {};
}

}  // namespace ridge
