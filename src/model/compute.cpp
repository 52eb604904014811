#include "model/compute.h"

#include <algorithm>

#include "base/units.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

// How much of a matrix product a worker takes at least, in bytes of panels: `pieces` of its share, for a fair end, but
// no less than `least`, since a call of a kernel prepares the activations anew (2 % of the time of `most`).
struct Grain {
  uint64_t pieces, least, most;
};
constexpr uint64_t kPrefillPanels = 4;  // of a share for many tokens, however wide
constexpr Grain kDecodeGrain = {8, 8 * kKiB, 64 * kKiB}, kPrefillGrain = {4, 32 * kKiB, 256 * kKiB};

// Rows of a streamed block are rearranged a few panels at a time, and still in a near cache when they are used. Kernels
// for float activations prepare these anew for each such piece; so it grows with them, as far as that pays: two panels
// of 8192 columns reach 50 of 118 GFLOP/s, eight 99 (docs/measurements.md).
constexpr uint64_t kRearrangedAtOnce = 128 * kKiB, kMostRearrangedAtOnce = 2 * kMiB;

uint64_t rearranged_at_once(Type type, uint64_t cols, uint64_t tokens) {
  if (uses_int8(type, false)) return kRearrangedAtOnce;
  return std::clamp(tokens * cols * sizeof(float), kRearrangedAtOnce, kMostRearrangedAtOnce);
}

// Packed activations are shared out by tokens where a worker's share is at most so many panels and at least so many
// tokens; in multiples of the 12 that lie together.
constexpr size_t kFewPanels = 32, kManyTokens = 192, kTokenGrain = 48;

// Kernels may read so far past the last panel.
constexpr uint64_t kPanelOverread = 64;

size_t panels_of(size_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// g · sigmoid(1.702 g) · (u + 1) is silu(1.702 g) · (u + 1) / 1.702. NaN stays NaN.
void clamp_gate(float* gate, float* up, size_t n) {
  constexpr float kSlope = 1.702f, kLimit = 7.0f;
  for (size_t i = 0; i < n; ++i) {
    const float g = gate[i] > kLimit ? kLimit : gate[i];
    const float u = up[i] > kLimit ? kLimit : (up[i] < -kLimit ? -kLimit : up[i]);
    gate[i] = g * kSlope;
    up[i] = (u + 1.0f) * (1.0f / kSlope);
  }
}

// NaN stays NaN.
void reglu(float* gate, const float* up, size_t n) {
  for (size_t i = 0; i < n; ++i) gate[i] = (gate[i] < 0 ? 0 : gate[i]) * up[i];
}

}  // namespace

uint64_t panel_scratch_bytes(const Program& program, uint64_t tokens) {
  uint64_t bytes = 0;
  for (const Block& b : program.blocks) {
    for (const Piece& p : b.pieces) {
      const StoredTensor& t = program.tensors[p.tensor];
      if (t.layout != Layout::rows) continue;
      const uint64_t at_once = std::min<uint64_t>(rearranged_at_once(t.type, t.cols, tokens),
                                                  panels_bytes(t.type, p.row_end - p.row_begin, t.cols));
      bytes = std::max({bytes, at_once, panel_bytes(t.type, t.cols)});
    }
  }
  uint64_t neurons = 0;  // a panel that is put together from groups
  for (const ExpertGroup& g : program.expert_groups) {
    if (!g.held) continue;
    const Piece& down = program.blocks[program.steps[g.first_step].front().block].pieces.back();
    const StoredTensor& t = program.tensors[down.tensor];
    neurons = std::max<uint64_t>(neurons, g.experts * panel_bytes(t.type, t.cols) + kPanelOverread);
  }
  if (bytes > 0) bytes = std::max(bytes, kRearrangedAtOnce);
  return round_up(std::max(bytes, neurons), 4096);
}

