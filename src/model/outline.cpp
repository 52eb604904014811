#include "model/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "model/latent_attention.h"
#include "model/operators.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// As kExpFlops counts.
constexpr uint64_t kGateFlops = 30, kReluFlops = 2;

}  // namespace

Outline::Outline(const Model& model, const PassShape& shape, const ProgramOptions& options)
    : Ops(shape), model_(model), options_(options), program_(options.record ? model.program_base() : Program{}) {}

float* Outline::workspace(size_t offset, size_t floats) {
  most_ = std::max(most_, offset + floats);
  return nullptr;
}

void Outline::part(const std::string& name) {
  close_part();
  part_name_ = name;
}

uint64_t Outline::stored(const std::vector<Piece>& pieces) const {
  uint64_t sum = 0;
  for (const Piece& p : pieces) sum += program_.tensors[p.tensor].stored_bytes(p.row_begin, p.row_end);
  return sum;
}

Cost Outline::slice_cost(const std::vector<Piece>& pieces, const Step& step) const {
  Cost cost;
  for (const Piece& p : pieces) {
    const StoredTensor& t = program_.tensors[p.tensor];
    uint64_t rows = p.row_end - p.row_begin;
    uint64_t ops = 2 * rows * t.cols * step.tokens;
    cost.storage_bytes += t.stored_bytes(p.row_begin, p.row_end);
    cost.memory_bytes += panels_bytes(t.type, rows, t.cols);
    (uses_int8(t.type, options_.exact) ? cost.int_ops : cost.flops) += ops;
    cost.activation_bytes += rows * step.tokens * sizeof(float);
  }
  return cost;
}

// Cuts a step into slices of at most `most_bytes` (0: any number); every slice holds the same part of each of its
// tensors, so that the rows of q, k and v (or gate and up) arrive together.
void Outline::cut_step(const Step& step, uint64_t most_bytes, std::vector<std::vector<Piece>>& slices) const {
  uint64_t total = stored(step.pieces);
  if (most_bytes == 0 || total <= most_bytes) {
    slices.push_back(step.pieces);
    return;
  }
  // One panel row of each tensor is the least a slice can hold, so `count` may not exceed the panels of the largest.
  uint64_t most_panels = 1;
  for (const Piece& p : step.pieces)
    most_panels = std::max<uint64_t>(most_panels, (p.row_end + kPanelRows - 1) / kPanelRows);
  if (step.heads != 0) most_panels = step.heads;
  // Whole panels do not divide evenly: more slices until the largest fits.
  for (uint64_t count = std::min((total + most_bytes - 1) / most_bytes, most_panels);; ++count) {
    auto cut = step.heads != 0 ? cut_by_heads(step, count) : cut_into(step, count);
    bool fits = std::all_of(cut.begin(), cut.end(), [&](const auto& slice) { return stored(slice) <= most_bytes; });
    if (!fits && count < most_panels) continue;
    slices.insert(slices.end(), cut.begin(), cut.end());
    return;
  }
}

std::vector<std::vector<Piece>> Outline::cut_into(const Step& step, uint64_t count) const {
  std::vector<std::vector<Piece>> slices;
  for (uint64_t s = 0; s < count; ++s) {
    std::vector<Piece> pieces;
    for (const Piece& p : step.pieces) {
      uint64_t panels = (p.row_end + kPanelRows - 1) / kPanelRows;
      uint32_t begin = static_cast<uint32_t>(panels * s / count * kPanelRows);
      uint32_t end = static_cast<uint32_t>(std::min<uint64_t>(panels * (s + 1) / count * kPanelRows, p.row_end));
      if (begin < end) pieces.push_back({p.tensor, begin, end});
    }
    if (!pieces.empty()) slices.push_back(std::move(pieces));
  }
  return slices;
}

std::vector<std::vector<Piece>> Outline::cut_by_heads(const Step& step, uint64_t count) const {
  std::vector<std::vector<Piece>> slices;
  for (uint64_t s = 0; s < count; ++s) {
    uint32_t begin = static_cast<uint32_t>(step.heads * s / count);
    uint32_t end = static_cast<uint32_t>(step.heads * (s + 1) / count);
    std::vector<Piece> pieces;
    for (const Piece& p : step.pieces) {
      uint32_t rows = p.row_end / step.heads;
      pieces.push_back({p.tensor, begin * rows, end * rows});
    }
    slices.push_back(std::move(pieces));
  }
  return slices;
}

