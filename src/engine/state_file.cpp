#include "engine/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/output_file.h"
#include "format/ridge_pack.h"
#include "memory/data_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ridge {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers in a state are little-endian, as in memory");

constexpr char kMagic[8] = {'R', 'I', 'D', 'G', 'E', 'S', 'T', 'A'};
constexpr uint32_t kVersion = 2;
constexpr uint64_t kPanel = 16;  // positions

// A file is: the header, a LayerRecord per layer, the token ids, per layer and head its key panels and its value rows,
// and the XXH3-64 of those keys and values.
struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t arithmetic;  // kArithmeticVersion
  uint64_t model;
  uint32_t kv_type;
  uint32_t numerics;
  uint32_t layers;
  uint32_t reserved;  // zero
  uint64_t positions;
  uint64_t file_bytes;
  uint64_t checksum;  // XXH3-64 of everything up to here, the records and the ids
};
static_assert(sizeof(StateHeader) == 64);

struct LayerRecord {
  uint32_t kv_heads, key_dim, value_dim, window;
  uint64_t from;      // the lowest position saved
  uint64_t capacity;  // of the ring it was saved from
};
static_assert(sizeof(LayerRecord) == 32);

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, size_t count) { XXH3_64bits_update(&state_, bytes, count); }
  template <class T>
  void add_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(&value, sizeof value);
  }
  void add_text(std::string_view text) {
    add_value(text.size());
    add(text.data(), text.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

struct Bytes {
  uint64_t key_panel, value_row;
};

Bytes bytes_of(const KvLayer& layer, KvType type) {
  return {kPanel * kv_bytes(type, layer.key_dim), kv_bytes(type, layer.value_dim)};
}

uint64_t panels_of(uint64_t from, uint64_t positions) { return (positions + kPanel - 1) / kPanel - from / kPanel; }

uint64_t saved_bytes(const KvLayer& layer, KvType type, uint64_t from, uint64_t positions) {
  Bytes b = bytes_of(layer, type);
  return layer.kv_heads * (panels_of(from, positions) * b.key_panel + (positions - from) * b.value_row);
}

// The keys and values of one head at a position, in the cache.
uint8_t* key_panel(const CacheView& view, uint32_t layer, uint32_t head, uint64_t panel) {
  uint64_t slot = panel * kPanel % view.cache.capacity(layer);
  return static_cast<uint8_t*>(view.cache.key(layer, head)) +
         slot * kv_bytes(view.cache.type(), view.layers[layer].key_dim);
}
uint8_t* value_row(const CacheView& view, uint32_t layer, uint32_t head, uint64_t position) {
  uint64_t slot = position % view.cache.capacity(layer);
  return static_cast<uint8_t*>(view.cache.value(layer, head)) +
         slot * kv_bytes(view.cache.type(), view.layers[layer].value_dim);
}

Result<void> add_tensor_sample(Hash& hash, const DataFile& file, uint64_t middle) {
  alignas(4096) std::array<uint8_t, 4096> block;
  for (;;) {
    int64_t got = file.read(block.data(), block.size(), middle / block.size() * block.size());
    if (got == -EINTR) continue;
    if (got < 0) {
      return io_error(fmt::format("{}: reading at {} failed: {}; check the disk and try again", file.path(),
                                  format_count(middle), std::generic_category().message(static_cast<int>(-got))),
                      middle);
    }
    hash.add(block.data(), static_cast<size_t>(got));
    return {};
  }
}

void add_metadata(Hash& hash, const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    if (std::holds_alternative<MetadataArray>(value)) continue;
    hash.add_text(key);
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::string>) hash.add_text(v);
          if constexpr (std::is_arithmetic_v<T>) hash.add_value(v);
        },
        value);
  }
}

// Collects small pieces into writes of some size.
class Writer {
 public:
  explicit Writer(OutputFile& out) : out_(out) { buffer_.reserve(kStep); }
  Result<void> write(const void* bytes, size_t count) {
    const auto* p = static_cast<const uint8_t*>(bytes);
    while (count > 0) {
      size_t n = std::min(count, kStep - buffer_.size());
      buffer_.insert(buffer_.end(), p, p + n);
      p += n;
      count -= n;
      if (buffer_.size() == kStep) RIDGE_TRY(flush());
    }
    return {};
  }
  Result<void> flush() {
    RIDGE_TRY(out_.write(std::span<const uint8_t>(buffer_)));
    buffer_.clear();
    return {};
  }

