// The shared nouns: what a model is made of for those who place, read and count it. Plain data, no behaviour of a
// model.
//
//   Program p = …;                                       // from a model (model/outline.h)
//   for (const Visit& v : p.visits) total += v.cost;
//   const Block& b = p.blocks[p.visits[0].block];
//
// Thread-safe: immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/types.h"

namespace ridge {

using TensorId = uint32_t;
using BlockId = uint32_t;

// How a tensor lies in its file: rows as the format defines them, or panels (panel.h) as `ridge pack` writes them.
enum class Layout : uint8_t { rows, panels };

struct StoredTensor {
  std::string name;  // empty: one more matrix of the stack that the tensor before it begins
  Type type = Type::F32;
  uint32_t rows = 0, cols = 0;
  uint32_t file = 0;    // index into Program::files
  uint64_t offset = 0;  // absolute, in that file
  Layout layout = Layout::rows;

  // Bytes in the file of rows [begin, end); with panels, begin is a multiple of 16.
  uint64_t stored_bytes(uint32_t begin, uint32_t end) const;
  uint64_t stored_offset(uint32_t row) const;
};

// Rows [row_begin, row_end) of one tensor; row_begin is a multiple of 16.
struct Piece {
  TensorId tensor = 0;
  uint32_t row_begin = 0, row_end = 0;
};

// The unit that is placed, read and dropped as one. Never larger than a stream slot.
struct Block {
  std::string name;  // "blk.3.ffn/1"
  std::vector<Piece> pieces;
  uint64_t storage_bytes = 0;  // of all pieces in the file
  uint64_t memory_bytes = 0;   // of all pieces as panels
  bool on_demand = false;      // of an expert: visited only when a router chooses it
};

// Bytes and operations of one visit, by counting, never by measuring. A multiply-add is two operations.
struct Cost {
  uint64_t storage_bytes = 0;     // weights in the file
  uint64_t memory_bytes = 0;      // weights in the layout the kernel reads
  uint64_t kv_bytes = 0;          // key/value cache read and written
  uint64_t activation_bytes = 0;  // activations read and written, once each
  uint64_t flops = 0;             // floating-point operations
  uint64_t int_ops = 0;           // int8 operations

  Cost& operator+=(const Cost& o) {
    storage_bytes += o.storage_bytes;
    memory_bytes += o.memory_bytes;
    kv_bytes += o.kv_bytes;
    activation_bytes += o.activation_bytes;
    flops += o.flops;
    int_ops += o.int_ops;
    return *this;
  }
};

// What a pass does, in kinds that a roofline tells apart. `other`: embedding rows, norms, rotations, residual sums.
enum class Operator : uint8_t { qkv, attention, output, ffn, experts, head, other };
inline constexpr size_t kOperators = 7;
std::string_view name_of(Operator op);  // "qkv", …

struct Visit {
  BlockId block = 0;
  Cost cost;          // expected: what a visit costs, times its chance
  double chance = 1;  // that a pass visits the block: 1 but for experts
};

// What one linear step of the forward pass reads of one block.
struct Slice {
  BlockId block = 0;
  uint32_t first_piece = 0, piece_count = 0;
};

// The experts of one layer: steps first_step + 2e (gate and up) and the next one (down) are those of expert e. Groups
// of neurons that may rest are kept as experts are: `used` is then what a token is expected to touch.
struct ExpertGroup {
  uint32_t first_step = 0, experts = 0, used = 0;
  bool held = false;  // a pass holds all that it uses of the layer at once (neurons), up to every one
};

// Pieces of a block that follow each other in one file.
struct JoinedPieces {
  size_t first = 0, count = 0;
  uint64_t offset = 0, bytes = 0;
};

// The blocks of a model and the order in which one pass visits them.
struct Program {
  std::vector<std::string> files;
  std::vector<StoredTensor> tensors;  // those that blocks or gathers refer to
  std::vector<Block> blocks;
  std::vector<Visit> visits;               // one pass
  std::vector<std::vector<Slice>> steps;   // the linear steps of one pass, in order
  std::vector<ExpertGroup> expert_groups;  // in the order of the pass
  Cost other;                              // of operations without streamed weights (embedding rows, attention, norms)
  std::array<Cost, kOperators> operators;  // the same costs, visits and `other`, by Operator: their sum is cost()

  uint64_t storage_bytes() const;  // of all blocks
  uint64_t memory_bytes() const;
  uint64_t largest_block_storage() const;
  Cost cost() const;  // of one pass, all visits and `other`
  const Cost& cost(Operator op) const { return operators[static_cast<size_t>(op)]; }
  uint64_t memory_bytes_of_a_pass() const;  // of all visits, as expected
  uint64_t heap_bytes() const;              // that the description itself takes
  // The blocks of each of expert_groups, in the order of the program; what no group names is in none of them.
  std::vector<std::vector<BlockId>> expert_blocks() const;
};

// The pieces of a block as the fewest reads that have nothing between them: panels that follow each other.
std::vector<JoinedPieces> joined_pieces(const Program& program, const Block& block);

// What makes room in a layer's cache of experts: the one used longest ago, or the one used least, where each use counts
// half as much after a while. Or one cache for all layers, of what is likeliest to be used (memory/cache_manager.h).
enum class ExpertPolicy : uint8_t { lru, decayed_lfu, importance };
std::string_view name_of(ExpertPolicy policy);  // "lru", "decayed-lfu", "importance"

// Which blocks stay in memory, and what the others stream through. Made by the planner, obeyed by a weight source.
struct Placement {
  std::vector<uint8_t> pinned;  // by BlockId; all 1: resident
  uint64_t slot_bytes = 0;      // of one stream slot, 0 if nothing streams
  uint32_t slots = 2;
  uint32_t expert_slots = 2;  // for blocks on demand that are not pinned; they do not use the others
  uint32_t expert_cache = 0;  // of these, how many each expert group has on average; the rest is for what passes by
  ExpertPolicy expert_policy = ExpertPolicy::lru;
  // By BlockId, or empty for none: pinned blocks that may be given back while running. The slots then have room for
  // each of them, too. Never a block on demand, or one of a gathered tensor.
  std::vector<uint8_t> elastic = {};

  bool may_go(BlockId block) const { return !elastic.empty() && elastic[block] != 0; }
  bool streams() const;
  uint64_t pinned_bytes(const Program& program) const;    // as panels, each rounded to the 64 bytes of a panel
  uint64_t streamed_bytes(const Program& program) const;  // read from storage per pass, as expected
};

}  // namespace ridge