Compute::Compute(const Model& model, const Machinery& machinery, const PassShape& shape, const PassIo& io)
    : Ops(shape), model_(model), m_(machinery), io_(io), trace_(machinery.trace) {
  auto begun = m_.source->begin_pass({.tokens = shape.tokens, .position = shape.position});
  if (!begun.ok()) fail(begun.error());
}

void Compute::fail(Error error) {
  if (!error_) error_ = std::move(error);
  lease_.release();
}

Result<void> Compute::status() const {
  if (error_) return *error_;
  return {};
}

float* Compute::workspace(size_t offset, size_t floats) {
  RIDGE_CHECK(offset + floats <= m_.workspace.size(), "the outline of a pass promised a smaller workspace");
  return m_.workspace.data() + offset;
}

void Compute::part(const std::string&) {}

void Compute::each_token(size_t tokens, FunctionRef<void(size_t token)> job) {
  m_.pool->share(tokens, 1, [&](size_t begin, size_t end, int) {
    for (size_t t = begin; t < end; ++t) job(t);
  });
}

Rows Compute::embed(const Weight& table) {
  StageTimer timer(m_.profile, Stage::embed);
  WorkTrace work(trace_, "embedding");
  Rows x = temp(table.cols);
  // The rope tables of the pass are made here, once for all layers.
  for (size_t kind = 0; kind < model_.rope_tables().size(); ++kind) {
    const RopeConfig& config = model_.rope_tables()[kind].config;
    Rows angles = temp(config.rot);
    if (failed()) return x;
    const std::span<const double> frequencies = model_.rope_frequencies(kind);
    each_token(tokens(),
               [&](size_t t) { rope_table(frequencies, config.magnitude, shape().position + t, angles.row(t)); });
    rope_.push_back(angles);
  }
  if (failed()) return x;
  std::vector<uint32_t> rows(io_.ids.begin(), io_.ids.end());
  auto got = m_.source->gather(table.id, rows, x);
  if (!got.ok()) fail(got.error());
  return x;
}

Rows Compute::rms_norm(Rows x, VectorRef w, float eps) {
  StageTimer timer(m_.profile, Stage::norm);
  Rows out = temp(x.rows, x.cols);
  if (failed()) return out;
  const float* weight = w ? model_.vector(w).data() : nullptr;
  each_token(x.rows, [&](size_t t) { m_.kernels->rms_norm(x.row(t), weight, x.cols, eps, out.row(t)); });
  return out;
}

void Compute::rms_norm_heads(Rows x, VectorRef w, float eps, uint32_t heads) {
  StageTimer timer(m_.profile, Stage::norm);
  if (failed()) return;
  const float* weight = model_.vector(w).data();
  size_t dim = x.cols / heads;
  each_token(x.rows, [&](size_t t) {
    for (size_t h = 0; h < heads; ++h) m_.kernels->rms_norm(x.row(t) + h * dim, weight, dim, eps, x.row(t) + h * dim);
  });
}

void Compute::rope(Rows x, const RopeCall& call) {
  StageTimer timer(m_.profile, Stage::rope);
  if (failed()) return;
  RopeFn turn = call.pairs == RopePairs::neighbours ? m_.kernels->rope_norm : m_.kernels->rope_neox;
  const Rows& angles = rope_[call.table];
  each_token(x.rows, [&](size_t t) {
    for (size_t h = 0; h < call.heads; ++h) turn(x.row(t) + h * call.head_dim, angles.cols, angles.row(t));
  });
}

void Compute::relu(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  if (m_.probe != nullptr) m_.probe->gates(x);
  each_token(x.rows, [&](size_t t) {
    for (float& v : x.row_span(t)) v = v < 0 ? 0 : v;  // NaN stays
  });
}

void Compute::relu_squared(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  if (m_.probe != nullptr) m_.probe->gates(x);
  each_token(x.rows, [&](size_t t) {
    for (float& v : x.row_span(t)) {
      v = v < 0 ? 0 : v;  // NaN stays
      v = v * v;
    }
  });
}

