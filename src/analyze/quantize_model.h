// A GGUF model in fewer bits: what each matrix would lose in each type, and the file with the types chosen.
//
// Matrices are read a few rows at a time; the model is never in memory as a whole. Norms, biases and routers stay as
// they are, and so does every matrix that would not get smaller.
//
//   const QuantizeSource source = RIDGE_TRY(open_quantize_source("model.gguf"));
//   std::vector<BitMatrix> matrices = RIDGE_TRY(measure_errors(source, weights, work));
//   … mix_under_bytes(matrices, …) …
//   OutputFile out = RIDGE_TRY(write_quantized(source, types, weights, "out.gguf", work));
//   RIDGE_TRY(out.commit());
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyze/bit_mix.h"
#include "analyze/importance_map.h"
#include "base/thread_pool.h"
#include "format/gguf_raw.h"
#include "format/imatrix.h"
#include "format/output_file.h"
#include "model/model.h"

namespace ridge {

struct QuantizeSource {
  Gguf file;
  GgufRaw raw;
  std::vector<size_t> matrices;  // indices of file.tensors() that may change, in the order of the file
};
// Bad input: no GGUF model that Ridge runs, a pack, a split model.
Result<QuantizeSource> open_quantize_source(const std::string& path);

// Mean squares of what each column is multiplied by, by the tensor's name: [matrices of the stack, columns].
using ColumnWeights = std::map<std::string, std::vector<float>>;
// Bad input: sums of another model. Columns that met nothing keep a ten-thousandth of the mean.
Result<ColumnWeights> column_weights(const QuantizeSource& source, const Imatrix& imatrix, const std::string& path);
// Of passes, with the output head.
ColumnWeights column_weights(const Model& model, const ActivationStats& stats);

struct QuantizeWork {
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* interrupted = nullptr;        // then the work ends with an I/O error
  std::function<void(uint64_t elements)> progress = {};  // elements done since the last call
};

// Types that a matrix can take: those whose blocks fill its rows, and that make it smaller, by their size.
std::vector<Type> smaller_types(const GgufTensor& tensor);
// `wish`, or where its blocks do not fill the rows the smallest type with at least its bits that does; none: the matrix
// stays as it is.
std::optional<Type> type_or_next(const GgufTensor& tensor, Type wish);

// One entry for each of source.matrices, with a choice for each smaller type and one for what it is. Errors are
// measured on at most `kSampleRows` rows of each matrix of a stack, evenly spread.
inline constexpr uint64_t kSampleRows = 64;
Result<std::vector<BitMatrix>> measure_errors(const QuantizeSource& source, const ColumnWeights& weights,
                                              const QuantizeWork& work);

// Sets the scale of each matrix to what was measured: matrices of one kind in one of four runs of layers are a group;
// the model with one group in a coarse type and all else as it is gives the divergence of the group, which is shared
// among its matrices by their errors in that type. `divergence` gets the path of such a model. The file of all coarse
// matrices beside the original ones lies where `path` does, without a name.
struct ScaleGroup {
  std::string name;
  std::vector<size_t> matrices;
  double kl = 0;  // nats per token
};
using DivergenceOf = std::function<Result<double>(const std::string& model_path)>;
Result<std::vector<ScaleGroup>> measure_scales(const QuantizeSource& source, std::vector<BitMatrix>& matrices,
                                               const ColumnWeights& weights, const DivergenceOf& divergence,
                                               const std::string& path, const QuantizeWork& work);
// Of the map's parts of layers instead: sensitivity times bytes. What no part holds gets the mean.
void set_scales(const ImportanceMap& map, std::vector<BitMatrix>& matrices);

// The whole model with these types for source.matrices, ready to be read at readable_path() and committed. Bad input: a
// value that is no finite number, with its tensor and row.
Result<OutputFile> write_quantized(const QuantizeSource& source, std::span<const Type> types,
                                   const ColumnWeights& weights, const std::string& path, const QuantizeWork& work);
// Its size.
uint64_t quantized_bytes(const QuantizeSource& source, std::span<const Type> types);

}  // namespace ridge