Cost Outline::expected(Cost cost, const Demand& demand) {
  auto times = [](uint64_t n, double factor) { return static_cast<uint64_t>(static_cast<double>(n) * factor); };
  if (!demand.on_demand) return cost;
  cost.storage_bytes = times(cost.storage_bytes, demand.chance);
  cost.memory_bytes = times(cost.memory_bytes, demand.chance);
  cost.activation_bytes = times(cost.activation_bytes, demand.token_share);
  cost.flops = times(cost.flops, demand.token_share);
  cost.int_ops = times(cost.int_ops, demand.token_share);
  return cost;
}

// Consecutive slices of the part share a block while they fit into a slot.
void Outline::close_part(const Demand& demand) {
  uint32_t number = 0;
  bool open = false;
  const uint64_t most_bytes = demand.whole ? 0 : options_.slot_bytes;
  for (const Step& step : part_steps_) {
    std::vector<std::vector<Piece>> slices;
    cut_step(step, most_bytes, slices);
    std::vector<Slice> recorded;
    for (const auto& pieces : slices) {
      uint64_t bytes = stored(pieces);
      const Cost whole = slice_cost(pieces, step);
      Cost cost = expected(whole, demand);
      if (recorded.empty()) cost.activation_bytes += step.in_floats * sizeof(float);
      bool fits = open && (most_bytes == 0 || program_.blocks.back().storage_bytes + bytes <= most_bytes);
      if (!fits) {
        program_.blocks.push_back(
            {.name = fmt::format("{}/{}", part_name_, number++), .pieces = {}, .on_demand = demand.on_demand});
        program_.visits.push_back(
            {.block = static_cast<BlockId>(program_.blocks.size() - 1), .cost = {}, .chance = demand.chance});
        open = true;
      }
      Block& block = program_.blocks.back();
      recorded.push_back({static_cast<BlockId>(program_.blocks.size() - 1), static_cast<uint32_t>(block.pieces.size()),
                          static_cast<uint32_t>(pieces.size())});
      block.pieces.insert(block.pieces.end(), pieces.begin(), pieces.end());
      block.storage_bytes += bytes;
      block.memory_bytes += whole.memory_bytes;
      program_.visits.back().cost += cost;
      program_.operators[static_cast<size_t>(step.op)] += cost;
    }
    program_.steps.push_back(std::move(recorded));
  }
  part_steps_.clear();
}

void Outline::record(const std::vector<Weight>& weights, size_t tokens, size_t in_width, Operator op) {
  if (!options_.record) return;
  Step step{.pieces = {}, .tokens = tokens, .in_floats = tokens * in_width, .op = op};
  for (const Weight& w : weights) step.pieces.push_back({w.id, 0, w.rows});
  part_steps_.push_back(std::move(step));
}

Operator Outline::operator_of(const Weight& weight) const {
  return options_.record ? ridge::operator_of(program_.tensors[weight.id].name) : Operator::other;
}

// What adapters add to a product, as Compute::adapt() does it. Their bytes are always in memory.
void Outline::adapt(size_t rows, const Weight& weight, Operator op) {
  products_.insert(weight.id);
  for (const Adapter& a : model_.adapters().of(weight.id)) {
    Frame frame(*this);
    (void)temp(rows, a.rank);
    (void)temp(rows, a.rows);
    use({Op::scale, Op::add});
    const uint64_t elements = uint64_t{a.rank} * (a.rows + a.cols);
    const uint64_t floats = rows * (uint64_t{a.cols} + 4 * a.rank + 4 * a.rows);
    count_other(op, {.memory_bytes = panels_bytes(Type::F32, a.rank, a.cols) + panels_bytes(Type::F32, a.rows, a.rank),
                     .activation_bytes = floats * sizeof(float),
                     .flops = rows * (2 * elements + a.rank + a.rows)});
  }
}

