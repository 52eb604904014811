#include "distill/gate_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "program/program.h"
#include "sim/recorded_trace.h"

namespace ridge::distill {
namespace {

uint32_t stored_layer(const StudentShape& shape, uint32_t run) { return shape.shared ? run / 2 : run; }

// By neuron, the block that holds it.
std::vector<uint32_t> blocks_of(const std::vector<uint32_t>& order, uint32_t neurons) {
  std::vector<uint32_t> block(order.size());
  for (size_t place = 0; place < order.size(); ++place) block[order[place]] = static_cast<uint32_t>(place / neurons);
  return block;
}

// Blocks of one token of one run that hold a neuron that is on, ascending.
void touched_blocks(const GateRecord& record, uint32_t run, uint64_t token, const std::vector<uint32_t>& block,
                    std::vector<uint32_t>& out) {
  out.clear();
  for (uint32_t n = 0; n < record.ffn(); ++n) {
    if (record.on(run, token, n)) out.push_back(block[n]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

double share_touched(const GateRecord& record, const StudentShape& shape, const NeuronOrder& order, uint32_t neurons) {
  uint64_t touched = 0;
  std::vector<uint32_t> blocks;
  for (uint32_t run = 0; run < record.runs(); ++run) {
    const std::vector<uint32_t> block = blocks_of(order[stored_layer(shape, run)], neurons);
    for (uint64_t token = 0; token < record.tokens(); ++token) {
      touched_blocks(record, run, token, block, blocks);
      touched += blocks.size();
    }
  }
  const uint64_t each = (record.ffn() + neurons - 1) / neurons;
  return static_cast<double>(touched) / static_cast<double>(each * record.runs() * record.tokens());
}

double share_stays_on(const GateRecord& record) {
  uint64_t before = 0, stays = 0;
  for (uint32_t run = 0; run < record.runs(); ++run) {
    for (uint64_t token = 1; token < record.tokens(); ++token) {
      for (uint32_t n = 0; n < record.ffn(); ++n) {
        if (!record.on(run, token - 1, n)) continue;
        ++before;
        stays += record.on(run, token, n) ? 1 : 0;
      }
    }
  }
  return before == 0 ? 0 : static_cast<double>(stays) / static_cast<double>(before);
}

}  // namespace

void GateRecord::add(uint32_t run, std::span<const uint8_t> on) {
  RIDGE_CHECK(run < bits_.size() && on.size() == ffn_, "one flag for each neuron");
  std::vector<uint64_t>& bits = bits_[run];
  const size_t begin = bits.size();
  bits.resize(begin + words_);
  for (uint32_t n = 0; n < ffn_; ++n) bits[begin + n / 64] |= uint64_t{on[n] != 0} << n % 64;
}

std::vector<std::vector<uint64_t>> GateRecord::counts() const {
  std::vector<std::vector<uint64_t>> counts(runs(), std::vector<uint64_t>(ffn_));
  for (uint32_t run = 0; run < runs(); ++run) {
    for (uint64_t token = 0; token < tokens(); ++token) {
      for (uint32_t n = 0; n < ffn_; ++n) counts[run][n] += on(run, token, n) ? 1 : 0;
    }
  }
  return counts;
}

NeuronOrder natural_order(const StudentShape& shape) {
  std::vector<uint32_t> neurons(shape.ffn);
  std::iota(neurons.begin(), neurons.end(), 0u);
  return NeuronOrder(shape.layers, neurons);
}

NeuronOrder sort_neurons(const GateRecord& record, const StudentShape& shape) {
  NeuronOrder order = natural_order(shape);
  std::vector<std::vector<uint64_t>> busy(shape.layers, std::vector<uint64_t>(shape.ffn));
  const auto counts = record.counts();
  for (uint32_t run = 0; run < record.runs(); ++run) {
    for (uint32_t n = 0; n < shape.ffn; ++n) busy[stored_layer(shape, run)][n] += counts[run][n];
  }
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    std::stable_sort(order[layer].begin(), order[layer].end(),
                     [&](uint32_t a, uint32_t b) { return busy[layer][a] > busy[layer][b]; });
  }
  return order;
}

TouchStats touch_stats(const GateRecord& record, const StudentShape& shape, const NeuronOrder& order,
                       uint32_t neurons) {
  constexpr double kBusiest = 0.26;  // the share that PowerInfer names for OPT-30B (arXiv 2312.12456)
  uint64_t all = 0, top = 0, dead = 0;
  for (std::vector<uint64_t>& counts : record.counts()) {
    std::sort(counts.begin(), counts.end(), std::greater<>());
    const auto some = static_cast<std::ptrdiff_t>(static_cast<double>(counts.size()) * kBusiest + 0.5);
    all += std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    top += std::accumulate(counts.begin(), counts.begin() + some, uint64_t{0});
    dead += static_cast<uint64_t>(std::count(counts.begin(), counts.end(), uint64_t{0}));
  }
  const double places = static_cast<double>(record.runs()) * record.ffn();
  TouchStats s;
  s.sparsity = 1 - static_cast<double>(all) / (places * static_cast<double>(record.tokens()));
  s.dead = static_cast<double>(dead) / places;
  s.busiest = all == 0 ? 0 : static_cast<double>(top) / static_cast<double>(all);
  s.stays_on = share_stays_on(record);
  s.touched_natural = share_touched(record, shape, natural_order(shape), neurons);
  s.touched_sorted = share_touched(record, shape, order, neurons);
  return s;
}

double dram_cut(const StudentShape& s, double touched, double sram) {
  const double d = s.dim, ffn = d * s.ffn;
  const double skippable = s.ffn_kind == FfnKind::swiglu ? 0 : s.ffn_kind == FfnKind::reglu ? 2 * ffn : ffn;
  const double matrices = s.ffn_kind == FfnKind::relu2 ? 2 : 3;
  const double attention = 2 * d * d + 2 * d * s.kv_heads * s.head_dim();
  const double pass = s.runs() * (attention + matrices * ffn) + d * s.vocabulary;
  const double dense = pass - s.runs() * skippable;
  return (s.runs() * skippable * (1 - touched) + std::min(sram * pass, dense)) / pass;
}

Result<void> write_visits(const GateRecord& record, const StudentShape& shape, const NeuronOrder& order,
                          uint32_t neurons, const std::string& model, const std::string& path) {
  const uint32_t each = (shape.ffn + neurons - 1) / neurons;
  const uint64_t vectors = shape.ffn_kind == FfnKind::relu2 ? 1 : 2;
  Program program;
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (uint32_t b = 0; b < each; ++b) {
      Block block;
      block.name = fmt::format("blk.{}.ffn.{}", layer, b);
      const uint64_t size = std::min<uint64_t>(neurons, shape.ffn - uint64_t{b} * neurons);
      block.storage_bytes = block.memory_bytes = size * vectors * shape.dim * sizeof(float);
      program.blocks.push_back(std::move(block));
    }
  }
  std::vector<std::vector<uint32_t>> places;
  for (const auto& layer : order) places.push_back(blocks_of(layer, neurons));
  std::vector<BlockId> visits;
  std::vector<size_t> begins;
  std::vector<uint32_t> blocks;
  for (uint64_t token = 0; token < record.tokens(); ++token) {
    begins.push_back(visits.size());
    for (uint32_t run = 0; run < record.runs(); ++run) {
      const uint32_t layer = stored_layer(shape, run);
      touched_blocks(record, run, token, places[layer], blocks);
      for (uint32_t b : blocks) visits.push_back(static_cast<BlockId>(layer * each + b));
    }
  }
  return sim::write_recorded(program, visits, begins, model, path);
}

}  // namespace ridge::distill
