// Saved states: the token history of a run and its keys and values, so that a later run of the same model need not read
// the same text again (docs/states.md has the format).
//
// Not for: deciding what to reuse (Engine::rewind, generate.h), or for sharing between models: everything the numbers
// depend on is compared first.
//
//   StateIdentity id{.model = RIDGE_TRY(model_fingerprint(model)), .kv_type = KvType::f16};
//   RIDGE_TRY(write_state("s.state", id, view, history));
//   FileStream in = RIDGE_TRY(FileStream::open("s.state"));
//   LoadedState state = RIDGE_TRY(read_state(in, id, view));    // straight into the cache
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/numerics.h"
#include "format/file_stream.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace ridge {

// What a state must have in common with the run that loads it.
struct StateIdentity {
  uint64_t model = 0;
  KvType kv_type = KvType::f16;
  Numerics numerics = Numerics::standard;
};

// A cache and what its layers hold.
struct CacheView {
  KvCache& cache;
  const std::vector<KvLayer>& layers;
  uint64_t written = 0;     // positions that were ever written since it was empty; for saving
  uint64_t oldest = 0;      // lowest position that sliding layers may still hold; for saving
  uint32_t vocabulary = 0;  // ids are below it
};

struct LoadedState {
  std::vector<TokenId> ids;
  uint64_t oldest = 0;  // lowest position that every sliding layer holds now
};

// XXH3-64 of the architecture, all metadata but arrays, the rope tables in use, every tensor's name, type and shape,
// and the 4 KiB in the middle of every tensor's bytes, read from the file: a fine-tuned twin differs in those. A .ridge
// pack has a fingerprint of its own.
Result<uint64_t> model_fingerprint(const Model& model);

// A hash that a model and its packs share: architecture, metadata but arrays, names, types and shapes, and up to 4 KiB
// in the middle of every tensor that a pack leaves as it is (norms, biases, routers, an embedding that is no head).
Result<uint64_t> source_fingerprint(const Model& model);

// Memory that saving or loading takes beside the cache itself, for the account.
uint64_t state_bytes(uint64_t context);

Result<void> write_state(const std::string& path, const StateIdentity& identity, const CacheView& view,
                         std::span<const TokenId> history);

// Bad input: another model, cache type or arithmetic, more positions than the context, a damaged file. After an error
// the cache may hold anything.
Result<LoadedState> read_state(ByteStream& in, const StateIdentity& identity, const CacheView& view);

}  // namespace ridge
