// How a `.ridge` pack lies on disk (docs/pack-format.md). Internal to format/: ridge_pack.cpp reads it,
// ridge_pack_writer.cpp writes it.
//
//   [0, 128)                 PackHeader
//   [128, meta_bytes)        per source: name, size, time, header and its checksum; per tensor: a table entry; per
//                            layer whose neurons lie in another order: that order
//   [data_begin, file_bytes) tensors, each at a multiple of 4,096
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ridge {

static_assert(std::endian::native == std::endian::little, "numbers in a pack are little-endian, as in memory");

inline constexpr char kPackMagic[8] = {'R', 'I', 'D', 'G', 'E', 'P', 'C', 'K'};
inline constexpr uint32_t kPackedAsPanels = 1;   // flags of a table entry
inline constexpr uint32_t kPackedInBundles = 2;  // neuron_bundles.h; with kPackedAsPanels

struct PackHeader {
  char magic[8];
  uint32_t version;
  uint32_t panel_layout;  // kPanelLayoutVersion
  uint64_t file_bytes;    // of the whole pack
  uint64_t meta_bytes;    // header, sources and table
  uint64_t data_begin;
  uint32_t sources;
  uint32_t tensors;
  uint32_t bundle_neurons;     // of a bundle; 0: the pack has none (and is of version 1)
  uint32_t touched_per_mille;  // expected share of bundles that a token touches; 0: not known
  uint32_t bundle_align;       // bundles begin at multiples of it; 0: of 4,096
  uint32_t orders;             // layers whose neurons lie in another order, listed after the table
  uint8_t reserved[48];        // zeros
  uint64_t padding;            // zero
  uint64_t checksum;           // XXH3-64 of [0, 120) and [128, meta_bytes)
};
static_assert(sizeof(PackHeader) == 128 && offsetof(PackHeader, checksum) == 120);

// A checksum over pieces, without an allocation.
class Hasher {
 public:
  Hasher() { XXH3_64bits_reset(&state_); }
  void add(std::span<const uint8_t> bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace ridge