void Outline::linear(Rows x, std::initializer_list<LinearPart> parts) {
  const Operator op = operator_of(parts.begin()->weight);
  for (const LinearPart& part : parts) adapt(x.rows, part.weight, op);
  Frame frame(*this);
  std::vector<Weight> weights;
  bool int8 = false, packed = false;
  for (const LinearPart& part : parts) {
    weights.push_back(part.weight);
    int8 = int8 || uses_int8(part.weight.type, options_.exact);
    packed = packed || packs_activations(x.rows, part.weight, options_.exact);
    if (!part.bias) continue;
    use({Op::add});
    elementwise(op, 2 * x.rows * part.weight.rows, x.rows * part.weight.rows);
  }
  if (int8) {
    use({Op::quantize});
    (void)temp_q8(x.rows, x.cols);
  }
  if (packed) {
    use({Op::pack_activations});
    (void)temp(x.rows, x.cols);
  }
  record(weights, x.rows, x.cols, op);
}

void Outline::logits(Rows x, const Weight& head, float softcap) {
  size_t outputs = shape().outputs;
  if (outputs == 0) return;  // of a model that is read for its hidden states
  adapt(outputs, head, Operator::head);
  Frame frame(*this);
  if (uses_int8(head.type, options_.exact)) {
    use({Op::quantize});
    (void)temp_q8(outputs, x.cols);
  }
  if (packs_activations(outputs, head, options_.exact)) {
    use({Op::pack_activations});
    (void)temp(outputs, x.cols);
  }
  record({head}, outputs, x.cols, Operator::head);
  if (softcap <= 0) return;
  use({Op::softcap});
  elementwise(Operator::head, 2 * outputs * head.rows, outputs * head.rows * kExpFlops);
}

Rows Outline::embed(const Weight& table) {
  const uint64_t rows = tokens() * row_bytes(table.type, table.cols);
  count_other(Operator::other, {.storage_bytes = rows, .memory_bytes = rows});
  Rows x = temp(table.cols);
  for (const RopeTable& rope : model_.rope_tables()) (void)temp(rope.config.rot);
  elementwise(Operator::other, x.rows * x.cols, 0);
  return x;
}

void Outline::count_other(Operator op, const Cost& cost) {
  program_.other += cost;
  program_.operators[static_cast<size_t>(op)] += cost;
}

void Outline::elementwise(Operator op, uint64_t floats_moved, uint64_t flops) {
  count_other(op, {.activation_bytes = floats_moved * sizeof(float), .flops = flops});
}

void Outline::use(std::initializer_list<Op> ops) {
  for (Op op : ops) used_.set(static_cast<size_t>(op));
}

void Outline::use_gate(Gate gate) {
  if (gate != Gate::relu) use({gate == Gate::gelu_tanh ? Op::geglu : Op::swiglu});
}

// What stores keys and values.
void Outline::use_cache() {
  switch (options_.kv_type) {
    case KvType::f16:
      return use({Op::store_key_f16, Op::store_value_f16});
    case KvType::f32:
      return use({Op::store_key_f32, Op::store_value_f32});
    case KvType::bf16:
      return use({Op::store_key_bf16, Op::store_value_bf16});
    case KvType::q8_0:
      return use({Op::store_key_q8_0, Op::store_value_q8_0});
  }
}

Rows Outline::rms_norm(Rows x, VectorRef, float) {
  use({Op::rms_norm});
  elementwise(Operator::other, 2 * x.rows * x.cols, 4 * x.rows * x.cols);
  return temp(x.rows, x.cols);
}

void Outline::rms_norm_heads(Rows x, VectorRef, float, uint32_t) {
  use({Op::rms_norm});
  elementwise(Operator::other, 2 * x.rows * x.cols, 4 * x.rows * x.cols);
}

void Outline::rope(Rows x, const RopeCall& call) {
  use({call.pairs == RopePairs::neighbours ? Op::rope_norm : Op::rope_neox});
  uint64_t rotated = uint64_t{x.rows} * call.heads * model_.rope_tables()[call.table].config.rot;
  elementwise(Operator::other, 2 * rotated, 3 * rotated);
}

