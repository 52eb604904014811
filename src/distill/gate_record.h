// Which neurons of a ReLU student were on, token by token: what can be skipped, and what a cache of blocks of neurons
// sees.
//
//   GateRecord record(runs, ffn);
//   record.add(run, on);                       // on: [ffn], 1 where the gate is above zero; runs of a token in order
//   NeuronOrder order = sort_neurons(train);   // by how often they are on: permuting neurons of a layer loses nothing
//   TouchStats stats = touch_stats(judge, order, 16);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "distill/job.h"

namespace ridge::distill {

class GateRecord {
 public:
  GateRecord(uint32_t runs, uint32_t ffn) : ffn_(ffn), words_((ffn + 63) / 64), bits_(runs) {}
  // One token of one run; every run gets as many.
  void add(uint32_t run, std::span<const uint8_t> on);

  uint32_t runs() const { return static_cast<uint32_t>(bits_.size()); }
  uint32_t ffn() const { return ffn_; }
  uint64_t tokens() const { return bits_.empty() ? 0 : bits_.front().size() / words_; }
  bool on(uint32_t run, uint64_t token, uint32_t neuron) const {
    return (bits_[run][token * words_ + neuron / 64] >> neuron % 64 & 1) != 0;
  }
  // [runs][ffn]: tokens at which the neuron was on.
  std::vector<std::vector<uint64_t>> counts() const;

 private:
  uint32_t ffn_, words_;
  std::vector<std::vector<uint64_t>> bits_;  // [runs][tokens · words]
};

// By stored layer: the neurons in the order in which they fill blocks.
using NeuronOrder = std::vector<std::vector<uint32_t>>;
NeuronOrder natural_order(const StudentShape& shape);
// The busiest first. Runs of one stored layer (StudentShape::shared) count together.
NeuronOrder sort_neurons(const GateRecord& record, const StudentShape& shape);

struct TouchStats {
  double sparsity = 0;         // share of neurons that are off, over tokens and layers
  double dead = 0;             // share of neurons that are never on
  double busiest = 0;          // share of all activations that the busiest 26 % of each layer's neurons have
  double stays_on = 0;         // P(on | on at the token before)
  double touched_natural = 0;  // share of blocks of neighbours with a neuron that is on
  double touched_sorted = 0;   // of blocks in the order given
};
TouchStats touch_stats(const GateRecord& record, const StudentShape& shape, const NeuronOrder& order, uint32_t neurons);

// Share of the bytes of a pass that need not be read when blocks without a neuron that is on are skipped: the gate (or
// what decides, the up matrix of ReLU²), attention and head are read whole. With SRAM for `sram` of the model, blocks
// that every token reads are pinned first: each of their bytes saves one.
double dram_cut(const StudentShape& shape, double touched, double sram);

// Visits of the blocks that were touched, a pass for each token (sim/recorded_trace.h). A block holds what is skipped
// with its neurons, as F32: row of up and column of down; of ReLU² the column alone.
Result<void> write_visits(const GateRecord& record, const StudentShape& shape, const NeuronOrder& order,
                          uint32_t neurons, const std::string& model, const std::string& path);

}  // namespace ridge::distill
