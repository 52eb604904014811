#include "analyze/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyze/tensor_rows.h"
#include "format/file_stream.h"
#include "format/quote.h"
#include "format/ridge_pack.h"
#include "tensor/quantize_fit.h"

namespace ridge {
namespace {

// By size; of two of one size (none here) the first would win.
constexpr Type kFitted[] = {Type::Q2_K, Type::Q3_K, Type::Q4_K, Type::Q4_0, Type::Q4_1,
                            Type::Q5_K, Type::Q5_0, Type::Q5_1, Type::Q6_K, Type::Q8_0};

uint64_t bytes_as(const GgufTensor& t, Type type) { return t.rows() * row_bytes(type, t.cols()); }

// What llama.cpp calls a file of which most is of this type (enum llama_ftype).
uint32_t file_type_of(Type type) {
  switch (type) {
    case Type::F16:
      return 1;
    case Type::Q4_0:
      return 2;
    case Type::Q4_1:
      return 3;
    case Type::Q8_0:
      return 7;
    case Type::Q5_0:
      return 8;
    case Type::Q5_1:
      return 9;
    case Type::Q2_K:
      return 10;
    case Type::Q3_K:
      return 11;  // Q3_K_S
    case Type::Q4_K:
      return 14;  // Q4_K_S
    case Type::Q5_K:
      return 16;  // Q5_K_S
    case Type::Q6_K:
      return 18;
    case Type::BF16:
      return 32;
    default:
      return 1024;  // guessed by the reader
  }
}

uint32_t file_type_of(const QuantizeSource& source, std::span<const Type> types) {
  std::map<Type, uint64_t> bytes;
  for (size_t i = 0; i < types.size(); ++i)
    bytes[types[i]] += bytes_as(source.file.tensors()[source.matrices[i]], types[i]);
  const auto most = std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? 0 : file_type_of(most->first);
}

Result<void> check_interrupt(const QuantizeWork& work) {
  if (work.interrupted == nullptr || !work.interrupted->load()) return {};
  return io_error("stopped by Ctrl-C");
}

// Row r of a tensor; bad input where a value is not finite.
Result<void> read_finite(const QuantizeSource& source, const GgufTensor& t, TensorRows& rows, uint64_t r, float* out) {
  RIDGE_TRY(rows.read(r, out));
  const float* bad = std::find_if(out, out + t.cols(), [](float v) { return !std::isfinite(v); });
  if (bad == out + t.cols()) return {};
  return bad_input(fmt::format("{}: tensor {}, row {}, column {} is {}: only finite weights can be quantised; convert "
                               "the model anew",
                               source.file.files()[t.file].path, in_quotes(t.name), r, bad - out, *bad),
                   t.offset + r * row_bytes(t.type, t.cols()));
}

// Of a row; empty: all alike.
std::span<const float> weights_of(const ColumnWeights& weights, const GgufTensor& t, uint64_t row) {
  const auto at = weights.find(t.name);
  if (at == weights.end()) return {};
  return std::span(at->second).subspan(row / t.shape[1] * t.cols(), t.cols());
}

void add_weights(ColumnWeights& out, const ImatrixEntry& e) {
  std::vector<float> means(e.in_sum2.size());
  for (size_t i = 0; i < means.size(); ++i) {
    const double count = e.counts[i / e.columns];
    means[i] = count > 0 ? static_cast<float>(e.in_sum2[i] / count) : 0.0f;
  }
  for (size_t at = 0; at < means.size(); at += e.columns) {
    const auto begin = means.begin() + static_cast<ptrdiff_t>(at), end = begin + static_cast<ptrdiff_t>(e.columns);
    const float mean = std::accumulate(begin, end, 0.0f) / static_cast<float>(e.columns);
    const float least = mean > 0 ? 1e-4f * mean : 1.0f;
    for (auto w = begin; w != end; ++w) *w = std::max(*w, least);
  }
  out[e.name] = std::move(means);
}

struct ErrorSums {
  double lost = 0, energy = 0;
};

// Of one row, in one type.
void add_error(Type type, std::span<const float> x, std::span<const float> w, std::vector<uint8_t>& bytes,
               std::vector<float>& back, ErrorSums& sums) {
  bytes.resize(row_bytes(type, x.size()));
  back.resize(x.size());
  fit_row(type, x, {.weights = w}, bytes);
  type_info(type).dequantize(bytes.data(), back.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = w.empty() ? 1.0 : static_cast<double>(w[i]);
    const double value = static_cast<double>(x[i]), off = value - static_cast<double>(back[i]);
    sums.lost += weight * off * off;
    sums.energy += weight * value * value;
  }
}

Result<BitMatrix> errors_of(const QuantizeSource& source, const GgufTensor& t, const ColumnWeights& weights,
                            const QuantizeWork& work) {
  BitMatrix out{.name = t.name, .elements = t.elements(), .scale = 1, .choices = {}};
  const std::vector<Type> types = smaller_types(t);
  std::vector<uint64_t> rows;
  const uint64_t each = std::min(kSampleRows, t.shape[1]), stack = t.shape[2] * t.shape[3];
  for (uint64_t s = 0; s < stack; ++s) {
    for (uint64_t i = 0; i < each; ++i) rows.push_back(s * t.shape[1] + (2 * i + 1) * t.shape[1] / (2 * each));
  }
  TensorRows reader = RIDGE_TRY(TensorRows::open(source.file, t));
  // A sum for each row and type, added up in their order: the same for any number of threads.
  std::vector<ErrorSums> sums(rows.size() * types.size());
  constexpr size_t kAtOnce = 64;
  std::vector<float> x(kAtOnce * t.cols());
  for (size_t begin = 0; begin < rows.size() && !types.empty(); begin += kAtOnce) {
    RIDGE_TRY(check_interrupt(work));
    const size_t count = std::min(kAtOnce, rows.size() - begin);
    for (size_t i = 0; i < count; ++i)
      RIDGE_TRY(read_finite(source, t, reader, rows[begin + i], x.data() + i * t.cols()));
    work.pool->share(count, 1, [&](size_t first, size_t last, int) {
      std::vector<uint8_t> bytes;
      std::vector<float> back;
      for (size_t i = first; i < last; ++i) {
        const std::span<const float> row(x.data() + i * t.cols(), t.cols());
        for (size_t k = 0; k < types.size(); ++k) {
          add_error(types[k], row, weights_of(weights, t, rows[begin + i]), bytes, back,
                    sums[(begin + i) * types.size() + k]);
        }
      }
    });
  }
  for (size_t k = 0; k < types.size(); ++k) {
    ErrorSums sum;
    for (size_t i = 0; i < rows.size(); ++i) {
      sum.lost += sums[i * types.size() + k].lost;
      sum.energy += sums[i * types.size() + k].energy;
    }
    const double error = sum.energy > 0 ? sum.lost / sum.energy : 0;
    out.choices.push_back({.type = types[k], .bytes = bytes_as(t, types[k]), .error = error});
  }
  out.choices.push_back({.type = t.type, .bytes = t.bytes, .error = 0});
  return out;
}

Result<void> copy_tensor(const QuantizeSource& source, const GgufTensor& from, uint64_t to, OutputFile& out,
                         const QuantizeWork& work) {
  constexpr uint64_t kPiece = 4 << 20;
  FileStream in = RIDGE_TRY(FileStream::open(source.file.files()[from.file].path));
  RIDGE_TRY(in.skip(from.offset));
  std::vector<uint8_t> bytes(std::min(kPiece, from.bytes));
  for (uint64_t at = 0; at < from.bytes; at += bytes.size()) {
    RIDGE_TRY(check_interrupt(work));
    bytes.resize(std::min<uint64_t>(bytes.size(), from.bytes - at));
    RIDGE_TRY(in.read(bytes.data(), bytes.size()));
    RIDGE_TRY(out.write_at(to + at, bytes));
  }
  return {};
}

Result<void> fit_tensor(const QuantizeSource& source, const GgufTensor& from, const GgufTensor& to,
                        const ColumnWeights& weights, OutputFile& out, const QuantizeWork& work) {
  constexpr uint64_t kPieceFloats = 1 << 20;
  const size_t cols = from.cols(), row_size = row_bytes(to.type, cols);
  const uint64_t at_once = std::max<uint64_t>(1, kPieceFloats / cols);
  TensorRows reader = RIDGE_TRY(TensorRows::open(source.file, from));
  std::vector<float> x(at_once * cols);
  std::vector<uint8_t> bytes(at_once * row_size);
  for (uint64_t begin = 0; begin < from.rows(); begin += at_once) {
    RIDGE_TRY(check_interrupt(work));
    const uint64_t count = std::min(at_once, from.rows() - begin);
    for (uint64_t i = 0; i < count; ++i) RIDGE_TRY(read_finite(source, from, reader, begin + i, x.data() + i * cols));
    work.pool->share(count, 1, [&](size_t first, size_t last, int) {
      for (size_t i = first; i < last; ++i) {
        fit_row(to.type, {x.data() + i * cols, cols}, {.weights = weights_of(weights, from, begin + i)},
                {bytes.data() + i * row_size, row_size});
      }
    });
    RIDGE_TRY(out.write_at(to.offset + begin * row_size, {bytes.data(), count * row_size}));
    if (work.progress) work.progress(count * cols);
  }
  return {};
}

std::vector<GgufTensor> with_types(const QuantizeSource& source, std::span<const Type> types) {
  std::vector<GgufTensor> tensors(source.file.tensors().begin(), source.file.tensors().end());
  for (size_t i = 0; i < types.size(); ++i) tensors[source.matrices[i]].type = types[i];
  return tensors;
}

GgufRaw with_file_type(const QuantizeSource& source, std::span<const Type> types) {
  constexpr uint32_t kQuantizationVersion = 2;
  GgufRaw raw = source.raw;
  raw.set("general.file_type", file_type_of(source, types));
  raw.set("general.quantization_version", kQuantizationVersion);
  return raw;
}

// "blk.7.ffn_down.weight": 7 and "ffn_down.weight"; -1 and the whole name for what belongs to no layer.
std::pair<int64_t, std::string> layer_and_kind(const std::string& name) {
  constexpr std::string_view kPrefix = "blk.";
  const size_t dot = name.find('.', kPrefix.size());
  if (!name.starts_with(kPrefix) || dot == std::string::npos) return {-1, name};
  int64_t layer = 0;
  for (char c : name.substr(kPrefix.size(), dot - kPrefix.size())) {
    if (c < '0' || c > '9') return {-1, name};
    layer = std::min<int64_t>(layer * 10 + (c - '0'), INT32_MAX);
  }
  return {layer, name.substr(dot + 1)};
}

std::vector<ScaleGroup> groups_of(std::span<const BitMatrix> matrices) {
  constexpr int64_t kRuns = 4;
  int64_t layers = 1;
  for (const BitMatrix& m : matrices) layers = std::max(layers, layer_and_kind(m.name).first + 1);
  std::map<std::string, ScaleGroup> groups;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const auto [layer, kind] = layer_and_kind(matrices[i].name);
    const int64_t run = layer * kRuns / layers;
    const int64_t first = (run * layers + kRuns - 1) / kRuns, last = ((run + 1) * layers + kRuns - 1) / kRuns - 1;
    const std::string name = layer < 0       ? kind
                             : first == last ? fmt::format("blk.{}.{}", first, kind)
                                             : fmt::format("blk.{}-{}.{}", first, last, kind);
    groups[name].name = name;
    groups[name].matrices.push_back(i);
  }
  std::vector<ScaleGroup> out;
  for (auto& [name, group] : groups) out.push_back(std::move(group));
  return out;
}

// The choice that a group is measured in: about 3 bits, where errors still add up and are large enough to be seen.
const BitChoice* coarse_choice(const BitMatrix& m) {
  for (const BitChoice& c : m.choices) {
    if (c.type != Type::Q2_K && c.error > 0) return &c;
  }
  return nullptr;
}

double coarse_error(const BitMatrix& m) {
  const BitChoice* c = coarse_choice(m);
  return c != nullptr ? c->error : 0;
}

}  // namespace

