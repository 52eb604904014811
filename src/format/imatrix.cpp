#include "format/imatrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "format/file_stream.h"
#include "format/gguf.h"
#include "format/gguf_writer.h"
#include "format/output_file.h"
#include "format/quote.h"

namespace ridge {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr uint64_t kMostFloats = uint64_t{1} << 28;  // 1 GiB: forty times that of the largest known model

Error no_imatrix(const std::string& path, const std::string& what) {
  return bad_input(
      fmt::format("{}: {}: expected an importance matrix that `ridge importance --imatrix` or llama-imatrix "
                  "wrote as GGUF",
                  path, what));
}

Result<std::vector<double>> read_floats(FileStream& in, const GgufTensor& t, const std::string& path) {
  if (t.type != Type::F32) return no_imatrix(path, fmt::format("tensor {} is not F32", in_quotes(t.name)));
  RIDGE_TRY(in.skip(t.offset - in.position()));
  std::vector<float> values(t.elements());
  RIDGE_TRY(in.read(values.data(), values.size() * sizeof(float)));
  for (float v : values) {
    if (!(v >= 0) || !std::isfinite(v))
      return no_imatrix(path, fmt::format("tensor {} holds {}, which is no sum of squares", in_quotes(t.name), v));
  }
  return std::vector<double>(values.begin(), values.end());
}

// Pairs as entries, without their numbers.
Result<std::vector<ImatrixEntry>> entries_of(const Gguf& gguf, const std::string& path) {
  std::vector<ImatrixEntry> entries;
  uint64_t floats = 0;
  for (const GgufTensor& t : gguf.tensors()) {
    floats += t.elements();
    if (floats > kMostFloats) return no_imatrix(path, "more numbers than any model has");
    if (!t.name.ends_with(kSums)) continue;
    const std::string name = t.name.substr(0, t.name.size() - kSums.size());
    const GgufTensor* counts = gguf.find(name + std::string(kCounts));
    if (counts == nullptr) return no_imatrix(path, fmt::format("tensor {} has no counts", in_quotes(t.name)));
    if (counts->elements() != t.rows() || t.cols() > UINT32_MAX)
      return no_imatrix(path, fmt::format("tensor {} and its counts have different shapes", in_quotes(t.name)));
    entries.push_back({.name = name, .columns = static_cast<uint32_t>(t.cols()), .in_sum2 = {}, .counts = {}});
  }
  if (entries.empty()) return no_imatrix(path, "holds no sums of squares");
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

const ImatrixEntry* Imatrix::find(const std::string& name) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), name,
                                   [](const ImatrixEntry& e, const std::string& n) { return e.name < n; });
  return at != entries.end() && at->name == name ? &*at : nullptr;
}

Result<Imatrix> read_imatrix(const std::string& path) {
  const Gguf gguf = RIDGE_TRY(Gguf::open(path));
  const Metadata& meta = gguf.metadata();
  Imatrix out;
  if (RIDGE_TRY(meta.string("general.type")).value_or("imatrix") != "imatrix")
    return no_imatrix(path, "its 'general.type' is not imatrix");
  out.chunks = static_cast<uint32_t>(RIDGE_TRY(meta.uint("imatrix.chunk_count")).value_or(0));
  out.chunk_tokens = static_cast<uint32_t>(RIDGE_TRY(meta.uint("imatrix.chunk_size")).value_or(0));
  if (const StringPool* names = RIDGE_TRY(meta.strings("imatrix.datasets")); names != nullptr) {
    for (size_t i = 0; i < names->size(); ++i) out.datasets.emplace_back((*names)[i]);
  }
  out.entries = RIDGE_TRY(entries_of(gguf, path));
  std::vector<const GgufTensor*> order;  // the stream goes forward only
  for (const GgufTensor& t : gguf.tensors()) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  FileStream in = RIDGE_TRY(FileStream::open(path));
  for (const GgufTensor* t : order) {
    const bool sums = t->name.ends_with(kSums);
    if (!sums && !t->name.ends_with(kCounts)) continue;
    const std::string name = t->name.substr(0, t->name.size() - (sums ? kSums : kCounts).size());
    const ImatrixEntry* entry = out.find(name);
    if (entry == nullptr) return no_imatrix(path, fmt::format("tensor {} has no sums", in_quotes(t->name)));
    ImatrixEntry& e = out.entries[static_cast<size_t>(entry - out.entries.data())];
    (sums ? e.in_sum2 : e.counts) = RIDGE_TRY(read_floats(in, *t, path));
  }
  return out;
}

Result<void> write_imatrix(const Imatrix& imatrix, const std::string& path) {
  Metadata meta;
  meta.entries()["general.type"] = std::string("imatrix");
  StringPool names;
  for (const std::string& name : imatrix.datasets) names.push_back(name);
  meta.entries()["imatrix.datasets"] = MetadataArray(std::move(names));
  meta.entries()["imatrix.chunk_count"] = uint64_t{imatrix.chunks};
  meta.entries()["imatrix.chunk_size"] = uint64_t{imatrix.chunk_tokens};
  std::vector<GgufTensor> tensors;
  for (const ImatrixEntry& e : imatrix.entries) {
    tensors.push_back({.name = e.name + std::string(kSums), .shape = {e.columns, e.counts.size(), 1, 1}, .dims = 2});
    tensors.push_back({.name = e.name + std::string(kCounts), .shape = {1, e.counts.size(), 1, 1}, .dims = 2});
  }
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  const std::string header = gguf_header(meta, tensors, {.narrow = {"imatrix.chunk_count", "imatrix.chunk_size"}});
  RIDGE_TRY(out.preallocate(gguf_file_bytes(tensors)));
  RIDGE_TRY(out.write(header));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ImatrixEntry& e = imatrix.entries[i / 2];
    const std::vector<double>& numbers = i % 2 == 0 ? e.in_sum2 : e.counts;
    const std::vector<float> floats(numbers.begin(), numbers.end());
    RIDGE_TRY(out.write_at(tensors[i].offset, {reinterpret_cast<const uint8_t*>(floats.data()), tensors[i].bytes}));
  }
  return out.commit();
}

}  // namespace ridge