void Outline::attention(const AttentionCall& call, Rows q, Rows, Rows, Rows out) {
  use({Op::attention, Op::attention_merge});
  use_cache();
  uint64_t seen = 0;  // positions seen, summed over tokens
  for (uint64_t t = 0; t < shape().tokens; ++t) {
    uint64_t positions = shape().position + t + 1;
    seen += call.window ? std::min<uint64_t>(positions, call.window) : positions;
  }
  // What any token of the pass sees is read once: a tile's rows share it (compute_attention.cpp), and the keys and
  // values of one head stay in a cache from tile to tile.
  uint64_t end = shape().position + shape().tokens, first_sees = shape().position + 1;
  uint64_t begin = call.window && first_sees > call.window ? first_sees - call.window : 0;
  uint64_t per_position =
      call.kv_heads * (kv_bytes(options_.kv_type, call.key_dim) + kv_bytes(options_.kv_type, call.value_dim));
  count_other(Operator::attention,
              {.kv_bytes = (end - begin + shape().tokens) * per_position,
               .flops = seen * call.heads * (2 * uint64_t{call.key_dim} + 2 * uint64_t{call.value_dim} + kExpFlops)});
  elementwise(Operator::attention, q.rows * q.cols + out.rows * out.cols, 0);
}

void Outline::latent_attention(const LatentCall& call, Rows q, Rows, Rows out) {
  Frame frame(*this);
  (void)latent_temps(call, options_.exact);
  use_cache();
  // Generated tokens take the weights into the query, prompt tokens expand the latents.
  if (shape().role == TokenRole::generated) {
    use({Op::transpose, Op::attention, Op::attention_merge});
  } else {
    use({Op::soften, Op::merge_chunk});
  }
  if (!options_.exact) use({Op::quantize});
  latent_floats_ = std::max(latent_floats_, latent_scratch_floats(call, shape().tokens));
  uint64_t tokens = shape().tokens, end = shape().position + tokens;
  uint64_t seen = tokens * shape().position + tokens * (tokens + 1) / 2;  // positions seen, summed over tokens
  bool generated = shape().role == TokenRole::generated;
  // A head's matrices multiply one row per token, or one per position that is expanded.
  Step step{.pieces = {},
            .tokens = generated ? tokens : end,
            .in_floats = tokens * q.cols,
            .heads = call.heads,
            .op = Operator::attention};
  for (const Weight* w : {&call.kv_b, &call.k_b, &call.v_b}) {
    if (*w) step.pieces.push_back({w->id, 0, w->rows});
  }
  if (options_.record) part_steps_.push_back(std::move(step));

  uint64_t key = kv_bytes(options_.kv_type, call.latent + call.rope), value = kv_bytes(options_.kv_type, call.latent);
  // The expanded form reads the latents, as values, and the rotated part of the keys.
  uint64_t rotated = kv_bytes(options_.kv_type, call.rope);
  uint64_t width = generated ? 2 * uint64_t{call.latent} + call.rope : uint64_t{call.nope} + call.rope + call.value;
  count_other(Operator::attention,
              {.kv_bytes = end * (generated ? key + value : value + rotated) + tokens * (key + value),
               .flops = seen * call.heads * (2 * width + kExpFlops)});
  elementwise(Operator::attention, q.rows * q.cols + out.rows * out.cols, 0);
}

void Outline::relu(Rows x) { elementwise(Operator::ffn, 2 * x.rows * x.cols, x.rows * x.cols); }

void Outline::relu_squared(Rows x) { elementwise(Operator::ffn, 2 * x.rows * x.cols, 2 * x.rows * x.cols); }

void Outline::glu(Gate gate, Rows g, Rows) {
  use_gate(gate);
  const uint64_t flops = gate == Gate::relu ? kReluFlops : kGateFlops;
  elementwise(Operator::ffn, 3 * g.rows * g.cols, flops * g.rows * g.cols);
}

void Outline::add(Rows into, Rows) {
  use({Op::add});
  elementwise(Operator::other, 3 * into.rows * into.cols, into.rows * into.cols);
}

void Outline::scale(Rows x, float) {
  use({Op::scale});
  elementwise(Operator::other, 2 * x.rows * x.cols, x.rows * x.cols);
}

void Outline::scale_by_sigmoid(Rows x, Rows) {
  use({Op::scale});
  elementwise(Operator::other, 2 * x.rows * x.cols, x.rows * (x.cols + kExpFlops));
}

