// Neurons that rest: the up rows and down columns of those whose gate is 0 for every token of the pass are neither read
// nor multiplied. What is left out would add ±0 to sums that begin at +0 and run over the neurons in order, so the
// result is the dense one's (docs/numerics.md).
#include <algorithm>
#include <cstring>

#include "model/compute.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// Whether a neuron of the group fires for any token; NaN counts.
bool any_fires(Rows gates, size_t first, size_t count) {
  for (size_t t = 0; t < gates.rows; ++t) {
    const float* g = gates.row(t) + first;
    if (std::any_of(g, g + count, [](float v) { return v != 0; })) return true;
  }
  return false;
}

}  // namespace

std::vector<uint32_t> Compute::firing_groups(Rows gates, const NeuronGroups& m) {
  std::vector<uint8_t> fires(m.count, 1);
  if (!m_.all_neurons) {
    m_.pool->share(m.count, 1 + kWorthSharing / (m.neurons * gates.rows), [&](size_t begin, size_t end, int) {
      for (size_t g = begin; g < end; ++g) fires[g] = any_fires(gates, g * m.neurons, m.neurons) ? 1 : 0;
    });
  }
  std::vector<uint32_t> groups;
  for (uint32_t g = 0; g < m.count; ++g) {
    if (fires[g] != 0) groups.push_back(g);
  }
  if (m_.neuron_use != nullptr) {
    m_.neuron_use->groups += m.count;
    m_.neuron_use->touched += groups.size();
  }
  return groups;
}

void Compute::neurons(Rows x, Rows gates, const NeuronGroups& m, Rows out) {
  const Program& program = m_.source->program();
  const ExpertGroup& layer = program.expert_groups[expert_group_++];
  step_ = layer.first_step + 2 * size_t{layer.experts};
  lease_.release();
  if (failed()) return;
  Frame frame(*this);
  const NeuronScratch s = neuron_scratch(x.rows, m, m_.exact);
  StageTimer timer(m_.profile, Stage::product, m.down.id);
  const std::vector<uint32_t> groups = firing_groups(gates, m);
  std::vector<BlockId> blocks;
  for (uint32_t g : groups) blocks.push_back(program.steps[layer.first_step + 2 * g].front().block);
  m_.source->want(blocks);
  if (s.x8.q != nullptr && !groups.empty()) quantize(x, s.x8);
  std::vector<Lease> leases(groups.size());
  acquire_and_raise(x, m, {groups, blocks, leases}, s);
  if (failed()) return;
  const Rows hidden = gather_hidden(gates, m, groups, s);
  lower(hidden, m, {groups, blocks, leases}, s, out);
}

// Whichever is there first comes first. All that is there is multiplied at once, so that the threads have enough to
// share.
void Compute::acquire_and_raise(Rows x, const NeuronGroups& m, const FiringGroups& f, const NeuronScratch& s) {
  std::vector<uint32_t> left(f.groups.size()), wave;  // places in f.groups
  for (uint32_t i = 0; i < left.size(); ++i) left[i] = i;
  std::vector<BlockId> left_blocks = {f.blocks.begin(), f.blocks.end()};
  while (!left.empty()) {
    const size_t next = m_.source->next_ready(left_blocks);
    if (!wave.empty() && !m_.source->ready(left_blocks[next])) {
      raise(x, m, f, wave, s);  // computed while the rest is being read
      wave.clear();
      continue;
    }
    StageTimer timer(m_.profile, Stage::storage);
    trace_.between();
    auto lease = m_.source->acquire(left_blocks[next]);
    trace_.resume();
    if (!lease.ok()) return fail(lease.error());
    f.leases[left[next]] = std::move(lease).value();
    wave.push_back(left[next]);
    left.erase(left.begin() + static_cast<ptrdiff_t>(next));
    left_blocks.erase(left_blocks.begin() + static_cast<ptrdiff_t>(next));
  }
  raise(x, m, f, wave, s);
}