 private:
  static constexpr size_t kStep = 256 * kKiB;
  OutputFile& out_;
  std::vector<uint8_t> buffer_;
};

uint64_t checksum_of(const StateHeader& header, std::span<const LayerRecord> records, std::span<const TokenId> ids) {
  Hash hash;
  hash.add(&header, offsetof(StateHeader, checksum));
  hash.add(records.data(), records.size_bytes());
  hash.add(ids.data(), ids.size_bytes());
  return hash.value();
}

Error damaged(const ByteStream& in, std::string_view what) {
  return bad_input(fmt::format("{}: {}: the saved state is damaged; save it again", in.name(), what));
}

Result<StateHeader> read_header(ByteStream& in, const StateIdentity& identity, const CacheView& view) {
  StateHeader h;
  if (in.size() < sizeof h)
    return bad_input(fmt::format("{}: is no saved state: it has only {}", in.name(), counted(in.size(), "byte")));
  RIDGE_TRY(in.read(&h, sizeof h));
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) {
    return bad_input(fmt::format("{}: is no saved state; `ridge run --save-state` writes one", in.name()));
  }
  if (h.version != kVersion || h.arithmetic != kArithmeticVersion) {
    return bad_input(
        fmt::format("{}: was saved by another version of Ridge (format {}, arithmetic {}; this one has {} "
                    "and {}): save it again",
                    in.name(), h.version, h.arithmetic, kVersion, kArithmeticVersion));
  }
  if (h.file_bytes != in.size()) {
    return damaged(in,
                   fmt::format("it has {} bytes instead of {}", format_count(in.size()), format_count(h.file_bytes)));
  }
  if (h.model != identity.model || h.layers != view.layers.size()) {
    return bad_input(
        fmt::format("{}: was saved with another model: name the model it was saved with, or save it again", in.name()));
  }
  if (h.kv_type != static_cast<uint32_t>(identity.kv_type) || h.numerics != static_cast<uint32_t>(identity.numerics)) {
    if (h.kv_type >= kKvTypes || h.numerics > static_cast<uint32_t>(Numerics::fast))
      return damaged(in, "its cache type is unknown");
    auto words = [](KvType type, Numerics numerics) {
      return fmt::format("--kv-type {} --numerics {}", name_of(type), name_of(numerics));
    };
    return bad_input(fmt::format("{}: was saved with {}, but this run has {}: use the same", in.name(),
                                 words(static_cast<KvType>(h.kv_type), static_cast<Numerics>(h.numerics)),
                                 words(identity.kv_type, identity.numerics)));
  }
  if (h.positions == 0 || h.reserved != 0) return damaged(in, "its header makes no sense");
  if (h.positions > view.cache.context()) {
    return bad_input(fmt::format("{}: holds {}, more than the context of {}: raise --context", in.name(),
                                 counted(h.positions, "position"), view.cache.context()));
  }
  return h;
}

// The records, checked against the model: after this every size is known and right.
Result<std::vector<LayerRecord>> read_records(ByteStream& in, const StateHeader& h, const CacheView& view) {
  std::vector<LayerRecord> records(view.layers.size());
  uint64_t expected =
      sizeof h + records.size() * sizeof(LayerRecord) + h.positions * sizeof(TokenId) + sizeof(uint64_t);
  if (in.remaining() < expected - sizeof h) return damaged(in, "it ends within its tables");
  RIDGE_TRY(in.read(records.data(), records.size() * sizeof(LayerRecord)));
  for (size_t i = 0; i < records.size(); ++i) {
    const LayerRecord& r = records[i];
    const KvLayer& l = view.layers[i];
    bool same =
        r.kv_heads == l.kv_heads && r.key_dim == l.key_dim && r.value_dim == l.value_dim && r.window == l.window;
    bool sane = r.from <= h.positions && (r.window != 0 || r.from == 0) && r.capacity % kPanel == 0 &&
                h.positions - r.from <= r.capacity;
    if (!same || !sane) return damaged(in, fmt::format("the record of layer {} does not fit the model", i));
    expected += saved_bytes(l, view.cache.type(), r.from, h.positions);
  }
  if (expected != in.size()) return damaged(in, "its size does not follow from its tables");
  return records;
}

