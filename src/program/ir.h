// A program and where its blocks lie as text, for people and for tools that compile for a device: what hides a device's
// alignment from everything above it. One line for each block; docs/ir.md explains every field.
//
//   std::string text = ir_text(ir);
//   Ir again = RIDGE_TRY(read_ir(text, "model.ir"));        // ir_text(again) == text, byte for byte
//
// Not for: making one (sim/ir_build.h), or running it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/program.h"

namespace ridge {

struct IrFile {
  std::string name;  // without folder
  uint64_t bytes = 0;
  bool operator==(const IrFile&) const = default;
};

// A memory of the target.
struct IrTier {
  std::string kind, name;  // "shared_sram"
  uint64_t bytes = 0, burst_bytes = 1;
};

struct IrMatrix {
  Type type = Type::F32;
  uint32_t rows = 0, cols = 0;
  bool operator==(const IrMatrix&) const = default;
};

// Bytes of a block in a file.
struct IrExtent {
  uint32_t file = 0;
  uint64_t offset = 0, bytes = 0;
  bool operator==(const IrExtent&) const = default;
};

// Bytes [offset, offset + bytes) of a block, kept at an address of a tier.
struct IrKept {
  std::string tier;
  uint64_t address = 0, bytes = 0, offset = 0;
};

enum class IrHome : uint8_t {
  pin,    // in memory, as panels
  slot,   // streams through a slot at its turn
  cache,  // on demand: through a cache of blocks
  dram,   // of a machine of tiers: from DRAM, but for what is kept
};
std::string_view name_of(IrHome home);

// A block of weights.
struct IrBlock {
  std::string name;
  Operator op = Operator::other;
  std::vector<uint32_t> order;  // its visits in the pass, counted from 0
  std::vector<IrMatrix> matrices;
  uint64_t bytes = 0, memory_bytes = 0;  // in the file, as panels
  uint64_t align = 1;                    // that every extent begins at; a power of two
  uint64_t moved_bytes = 0;              // in whole bursts of DRAM; without a machine `bytes`
  uint32_t touch = 1'000'000;            // passes that visit it, in millionths
  std::vector<IrExtent> at;
  IrHome home = IrHome::pin;
  std::vector<IrKept> kept;  // ascending offsets
  size_t line = 0;           // where it was read, from 1; 0: made
};

// A share of keys and values.
struct IrKv {
  std::string name;
  uint64_t bytes = 0;
  IrHome home = IrHome::pin;
  std::vector<IrKept> kept;
};

struct Ir {
  std::string model;
  uint64_t fingerprint = 0;
  std::vector<IrFile> files;
  uint64_t positions = 0;  // of keys and values
  // Either a machine of tiers, or a budget; `budget` 0: everything is in memory.
  std::optional<std::string> machine;
  std::vector<IrTier> tiers;
  uint64_t budget = 0, slot_bytes = 0;
  uint32_t slots = 0, cache_slots = 0;
  std::vector<IrBlock> blocks;  // as the program has them
  std::vector<IrKv> kv;
  uint64_t row_bytes = 0;  // embedding rows, norms and biases that a pass reads
};

std::string ir_text(const Ir& ir);
// Bad input, naming the line: another version, a field that is missing, unknown or none, places outside of their tier
// or block, anything that ir_text() would write otherwise.
Result<Ir> read_ir(std::string_view text, const std::string& name);

}  // namespace ridge