Result<std::vector<ScaleGroup>> measure_scales(const QuantizeSource& source, std::vector<BitMatrix>& matrices,
                                               const ColumnWeights& weights, const DivergenceOf& divergence,
                                               const std::string& path, const QuantizeWork& work) {
  // All original tensors, and after them the coarse ones, which the directory does not list yet.
  std::vector<GgufTensor> tensors(source.file.tensors().begin(), source.file.tensors().end());
  const GgufRaw& raw = source.raw;
  raw.lay_out(tensors);
  std::vector<GgufTensor> coarse(matrices.size());
  uint64_t end = raw.file_bytes(tensors);
  for (size_t i = 0; i < matrices.size(); ++i) {
    coarse[i] = tensors[source.matrices[i]];
    const BitChoice* c = coarse_choice(matrices[i]);
    if (c == nullptr) continue;
    coarse[i].type = c->type;
    coarse[i].bytes = c->bytes;
    coarse[i].offset = end;
    end = raw.aligned(end + c->bytes);
  }
  OutputFile file = RIDGE_TRY(OutputFile::create(path + ".scales"));
  RIDGE_TRY(file.preallocate(end));
  for (size_t i = 0; i < tensors.size(); ++i) {
    RIDGE_TRY(copy_tensor(source, source.file.tensors()[i], tensors[i].offset, file, work));
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (coarse_choice(matrices[i]) == nullptr) continue;
    RIDGE_TRY(fit_tensor(source, source.file.tensors()[source.matrices[i]], coarse[i], weights, file, work));
  }
  std::vector<ScaleGroup> groups = groups_of(matrices);
  for (ScaleGroup& group : groups) {
    RIDGE_TRY(check_interrupt(work));
    std::vector<GgufTensor> listed = tensors;
    double errors = 0;
    for (size_t i : group.matrices) {
      listed[source.matrices[i]] = coarse[i];
      errors += coarse_error(matrices[i]);
    }
    if (!(errors > 0)) continue;
    const std::string header = raw.header(listed);
    RIDGE_TRY(file.write_at(0, {reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
    group.kl = std::max(0.0, RIDGE_TRY(divergence(file.readable_path())));
    for (size_t i : group.matrices) matrices[i].scale = group.kl / errors;
  }
  return groups;
}

void set_scales(const ImportanceMap& map, std::vector<BitMatrix>& matrices) {
  std::map<std::pair<int64_t, bool>, double> parts;  // layer; attention or not
  double sum = 0;
  for (const MapBlock& b : map.blocks) {
    if (b.kind != MapKind::part && b.kind != MapKind::expert) continue;
    const double loss = b.sensitivity * static_cast<double>(b.bytes);
    parts[{b.layer, b.name.ends_with(".attn")}] += loss;
    sum += loss;
  }
  const double mean = parts.empty() ? 1 : sum / static_cast<double>(parts.size());
  for (BitMatrix& m : matrices) {
    const auto [layer, kind] = layer_and_kind(m.name);
    const auto at = parts.find({layer, kind.starts_with("attn")});
    m.scale = at != parts.end() && at->second > 0 ? at->second : mean;
  }
}

Result<QuantizeSource> open_quantize_source(const std::string& path) {
  if (RIDGE_TRY(is_ridge_pack(path)))
    return bad_input(fmt::format("{}: is a pack, whose weights are no rows: give the GGUF file", path));
  Gguf file = RIDGE_TRY(Gguf::open(path));
  GgufRaw raw = RIDGE_TRY(GgufRaw::read(file));
  QuantizeSource out{.file = std::move(file), .raw = std::move(raw), .matrices = {}};
  const auto model = RIDGE_TRY(Model::open(path));
  const Program base = model->program_base();
  std::map<std::string, bool> products;
  for (const StoredTensor& t : base.tensors) products[t.name] = t.rows > 1;
  for (size_t i = 0; i < out.file.tensors().size(); ++i) {
    const GgufTensor& t = out.file.tensors()[i];
    const auto at = products.find(t.name);
    const bool router = t.name.find("_gate_inp") != std::string::npos;
    if (at != products.end() && at->second && t.dims >= 2 && !router && !t.name.ends_with(".bias"))
      out.matrices.push_back(i);
  }
  if (out.matrices.empty()) return bad_input(fmt::format("{}: has no matrix that could be quantised", path));
  return out;
}

Result<ColumnWeights> column_weights(const QuantizeSource& source, const Imatrix& imatrix, const std::string& path) {
  ColumnWeights out;
  for (const ImatrixEntry& e : imatrix.entries) {
    const GgufTensor* t = source.file.find(e.name);
    const uint64_t stack = t != nullptr ? t->shape[2] * t->shape[3] : 0;
    if (t == nullptr || e.columns != t->cols() || e.counts.size() != stack || e.in_sum2.size() != stack * e.columns) {
      return bad_input(fmt::format("{}: {} has {} columns of {}, and {} has {}: it is of another model", path,
                                   in_quotes(e.name), e.columns, e.counts.size(), source.file.files().front().path,
                                   t != nullptr ? fmt::format("{} of {}", t->cols(), stack) : "no such tensor"));
    }
    add_weights(out, e);
  }
  return out;
}

ColumnWeights column_weights(const Model& model, const ActivationStats& stats) {
  ColumnWeights out;
  for (const ImatrixEntry& e : squares_by_tensor(model, stats)) add_weights(out, e);
  return out;
}

std::vector<Type> smaller_types(const GgufTensor& tensor) {
  std::vector<Type> out;
  for (Type type : kFitted) {
    if (tensor.cols() % type_info(type).block == 0 && bytes_as(tensor, type) < tensor.bytes) out.push_back(type);
  }
  return out;
}

std::optional<Type> type_or_next(const GgufTensor& tensor, Type wish) {
  auto bits = [](Type type) { return 8.0 * type_info(type).bytes / type_info(type).block; };
  const std::vector<Type> types = smaller_types(tensor);
  if (std::count(types.begin(), types.end(), wish) > 0) return wish;
  if (tensor.cols() % type_info(wish).block == 0) return std::nullopt;  // it would not get smaller
  for (Type type : types) {
    if (bits(type) >= bits(wish)) return type;
  }
  return std::nullopt;
}

Result<std::vector<BitMatrix>> measure_errors(const QuantizeSource& source, const ColumnWeights& weights,
                                              const QuantizeWork& work) {
  std::vector<BitMatrix> out;
  for (size_t i : source.matrices) {
    const GgufTensor& t = source.file.tensors()[i];
    out.push_back(RIDGE_TRY(errors_of(source, t, weights, work)));
    if (work.progress) work.progress(t.elements());
  }
  return out;
}

uint64_t quantized_bytes(const QuantizeSource& source, std::span<const Type> types) {
  std::vector<GgufTensor> tensors = with_types(source, types);
  const GgufRaw raw = with_file_type(source, types);
  raw.lay_out(tensors);
  return raw.file_bytes(tensors);
}

Result<OutputFile> write_quantized(const QuantizeSource& source, std::span<const Type> types,
                                   const ColumnWeights& weights, const std::string& path, const QuantizeWork& work) {
  RIDGE_CHECK(types.size() == source.matrices.size(), "a type for each matrix");
  std::vector<GgufTensor> tensors = with_types(source, types);
  const GgufRaw raw = with_file_type(source, types);
  raw.lay_out(tensors);
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  RIDGE_TRY(out.preallocate(raw.file_bytes(tensors)));
  RIDGE_TRY(out.write(raw.header(tensors)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensor& from = source.file.tensors()[i];
    RIDGE_TRY(from.type == tensors[i].type ? copy_tensor(source, from, tensors[i].offset, out, work)
                                           : fit_tensor(source, from, tensors[i], weights, out, work));
  }
  return out;
}

}  // namespace ridge