// Reads one layer's part of the file; what the ring here has no room for is read and dropped. The lowest position kept.
Result<uint64_t> read_layer(ByteStream& in, Hash& hash, const CacheView& view, uint32_t layer, const LayerRecord& r,
                            uint64_t positions) {
  Bytes bytes = bytes_of(view.layers[layer], view.cache.type());
  uint64_t capacity = view.cache.capacity(layer), from = r.from, end_panel = (positions + kPanel - 1) / kPanel;
  // A ring of the same size holds the first panel where it was: half of it may be in use by the last one. In another
  // ring whole panels must fit.
  if (capacity != r.capacity && panels_of(from, positions) * kPanel > capacity) from = end_panel * kPanel - capacity;
  std::vector<uint8_t> dropped(std::max(bytes.key_panel, bytes.value_row));
  auto read = [&](uint8_t* into, uint64_t count) -> Result<void> {
    RIDGE_TRY(in.read(into, count));
    hash.add(into, count);
    return {};
  };
  for (uint32_t head = 0; head < r.kv_heads; ++head) {
    for (uint64_t p = r.from / kPanel; p < end_panel; ++p) {
      RIDGE_TRY(read(p < from / kPanel ? dropped.data() : key_panel(view, layer, head, p), bytes.key_panel));
    }
    for (uint64_t p = r.from; p < positions; ++p) {
      RIDGE_TRY(read(p < from ? dropped.data() : value_row(view, layer, head, p), bytes.value_row));
    }
  }
  return from;
}

Result<void> write_layer(Writer& out, Hash& hash, const CacheView& view, uint32_t layer, const LayerRecord& r,
                         uint64_t positions) {
  Bytes bytes = bytes_of(view.layers[layer], view.cache.type());
  auto write = [&](const uint8_t* from, uint64_t count) -> Result<void> {
    hash.add(from, count);
    return out.write(from, count);
  };
  for (uint32_t head = 0; head < r.kv_heads; ++head) {
    for (uint64_t p = r.from / kPanel; p < (positions + kPanel - 1) / kPanel; ++p) {
      RIDGE_TRY(write(key_panel(view, layer, head, p), bytes.key_panel));
    }
    for (uint64_t p = r.from; p < positions; ++p) RIDGE_TRY(write(value_row(view, layer, head, p), bytes.value_row));
  }
  return {};
}

}  // namespace

Result<uint64_t> model_fingerprint(const Model& model) {
  Hash hash;
  hash.add_text(model.config().architecture);
  add_metadata(hash, model.file().metadata());
  for (const RopeTable& t : model.rope_tables()) {
    hash.add_value(t.config.rot);
    for (double x : {t.config.base, t.config.linear_factor, t.config.magnitude, t.config.yarn_factor})
      hash.add_value(x);
    hash.add_value(t.factors.offset);
    hash.add_value(t.factors.size);
  }
  Program base = model.program_base();
  std::vector<DataFile> files;
  for (const std::string& path : base.files) files.push_back(RIDGE_TRY(DataFile::open(path, {})));
  for (const StoredTensor& t : base.tensors) {
    hash.add_text(t.name);
    hash.add_value(t.type);
    hash.add_value(t.rows);
    hash.add_value(t.cols);
    hash.add_value(t.layout);
    if (t.name.empty()) continue;  // a later matrix of a stack of experts: the first one stands for all
    RIDGE_TRY(add_tensor_sample(hash, files[t.file], t.offset + t.stored_bytes(0, t.rows) / 2));
  }
  if (!model.adapters().empty()) hash.add_value(model.adapters().fingerprint());
  return hash.value();
}

