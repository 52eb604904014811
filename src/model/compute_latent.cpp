// Compute::latent_attention: the step's slices one after the other, each with whole heads.
#include <algorithm>

#include "model/latent_attention.h"

namespace ridge {

void Compute::latent_attention(const LatentCall& call, Rows q, Rows kv, Rows out) {
  StageTimer timer(m_.profile, Stage::attention, (call.kv_b ? call.kv_b : call.k_b).id);
  const std::vector<Slice>& slices = m_.source->program().steps[step_++];
  if (failed()) return;
  Frame frame(*this);
  LatentTemps temps = latent_temps(call, m_.exact);
  for (size_t t = 0; t < temps.merged.rows; ++t) std::fill_n(temps.merged.row(t), temps.merged.cols, 0.0f);
  KvCache& cache = *m_.cache;
  size_t kind = static_cast<size_t>(cache.type());
  each_token(kv.rows, [&](size_t t) {
    size_t slot = (shape().position + t) % cache.capacity(call.layer);
    m_.kernels->store_key[kind](kv.row(t), call.latent + call.rope, cache.key(call.layer, 0), slot);
    m_.kernels->store_value[kind](kv.row(t), call.latent, cache.value(call.layer, 0), slot);
  });
  LatentContext context{.call = call,
                        .kernels = *m_.kernels,
                        .pool = *m_.pool,
                        .cache = cache,
                        .shape = shape(),
                        .q = q,
                        .out = out,
                        .exact = m_.exact,
                        .scratch = m_.latent,
                        .attention = m_.attention};
  for (const Slice& slice : slices) {
    auto heads = latent_slice(call, slice);
    if (!heads.ok()) return fail(heads.error());
    auto begin = m_.trace ? TraceClock::now() : TraceClock::time_point{};
    if (shape().role == TokenRole::generated) {
      attend_absorbed(context, heads.value(), temps);
    } else {
      attend_expanded(context, heads.value(), temps);
    }
    if (m_.trace) m_.trace->add({Lane::compute, slice.block, begin, TraceClock::now(), 0});
  }
}

// The heads of a slice, and where their weights are while the lease lives.
Result<LatentSlice> Compute::latent_slice(const LatentCall& call, const Slice& slice) {
  if (!lease_.holds(slice.block)) {
    StageTimer timer(m_.profile, Stage::storage);
    lease_.release();
    lease_ = RIDGE_TRY(m_.source->acquire(slice.block));
  }
  const Block& block = m_.source->program().blocks[slice.block];
  auto rows_of = [&](uint32_t i, const Weight& weight) {
    const PieceView& view = lease_.pieces()[slice.first_piece + i];
    return HeadRows{.type = weight.type, .layout = view.layout, .data = view.data, .cols = weight.cols};
  };
  LatentSlice heads;
  heads.joint = static_cast<bool>(call.kv_b);
  if (heads.joint) {
    heads.k = heads.v = rows_of(0, call.kv_b);
    heads.k_stride = heads.v_stride = call.nope + call.value;
    heads.v_first = call.nope;
  } else {
    heads.k = rows_of(0, call.k_b);
    heads.v = rows_of(1, call.v_b);
    heads.k_stride = call.latent;
    heads.v_stride = call.value;
  }
  const Piece& first = block.pieces[slice.first_piece];
  heads.head_begin = first.row_begin / heads.k_stride;
  heads.head_end = first.row_end / heads.k_stride;
  return heads;
}

}  // namespace ridge