void Compute::glu(Gate gate, Rows g, Rows up) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  if (gate == Gate::silu_clamped) each_token(g.rows, [&](size_t t) { clamp_gate(g.row(t), up.row(t), g.cols); });
  if (gate == Gate::relu && m_.probe != nullptr) m_.probe->gates(g);
  if (gate == Gate::relu) return each_token(g.rows, [&](size_t t) { reglu(g.row(t), up.row(t), g.cols); });
  GluFn act = gate == Gate::gelu_tanh ? m_.kernels->geglu : m_.kernels->swiglu;
  each_token(g.rows, [&](size_t t) { act(g.row(t), up.row(t), g.cols, g.row(t)); });
}

void Compute::add(Rows into, Rows x) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  if (into.rows * into.cols < kWorthSharing) {
    for (size_t t = 0; t < into.rows; ++t) m_.kernels->add(x.row(t), x.cols, into.row(t));
    return;
  }
  each_token(into.rows, [&](size_t t) { m_.kernels->add(x.row(t), x.cols, into.row(t)); });
}

void Compute::scale(Rows x, float factor) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  for (size_t t = 0; t < x.rows; ++t) m_.kernels->scale(factor, x.cols, x.row(t));
}

Q8Rows Compute::quantize(Rows x) {
  Q8Rows x8 = temp_q8(x.rows, x.cols);
  quantize(x, x8);
  return x8;
}

void Compute::quantize(Rows x, const Q8Rows& x8) {
  StageTimer timer(m_.profile, Stage::quantize);
  each_token(x.rows, [&](size_t t) {
    m_.kernels->quantize(x.row(t), x.cols, x8.q + t * x8.q_stride, x8.d + t * x8.d_stride,
                         x8.sums + 2 * t * x8.d_stride);
  });
}

void Compute::linear(Rows x, std::initializer_list<LinearPart> parts) {
  StageTimer timer(m_.profile, Stage::bias, parts.begin()->weight.id);
  product(x, {parts.begin(), parts.size()});
  if (failed()) return;
  for (const LinearPart& part : parts) {
    if (!part.bias) continue;
    const float* bias = model_.vector(part.bias).data();
    each_token(x.rows, [&](size_t t) { m_.kernels->add(bias, part.weight.rows, part.out.row(t)); });
  }
  for (const LinearPart& part : parts) adapt(x, part);
}

// out += scale · B (A x) for each adapter in turn. The rows of a pass do not meet, and each sum runs over its columns
// in order: the bytes do not depend on the pass.
void Compute::adapt(Rows x, const LinearPart& part) {
  for (const Adapter& a : model_.adapters().of(part.weight.id)) {
    StageTimer timer(m_.profile, Stage::product, part.weight.id);
    Frame frame(*this);
    Rows low = temp(x.rows, a.rank), more = temp(x.rows, a.rows);
    const auto multiply = [&](Rows from, uint64_t panels, Rows to) {
      const Work work{.type = Type::F32,
                      .layout = Layout::panels,
                      .weights = model_.adapters().panels(panels),
                      .rows = static_cast<uint32_t>(to.cols),
                      .cols = static_cast<uint32_t>(from.cols),
                      .out = to.data,
                      .out_stride = to.stride};
      run_works({&work, 1}, {from});
    };
    multiply(x, a.down, low);
    each_token(x.rows, [&](size_t t) { m_.kernels->scale(a.scale, a.rank, low.row(t)); });
    multiply(low, a.up, more);
    each_token(x.rows, [&](size_t t) { m_.kernels->add(more.row(t), a.rows, part.out.row(t)); });
  }
}

