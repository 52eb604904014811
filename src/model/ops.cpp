#include "model/ops.h"

#include "base/units.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr size_t kRowAlign = 16;  // floats: a row starts on a cache line

}  // namespace

size_t Ops::take(size_t floats) {
  size_t offset = top_;
  top_ += round_up(floats, kRowAlign);
  return offset;
}

Rows Ops::temp(size_t rows, size_t width) {
  size_t stride = round_up(width, kRowAlign);
  size_t offset = take(rows * stride);
  return Rows(workspace(offset, rows * stride), rows, width, stride);
}

bool Ops::packs_activations(size_t rows, const Weight& weight, bool exact) const {
  constexpr size_t kLeastRows = 48, kLeastOutputs = 512;
  return shape_.packed && rows >= kLeastRows && weight.rows >= kLeastOutputs && !uses_int8(weight.type, exact);
}

Q8Rows Ops::temp_q8(size_t rows, size_t cols) {
  size_t blocks = (cols + 31) / 32;
  Q8Rows out{};
  out.q_stride = round_up(cols, 64);
  out.d_stride = round_up(blocks, kRowAlign);
  size_t q_floats = rows * out.q_stride / sizeof(float), d_floats = rows * out.d_stride;
  size_t offset = take(q_floats + 3 * d_floats);
  float* base = workspace(offset, q_floats + 3 * d_floats);
  out.q = reinterpret_cast<int8_t*>(base);
  out.d = base + q_floats;
  out.sums = reinterpret_cast<int32_t*>(base + q_floats + d_floats);
  return out;
}

LatentTemps Ops::latent_temps(const LatentCall& call, bool exact) {
  constexpr size_t kChunk = kAttentionChunk;
  LatentTemps temps;
  if (shape().role == TokenRole::generated) {
    temps.queries = temp(call.heads * size_t{call.latent + call.rope});
    temps.mixed = temp(call.heads * size_t{call.latent});
    return temps;
  }
  temps.latents = temp(kChunk, call.latent);
  temps.ropes = temp(kChunk, call.rope);
  const Weight& values = call.kv_b ? call.kv_b : call.v_b;
  if (uses_int8(values.type, exact)) temps.latents8 = temp_q8(kChunk, call.latent);
  temps.merged = temp(2 * size_t{call.heads});
  return temps;
}

Ops::ExpertScratch Ops::expert_scratch(size_t tokens, size_t used, const ExpertMatrices& m, bool exact) {
  const Weight firsts[] = {m.gate, m.up, m.gate_up};
  const size_t width = m.gate_up ? m.gate_up.cols : m.gate.cols;
  bool int8 = false, floats = false;
  for (const Weight& w : firsts) {
    if (!w) continue;
    (uses_int8(w.type, exact) ? int8 : floats) = true;
  }
  ExpertScratch s;
  if (int8) {
    s.all8 = temp_q8(tokens, width);
    s.picked8 = temp_q8(tokens, width);
  }
  if (floats) s.picked = temp(tokens, width);
  s.first = temp(tokens, m.gate_up ? m.gate_up.rows : m.gate.rows + m.up.rows);
  if (uses_int8(m.down.type, exact)) s.hidden8 = temp_q8(tokens, m.down.cols);
  s.outputs = temp(tokens * used, m.down.rows);
  return s;
}

Ops::NeuronScratch Ops::neuron_scratch(size_t tokens, const NeuronGroups& m, bool exact) {
  const size_t all = size_t{m.count} * m.neurons;
  NeuronScratch s;
  if (m.up && uses_int8(m.up.type, exact)) s.x8 = temp_q8(tokens, m.up.cols);
  if (m.up) s.up = temp(tokens, all);
  s.hidden = temp(tokens, all);
  if (uses_int8(m.down.type, exact)) s.hidden8 = temp_q8(tokens, all);
  return s;
}

size_t packed_floats(size_t rows, size_t head_dim) { return 2 * round_up(rows, kPanelRows) * head_dim; }

bool uses_int8(Type type, bool exact) { return !exact && !type_info(type).is_float; }

}  // namespace ridge