Routing Outline::route(Rows logits, const RouteCall& call) {
  elementwise(Operator::other, logits.rows * (logits.cols + 2 * call.used),
              logits.rows * logits.cols * (kExpFlops + call.used));
  Routing routing{.experts = temp(call.used), .weights = temp(call.used)};
  Frame frame(*this);
  (void)temp(1, 2 * logits.cols * logits.rows);
  return routing;
}

// Each expert is a part of its own, and so are its blocks. Its cost is that of the tokens which choose it if all
// experts are chosen alike: it is needed at all with probability 1 − (1 − used / count)^tokens.
void Outline::experts(Rows x, const Routing& routing, const ExpertMatrices& m, Gate gate, Rows out) {
  use({Op::scale, Op::add});
  use_gate(gate);
  Frame frame(*this);
  (void)expert_scratch(x.rows, routing.experts.cols, m, options_.exact);
  if (!options_.record) return;
  const std::string name = part_name_;
  close_part();
  const double share = static_cast<double>(routing.experts.cols) / m.count;
  const Demand demand{
      .on_demand = true, .chance = 1 - std::pow(1 - share, static_cast<double>(x.rows)), .token_share = share};
  program_.expert_groups.push_back({.first_step = static_cast<uint32_t>(program_.steps.size()),
                                    .experts = m.count,
                                    .used = static_cast<uint32_t>(routing.experts.cols)});
  auto of = [](Weight w, uint32_t expert) {
    w.id += expert;
    return w;
  };
  const uint32_t hidden = m.down.cols;
  for (uint32_t e = 0; e < m.count; ++e) {
    part_name_ = fmt::format("{}.{}", name, e);
    if (m.gate_up) {
      record({of(m.gate_up, e)}, x.rows, 0, Operator::experts);
    } else {
      record({of(m.gate, e), of(m.up, e)}, x.rows, 0, Operator::experts);
    }
    record({of(m.down, e)}, x.rows, 0, Operator::experts);
    close_part(demand);
  }
  part_name_ = name;
  const uint64_t visits = x.rows * routing.experts.cols;
  elementwise(Operator::experts, visits * (x.cols + 3 * hidden + 4 * out.cols),
              visits * (kGateFlops * hidden + 2 * out.cols));
}

// Each group is a part of its own, as an expert is, but never cut. That a pass touches it is reckoned as for experts.
void Outline::neurons(Rows x, Rows gates, const NeuronGroups& m, Rows out) {
  if (m.up_bias || m.down_bias) use({Op::add});
  if ((m.up && uses_int8(m.up.type, options_.exact)) || uses_int8(m.down.type, options_.exact)) use({Op::quantize});
  Frame frame(*this);
  (void)neuron_scratch(x.rows, m, options_.exact);
  if (!options_.record) return;
  const std::string name = part_name_;
  close_part();
  auto demand = [&](uint32_t group) {
    const double touched = m.touched_by_group.empty() ? m.touched : m.touched_by_group[group];
    return Demand{.on_demand = true,
                  .chance = 1 - std::pow(1 - touched, static_cast<double>(x.rows)),
                  .token_share = touched,
                  .whole = true};
  };
  program_.expert_groups.push_back(
      {.first_step = static_cast<uint32_t>(program_.steps.size()),
       .experts = m.count,
       .used = std::clamp(static_cast<uint32_t>(std::lround(m.touched * m.count)), 1u, m.count),
       .held = true});
  auto of = [](Weight w, uint32_t group) {
    w.id += group;
    return w;
  };
  for (uint32_t g = 0; g < m.count; ++g) {
    part_name_ = fmt::format("{}.{}", name, g);
    record(m.up ? std::vector<Weight>{of(m.up, g)} : std::vector<Weight>{}, x.rows, 0, Operator::ffn);
    record({of(m.down, g)}, x.rows, 0, Operator::ffn);
    close_part(demand(g));
  }
  part_name_ = name;
  elementwise(Operator::ffn, 3 * gates.rows * gates.cols + out.rows * out.cols, gates.rows * gates.cols);
}

Program Outline::finish() && {
  close_part();
  return std::move(program_);
}

}  // namespace ridge