// The up rows of some groups times x.
void Compute::raise(Rows x, const NeuronGroups& m, const FiringGroups& f, std::span<const uint32_t> places,
                    const NeuronScratch& s) {
  if (!m.up || places.empty()) return;
  std::vector<Work> works;
  for (uint32_t i : places) {
    const Rows up = s.up.slice_cols(size_t{f.groups[i]} * m.neurons, m.neurons);
    works.push_back({.type = m.up.type,
                     .layout = f.leases[i].pieces()[0].layout,
                     .weights = f.leases[i].pieces()[0].data,
                     .rows = m.neurons,
                     .cols = m.up.cols,
                     .out = up.data,
                     .out_stride = up.stride});
  }
  run_works(works, {x, s.x8});
  if (!m.up_bias) return;
  const float* bias = model_.vector(m.up_bias).data();
  for (uint32_t i : places) {
    const size_t first = size_t{f.groups[i]} * m.neurons;
    for (size_t t = 0; t < x.rows; ++t) m_.kernels->add(bias + first, m.neurons, s.up.row(t) + first);
  }
}

// Gate times up of the groups that fire, side by side: [tokens, neurons · groups].
Rows Compute::gather_hidden(Rows gates, const NeuronGroups& m, std::span<const uint32_t> groups,
                            const NeuronScratch& s) {
  Rows hidden = s.hidden.slice_cols(0, groups.size() * m.neurons);
  each_token(gates.rows, [&](size_t t) {
    float* h = hidden.row(t);
    for (uint32_t group : groups) {
      const size_t first = size_t{group} * m.neurons;
      const float *g = gates.row(t) + first, *up = s.up.row(t) + first;
      for (size_t i = 0; i < m.neurons; ++i) h[i] = m.up ? g[i] * up[i] : g[i];
      h += m.neurons;
    }
  });
  return hidden;
}

// The down columns of the groups that fire times the hidden values. Sixteen rows at a time are put together from all
// groups in the core's own cache, so that each sum runs over all neurons in order.
void Compute::lower(Rows hidden, const NeuronGroups& m, const FiringGroups& f, const NeuronScratch& s, Rows out) {
  if (f.groups.empty()) {
    for (size_t t = 0; t < out.rows; ++t) std::fill_n(out.row(t), out.cols, 0.0f);
  } else {
    if (s.hidden8.q != nullptr) quantize(hidden, s.hidden8);
    const size_t part = panel_bytes(m.down.type, m.neurons), piece = m.up ? 1 : 0;
    const auto type = static_cast<size_t>(m.down.type);
    MatmulFn multiply = uses_int8(m.down.type, m_.exact) ? m_.kernels->matmul_q8[type] : m_.kernels->matmul_float[type];
    const size_t scratch = m_.panels.size() / static_cast<size_t>(m_.pool->size());
    m_.pool->share((m.down.rows + kPanelRows - 1) / kPanelRows, 1, [&](size_t begin, size_t end, int worker) {
      uint8_t* panel = m_.panels.data() + static_cast<size_t>(worker) * scratch;
      for (size_t p = begin; p < end; ++p) {
        for (size_t i = 0; i < f.leases.size(); ++i) {
          std::memcpy(panel + i * part, f.leases[i].pieces()[piece].data + p * part, part);
        }
        multiply({.panels = panel,
                  .rows = std::min<size_t>(kPanelRows, m.down.rows - p * kPanelRows),
                  .cols = hidden.cols,
                  .tokens = hidden.rows,
                  .x = hidden.data,
                  .x_stride = hidden.stride,
                  .x8 = s.hidden8,
                  .out = out.data + p * kPanelRows,
                  .out_stride = out.stride});
      }
    });
    for (BlockId block : f.blocks) trace_.block(block);
  }
  if (!m.down_bias) return;
  const float* bias = model_.vector(m.down_bias).data();
  for (size_t t = 0; t < out.rows; ++t) m_.kernels->add(bias, m.down.rows, out.row(t));
}

}  // namespace ridge
