// Experts: the choice per token, and the products with the tokens grouped by expert, so that each chosen expert's
// weights are acquired once for all of its tokens.
#include <algorithm>
#include <cstring>

#include "model/compute.h"
#include "model/routing.h"

namespace ridge {
namespace {

// The tokens of a pass by the expert they go to.
struct Grouped {
  std::vector<uint32_t> chosen;  // experts that have tokens, ascending
  std::vector<uint32_t> begin;   // by expert, and the total: into `tokens`
  std::vector<uint32_t> tokens;  // grouped by expert, ascending within each
  std::vector<uint32_t> place;   // [tokens of the pass · used]: where in `tokens` the token's k-th choice is
};

Grouped group_by_expert(const Routing& routing, uint32_t experts) {
  const Rows& r = routing.experts;
  Grouped g;
  g.begin.assign(experts + 1, 0);
  for (size_t t = 0; t < r.rows; ++t) {
    for (size_t k = 0; k < r.cols; ++k) ++g.begin[static_cast<size_t>(r.row(t)[k]) + 1];
  }
  for (uint32_t e = 0; e < experts; ++e) {
    if (g.begin[e + 1] > 0) g.chosen.push_back(e);
    g.begin[e + 1] += g.begin[e];
  }
  std::vector<uint32_t> next(g.begin.begin(), g.begin.end() - 1);
  g.tokens.resize(r.rows * r.cols);
  g.place.resize(r.rows * r.cols);
  for (size_t t = 0; t < r.rows; ++t) {
    for (size_t k = 0; k < r.cols; ++k) {
      const uint32_t at = next[static_cast<size_t>(r.row(t)[k])]++;
      g.tokens[at] = static_cast<uint32_t>(t);
      g.place[t * r.cols + k] = at;
    }
  }
  return g;
}

void copy_q8_row(const Q8Rows& from, size_t row, const Q8Rows& to, size_t to_row) {
  std::memcpy(to.q + to_row * to.q_stride, from.q + row * from.q_stride, from.q_stride);
  std::memcpy(to.d + to_row * to.d_stride, from.d + row * from.d_stride, from.d_stride * sizeof(float));
  std::memcpy(to.sums + 2 * to_row * to.d_stride, from.sums + 2 * row * from.d_stride,
              2 * from.d_stride * sizeof(int32_t));
}

Weight of_expert(Weight w, uint32_t expert) {
  w.id += expert;
  return w;
}

}  // namespace

// By expert: 1 if all of its blocks are in memory. Empty where nothing is masked.
std::vector<float> Compute::factors_of_absent(const ExpertGroup& group) const {
  std::vector<float> factors;
  if (m_.mask_absent == 1) return factors;
  const Program& program = m_.source->program();
  for (uint32_t e = 0; e < group.experts; ++e) {
    bool there = true;
    for (uint32_t part = 0; part < 2; ++part) {
      for (const Slice& slice : program.steps[group.first_step + 2 * e + part])
        there = there && m_.source->there(slice.block);
    }
    factors.push_back(there ? 1 : m_.mask_absent);
  }
  return factors;
}

Routing Compute::route(Rows logits, const RouteCall& call) {
  Routing routing{.experts = temp(call.used), .weights = temp(call.used)};
  Frame frame(*this);
  Rows scratch = temp(2 * logits.cols);
  if (failed()) return routing;
  const float* bias = call.selection_bias ? model_.vector(call.selection_bias).data() : nullptr;
  const Program& program = m_.source->program();
  const ExpertGroup& group = program.expert_groups[expert_group_];
  const std::vector<float> factors = factors_of_absent(group);
  each_token(logits.rows, [&](size_t t) {
    choose_experts(call, logits.row(t), bias, scratch.row(t), routing.experts.row(t), routing.weights.row(t),
                   factors.empty() ? nullptr : factors.data());
  });
  std::vector<uint8_t> chosen(group.experts, 0);
  for (size_t t = 0; t < logits.rows; ++t) {
    for (uint32_t k = 0; k < call.used; ++k) chosen[static_cast<size_t>(routing.experts.row(t)[k])] = 1;
  }
  std::vector<BlockId> blocks;
  for (uint32_t e = 0; e < group.experts; ++e) {
    for (uint32_t part = 0; chosen[e] != 0 && part < 2; ++part) {
      for (const Slice& slice : program.steps[group.first_step + 2 * e + part]) {
        if (blocks.empty() || blocks.back() != slice.block) blocks.push_back(slice.block);
      }
    }
  }
  m_.source->want(blocks);
  return routing;
}

void Compute::experts(Rows x, const Routing& routing, const ExpertMatrices& m, Gate gate, Rows out) {
  const Program& program = m_.source->program();
  const ExpertGroup& group = program.expert_groups[expert_group_++];
  step_ = group.first_step + 2 * size_t{group.experts};
  lease_.release();
  if (failed()) return;
  Frame frame(*this);
  ExpertScratch s = expert_scratch(x.rows, routing.experts.cols, m, m_.exact);
  StageTimer timer(m_.profile, Stage::product, (m.gate_up ? m.gate_up : m.gate).id);
  if (s.all8.q != nullptr) quantize(x, s.all8);
  const Grouped grouped = group_by_expert(routing, group.experts);

  // Whichever is there first comes first; the sums below do not depend on it.
  std::vector<uint32_t> left = grouped.chosen;
  std::vector<BlockId> first_blocks;
  while (!left.empty()) {
    first_blocks.clear();
    for (uint32_t e : left) first_blocks.push_back(program.steps[group.first_step + 2 * e].front().block);
    lease_.release();
    const size_t next = m_.source->next_ready(first_blocks);
    const uint32_t e = left[next];
    left.erase(left.begin() + static_cast<ptrdiff_t>(next));
    const std::span<const uint32_t> tokens(grouped.tokens.data() + grouped.begin[e],
                                           grouped.begin[e + 1] - grouped.begin[e]);
    run_expert(e, x, tokens, m, gate, s, s.outputs.slice_rows(grouped.begin[e], tokens.size()));
    if (failed()) return;
  }
  lease_.release();
  StageTimer sums(m_.profile, Stage::residual);
  each_token(x.rows, [&](size_t t) {
    for (size_t k = 0; k < routing.weights.cols; ++k) {
      float* y = s.outputs.row(grouped.place[t * routing.weights.cols + k]);
      m_.kernels->scale(routing.weights.row(t)[k], out.cols, y);
      if (k == 0) {
        std::memcpy(out.row(t), y, out.cols * sizeof(float));
      } else {
        m_.kernels->add(y, out.cols, out.row(t));
      }
    }
  });
}

// down(act(gate·x) ⊙ up·x) of one expert for its tokens; out [tokens.size(), width].
void Compute::run_expert(uint32_t expert, Rows x, std::span<const uint32_t> tokens, const ExpertMatrices& m, Gate gate,
                         const ExpertScratch& s, Rows out) {
  const Program& program = m_.source->program();
  const size_t step = program.expert_groups[expert_group_ - 1].first_step + 2 * size_t{expert};
  const size_t count = tokens.size();
  Rows picked = x.slice_rows(0, count);
  Q8Rows picked8 = s.all8;
  if (count < x.rows) {  // otherwise these are all tokens, in order
    if (s.picked.data != nullptr) picked = s.picked.slice_rows(0, count);
    if (s.all8.q != nullptr) picked8 = s.picked8;
    for (size_t i = 0; i < count; ++i) {
      if (s.picked.data != nullptr) std::memcpy(picked.row(i), x.row(tokens[i]), x.cols * sizeof(float));
      if (s.all8.q != nullptr) copy_q8_row(s.all8, tokens[i], picked8, i);
    }
  }
  const size_t hidden = m.down.cols;
  Rows first = s.first.slice_rows(0, count);
  Rows g = first.slice_cols(0, hidden), up = first.slice_cols(hidden, hidden);
  const LinearPart apart[] = {{.weight = of_expert(m.gate, expert), .out = g},
                              {.weight = of_expert(m.up, expert), .out = up}};
  const LinearPart fused{.weight = of_expert(m.gate_up, expert), .out = first};
  const auto parts = m.gate_up ? std::span(&fused, 1) : std::span(apart);
  for (const LinearPart& part : parts) {
    for (size_t i = 0; m_.probe != nullptr && i < count; ++i) {
      m_.probe->input(part.weight.id, x.slice_rows(tokens[i], 1));  // int8 inputs alone were picked, perhaps
    }
  }
  if (!run_step(program.steps[step], parts, {picked, picked8})) return;
  add_bias(g, m.gate_bias, expert);
  add_bias(up, m.up_bias, expert);
  glu(gate, g, up);
  if (m_.probe != nullptr) m_.probe->input(m.down.id + expert, g);
  if (s.hidden8.q != nullptr) quantize(g, s.hidden8);
  const LinearPart down{.weight = of_expert(m.down, expert), .out = out};
  {
    StageTimer timer(m_.profile, Stage::product, m.down.id);
    if (!run_step(program.steps[step + 1], {&down, 1}, {g, s.hidden8})) return;
  }
  add_bias(out, m.down_bias, expert);
}

bool Compute::run_step(std::span<const Slice> slices, std::span<const LinearPart> parts, const Activations& x) {
  for (const Slice& slice : slices) {
    auto done = run_slice(slice, parts, x);
    if (done.ok()) continue;
    fail(done.error());
    return false;
  }
  return true;
}

// `biases` has a vector of x.cols for every expert, or is absent.
void Compute::add_bias(Rows x, VectorRef biases, uint32_t expert) {
  if (!biases) return;
  StageTimer timer(m_.profile, Stage::bias);
  const float* bias = model_.vector(biases).data() + expert * x.cols;
  for (size_t t = 0; t < x.rows; ++t) m_.kernels->add(bias, x.cols, x.row(t));
}

void Compute::scale_by_sigmoid(Rows x, Rows gate) {
  if (failed()) return;
  each_token(x.rows, [&](size_t t) { m_.kernels->scale(sigmoid(gate.row(t)[0]), x.cols, x.row(t)); });
}

}  // namespace ridge