Result<uint64_t> source_fingerprint(const Model& model) {
  constexpr uint64_t kSample = 4096;
  Hash hash;
  hash.add_text(model.config().architecture);
  add_metadata(hash, model.file().metadata());
  std::array<uint8_t, kSample> sample;
  for (const GgufTensor& t : model.file().tensors()) {
    hash.add_text(t.name);
    hash.add_value(t.type);
    hash.add_value(t.shape);
    if (packs_as_panels(model.file(), t)) continue;
    const uint64_t bytes = std::min(t.bytes, kSample);
    FileStream in = RIDGE_TRY(FileStream::open(model.file().files()[t.file].path));
    RIDGE_TRY(in.skip(t.offset + (t.bytes - bytes) / 2));
    RIDGE_TRY(in.read(sample.data(), bytes));
    hash.add(sample.data(), bytes);
  }
  return hash.value();
}

uint64_t state_bytes(uint64_t context) {
  // The chunk of a stream or a writer's buffer, what may wait in the page cache, and the ids twice.
  constexpr uint64_t kBuffers = 2 * kMiB;
  return kBuffers + 2 * context * sizeof(TokenId);
}

Result<void> write_state(const std::string& path, const StateIdentity& identity, const CacheView& view,
                         std::span<const TokenId> history) {
  RIDGE_CHECK(!history.empty() && history.size() <= view.written, "a state has positions");
  StateHeader h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.version = kVersion;
  h.arithmetic = kArithmeticVersion;
  h.model = identity.model;
  h.kv_type = static_cast<uint32_t>(identity.kv_type);
  h.numerics = static_cast<uint32_t>(identity.numerics);
  h.layers = static_cast<uint32_t>(view.layers.size());
  h.positions = history.size();
  std::vector<LayerRecord> records;
  h.file_bytes = sizeof h + view.layers.size() * sizeof(LayerRecord) + history.size_bytes() + sizeof(uint64_t);
  for (uint32_t i = 0; i < view.layers.size(); ++i) {
    const KvLayer& l = view.layers[i];
    uint64_t capacity = view.cache.capacity(i), from = 0;
    if (l.window != 0) from = std::max(view.oldest, view.written > capacity ? view.written - capacity : 0);
    from = std::min<uint64_t>(from, history.size());
    records.push_back({l.kv_heads, l.key_dim, l.value_dim, l.window, from, capacity});
    h.file_bytes += saved_bytes(l, view.cache.type(), from, history.size());
  }
  h.checksum = checksum_of(h, records, history);

  OutputFile file = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(file.preallocate(h.file_bytes));
  Writer out(file);
  RIDGE_TRY(out.write(&h, sizeof h));
  RIDGE_TRY(out.write(records.data(), records.size() * sizeof(LayerRecord)));
  RIDGE_TRY(out.write(history.data(), history.size_bytes()));
  Hash hash;
  for (uint32_t i = 0; i < records.size(); ++i) {
    RIDGE_TRY(write_layer(out, hash, view, i, records[i], history.size()));
  }
  uint64_t data = hash.value();
  RIDGE_TRY(out.write(&data, sizeof data));
  RIDGE_TRY(out.flush());
  return file.commit();
}

Result<LoadedState> read_state(ByteStream& in, const StateIdentity& identity, const CacheView& view) {
  StateHeader h = RIDGE_TRY(read_header(in, identity, view));
  std::vector<LayerRecord> records = RIDGE_TRY(read_records(in, h, view));
  LoadedState state;
  state.ids.resize(h.positions);
  RIDGE_TRY(in.read(state.ids.data(), h.positions * sizeof(TokenId)));
  if (checksum_of(h, records, state.ids) != h.checksum) return damaged(in, "the checksum of its tables is wrong");
  for (TokenId id : state.ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= view.vocabulary) return damaged(in, "it holds an unknown token");
  }
  Hash hash;
  for (uint32_t i = 0; i < records.size(); ++i) {
    uint64_t from = RIDGE_TRY(read_layer(in, hash, view, i, records[i], h.positions));
    if (records[i].window != 0) state.oldest = std::max(state.oldest, from);
  }
  if (RIDGE_TRY(in.read_as<uint64_t>()) != hash.value()) return damaged(in, "the checksum of its data is wrong");
  return state;
}

}  // namespace ridge