void Compute::logits(Rows x, const Weight& head, float softcap) {
  StageTimer timer(m_.profile, Stage::head);
  if (io_.hidden.data != nullptr && !failed()) {
    for (size_t t = 0; t < x.rows; ++t) std::copy_n(x.row(t), x.cols, io_.hidden.row(t));
  }
  if (shape().outputs == 0) {  // prompt tokens whose logits nobody reads: the head is not visited
    ++step_;
    lease_.release();
    return;
  }
  Rows last = x.slice_rows(x.rows - shape().outputs, shape().outputs);
  LinearPart part{.weight = head, .out = io_.logits};
  product(last, {&part, 1});
  lease_.release();
  if (failed()) return;
  adapt(last, part);
  if (softcap <= 0) return;
  for (size_t t = 0; t < last.rows; ++t) m_.kernels->softcap(softcap, head.rows, io_.logits.row(t));
}

void Compute::product(Rows x, std::span<const LinearPart> parts) {
  StageTimer timer(m_.profile, Stage::product, parts[0].weight.id);
  const std::vector<Slice>& slices = m_.source->program().steps[step_++];
  if (failed()) return;
  Frame frame(*this);
  Activations in{x};
  for (const LinearPart& part : parts) {
    if (m_.probe != nullptr) m_.probe->input(part.weight.id, x);
  }
  for (const LinearPart& part : parts) {
    if (in.int8.q == nullptr && uses_int8(part.weight.type, m_.exact)) in.int8 = quantize(x);
  }
  for (const LinearPart& part : parts) {
    if (in.packed == nullptr && packs_activations(x.rows, part.weight, m_.exact)) in.packed = pack_activations(x);
  }
  for (const Slice& slice : slices) {
    auto done = run_slice(slice, parts, in);
    if (!done.ok()) return fail(done.error());
  }
}

const float* Compute::pack_activations(Rows x) {
  constexpr size_t kBlock = 12;  // tokens that lie together
  const Rows packed = temp(x.rows, x.cols);
  m_.pool->split(x.rows, kBlock, [&](size_t begin, size_t end, int) {
    m_.kernels->pack_activations(x.row(begin), x.stride, end - begin, x.cols, packed.data + begin * x.cols);
  });
  return packed.data;
}

Result<void> Compute::run_slice(const Slice& slice, std::span<const LinearPart> parts, const Activations& x) {
  trace_.between();
  if (!lease_.holds(slice.block)) {
    StageTimer timer(m_.profile, Stage::storage);
    lease_.release();
    lease_ = RIDGE_TRY(m_.source->acquire(slice.block));
    trace_.resume();
  }
  const Program& program = m_.source->program();
  constexpr size_t kMostParts = 8;
  Work works[kMostParts];
  RIDGE_CHECK(slice.piece_count <= kMostParts, "a linear step has at most eight matrices");
  for (uint32_t i = 0; i < slice.piece_count; ++i) {
    const Piece& piece = program.blocks[slice.block].pieces[slice.first_piece + i];
    const PieceView& view = lease_.pieces()[slice.first_piece + i];
    auto part =
        std::find_if(parts.begin(), parts.end(), [&](const LinearPart& p) { return p.weight.id == piece.tensor; });
    RIDGE_CHECK(part != parts.end(), "the program's step belongs to this linear step");
    works[i] = {.type = part->weight.type,
                .layout = view.layout,
                .weights = view.data,
                .rows = piece.row_end - piece.row_begin,
                .cols = part->weight.cols,
                .out = part->out.data + piece.row_begin,
                .out_stride = part->out.stride};
  }
  run_works({works, slice.piece_count}, x);
  trace_.block(slice.block);
  return {};
}

