// `.ridge` packs: the weights of a model (GGUF, or an image model's safetensors) as panels, for those who stream the
// same model often. Saves the rearranging of every pass and the odd offsets; the values are the same bit for bit.
// docs/pack-format.md has every field.
//
// A pack holds the headers of its source verbatim, so it needs no other file. It refuses to be used when its source
// lies beside it and was changed since. Not for: reading weights (memory/ does, as from any file).
//
//   RIDGE_TRY(write_ridge_pack(gguf, "model.ridge", {.pool = &pool, .pack = kernels.pack}));
//   RIDGE_TRY(ensure_verified("model.ridge"));            // reads it all, once
//   RidgePack pack = RIDGE_TRY(open_ridge_pack("model.ridge"));
//   const GgufTensor& t = pack.gguf.tensors()[i];         // name, type, shape; where it lies in the pack
//   bool panels = pack.tensors[i].panels;
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "format/gguf.h"
#include "format/neuron_bundles.h"
#include "tensor/panel.h"

namespace ridge {

inline constexpr uint32_t kRidgePackVersion = 3;
// What a pack without orders and alignment of its own, or without bundles, is written as.
inline constexpr uint32_t kBundlePackVersion = 2, kPlainPackVersion = 1;
inline constexpr uint64_t kPackAlign = 4096;  // of every tensor in the file

// One tensor of a pack, beside its GgufTensor.
struct PackedTensor {
  bool panels = false;   // panels of 16 rows (panel.h); otherwise rows as GGUF defines them
  bool bundled = false;  // panels that lie in bundles (neuron_bundles.h); the down matrix has the bytes of both
  uint64_t offset = 0;   // a multiple of kPackAlign
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH3-64 of those bytes
};

struct RidgePack {
  // Metadata and tensors of the source. files() is the pack alone, and `file`, `offset` and `bytes` of every tensor say
  // where it lies in the pack, so that what is stored as rows is read as from any GGUF file.
  Gguf gguf;
  std::vector<PackedTensor> tensors;  // as gguf.tensors()
  std::string source;                 // name of the (first) source file, without folder
  NeuronBundles bundles;
};

// Whether the file begins like a pack.
Result<bool> is_ridge_pack(const std::string& path);

// Bad input: not a pack, of another version or panel layout, damaged, cut short, or stale (its source, in the same
// folder, was changed). Reads headers alone.
Result<RidgePack> open_ridge_pack(const std::string& path);

// Reads all of the pack past the page cache and compares the checksums; shows a progress bar.
// Bad input: the first tensor that differs.
Result<void> verify_ridge_pack(const std::string& path);

// The same, unless this very file (device, inode, size, times) was verified before: that is remembered in the
// folder `where` (cache_folder() if empty).
Result<void> ensure_verified(const std::string& path, const std::string& where = "");

struct RidgePackOptions {
  ThreadPool* pool = nullptr;
  // By type, as Kernels::pack; nullptr: the reference.
  void (*const* pack)(const PackArgs&) = nullptr;
  // Which tensors become panels; empty: packs_as_panels().
  std::function<bool(const Gguf&, const GgufTensor&)> as_panels;
  // Neurons of a bundle, 0: none. Layers that cannot be cut so stay as they are.
  uint32_t bundle_neurons = 0;
  uint32_t touched_per_mille = 0;  // what is known of them
  // Tensors and bundles begin at multiples of it: good_pack_align().
  uint64_t align = kPackAlign;
  // Of layers that are cut into bundles; others are left as they are. `touched` has an entry for each bundle.
  std::vector<NeuronOrder> orders;
};

// Whether tensors and bundles may begin at multiples of this: a multiple of kPackAlign, 1 MiB at most.
bool good_pack_align(uint64_t align);
// Whether a matrix by itself, whatever its name, has a panel layout.
bool packs_as_panels_alone(const GgufTensor& tensor);
// Matrices that a forward pass multiplies by. Vectors, routers, and an embedding table that is only looked up (there is
// a head of its own) stay rows; so does what has no panel layout.
bool packs_as_panels(const Gguf& gguf, const GgufTensor& tensor);

// Piece by piece with less than 16 MiB, the source read past the page cache, shown by a progress bar. An existing file
// at `path` is replaced at the end or, after an error, left alone. I/O: a full disk. Bad input: a source that changed
// meanwhile.
Result<void> write_ridge_pack(const Gguf& source, const std::string& path, const RidgePackOptions& options);

}  // namespace ridge