// All panels of the slice, end to end, are shared out to the workers; or, of packed activations and few panels, the
// tokens: then each worker reads its own and all panels, instead of all activations for each part of so few panels.
void Compute::run_works(std::span<const Work> works, const Activations& x) {
  uint64_t bytes = 0, count = 0;
  bool rearranged = false;
  for (const Work& w : works) {
    bytes += panels_bytes(w.type, w.rows, w.cols);
    count += panels_of(w.rows);
    rearranged = rearranged || w.layout == Layout::rows;
  }
  const uint64_t workers = static_cast<uint64_t>(m_.pool->size());
  if (x.packed != nullptr && !rearranged && count <= kFewPanels * workers && x.rows.rows >= kManyTokens * workers) {
    return m_.pool->share(x.rows.rows, kTokenGrain, [&](size_t begin, size_t end, int) {
      const Rows rows = x.rows.slice_rows(begin, end - begin);
      for (Work work : works) {
        work.out += begin * work.out_stride;
        run_panels(work, 0, panels_of(work.rows), {rows, {}, x.packed + begin * rows.cols}, {});
      }
    });
  }
  const Grain& g = x.rows.rows == 1 ? kDecodeGrain : kPrefillGrain;
  const uint64_t share = bytes / workers;
  const uint64_t grain_bytes = std::clamp(share / g.pieces, g.least, g.most);
  uint64_t grain = std::max<uint64_t>(1, grain_bytes * count / std::max<uint64_t>(bytes, 1));
  if (x.rows.rows > 1) grain = std::max(grain, std::min(kPrefillPanels, count / workers / g.pieces));
  const size_t scratch = m_.panels.size() / workers;
  m_.pool->share(count, grain, [&](size_t begin, size_t end, int worker) {
    size_t start = 0;
    for (const Work& work : works) {
      size_t panels = panels_of(work.rows);
      size_t first = std::max(begin, start), last = std::min(end, start + panels);
      if (first < last) {
        run_panels(work, first - start, last - start, x,
                   m_.panels.subspan(static_cast<size_t>(worker) * scratch, scratch));
      }
      start += panels;
    }
  });
}

void Compute::run_panels(const Work& work, size_t first_panel, size_t last_panel, const Activations& x,
                         std::span<uint8_t> scratch) {
  size_t type = static_cast<size_t>(work.type);
  MatmulFn multiply = uses_int8(work.type, m_.exact) ? m_.kernels->matmul_q8[type] : m_.kernels->matmul_float[type];
  MatmulArgs args{};
  args.cols = work.cols;
  args.tokens = x.rows.rows;
  args.x = x.rows.data;
  args.x_stride = x.rows.stride;
  args.x8 = x.int8;
  args.x_packed = x.packed;
  args.out_stride = work.out_stride;
  if (work.layout == Layout::panels) {
    args.panels = work.weights + first_panel * panel_bytes(work.type, work.cols);
    args.rows = std::min<size_t>(work.rows, last_panel * kPanelRows) - first_panel * kPanelRows;
    args.out = work.out + first_panel * kPanelRows;
    return multiply(args);
  }
  // Rows as the file has them: rearranged into this core's cache and used at once.
  const size_t stride = row_bytes(work.type, work.cols), panel = panel_bytes(work.type, work.cols);
  const size_t at_once =
      args.tokens == 1
          ? 1
          : std::max<size_t>(1,
                             std::min(scratch.size(), rearranged_at_once(work.type, work.cols, args.tokens)) / panel);
  for (size_t p = first_panel; p < last_panel; p += at_once) {
    const size_t end = std::min(p + at_once, last_panel);
    for (size_t i = p; i < end; ++i) {
      m_.kernels->pack[type]({.type = work.type,
                              .rows = work.weights + i * kPanelRows * stride,
                              .row_stride = stride,
                              .row_count = std::min<size_t>(kPanelRows, work.rows - i * kPanelRows),
                              .cols = work.cols,
                              .panel = scratch.data() + (i - p) * panel});
    }
    args.panels = scratch.data();
    args.rows = std::min<size_t>(work.rows, end * kPanelRows) - p * kPanelRows;
    args.out = work.out + p * kPanelRows;
    multiply(args);
  }
}

}  // namespace ridge
