// The operations of diffusion transformers (ops.h), on real numbers.
#include "kernels/math.h"
#include "model/attend.h"
#include "model/compute.h"

namespace ridge {
void Compute::layer_norm(Rows x, Rows scale, Rows shift, float eps, Rows out) {
  StageTimer timer(m_.profile, Stage::norm);
  if (failed()) return;
  each_token(x.rows,
             [&](size_t t) { m_.kernels->layer_norm(x.row(t), scale.data, shift.data, x.cols, eps, out.row(t)); });
}

void Compute::gelu(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  each_token(x.rows, [&](size_t t) { m_.kernels->gelu(x.cols, x.row(t)); });
}

void Compute::silu(Rows x) {
  StageTimer timer(m_.profile, Stage::glu);
  if (failed()) return;
  each_token(x.rows, [&](size_t t) {
    for (float& v : x.row_span(t)) v = silu_f32(v);
  });
}

void Compute::add_scaled(Rows into, Rows factors, Rows x) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  each_token(into.rows, [&](size_t t) { m_.kernels->add_scaled(factors.data, x.row(t), x.cols, into.row(t)); });
}

void Compute::scale_rows(Rows x, Rows factors, Rows out) {
  StageTimer timer(m_.profile, Stage::residual);
  if (failed()) return;
  for (size_t r = 0; r < x.rows; ++r) {
    const float factor = factors.row(r)[0];
    for (size_t i = 0; i < x.cols; ++i) out.row(r)[i] = factor * x.row(r)[i];
  }
}

void Compute::rotate(Rows x, Rows angles, uint32_t heads) {
  StageTimer timer(m_.profile, Stage::rope);
  if (failed()) return;
  RIDGE_CHECK(x.rows <= angles.rows && x.cols == heads * angles.cols, "there is an angle for every row");
  each_token(x.rows, [&](size_t t) {
    for (size_t h = 0; h < heads; ++h) m_.kernels->rope_neox(x.row(t) + h * angles.cols, angles.cols, angles.row(t));
  });
}

void Compute::pack_keys(Rows k, Rows v, uint32_t heads, Rows packed) {
  StageTimer timer(m_.profile, Stage::attention);
  if (failed()) return;
  pack_rows(*m_.kernels, *m_.pool, k, v, heads, packed);
}

void Compute::attend(const AttendCall& call, Rows q, Rows packed, Rows out) {
  StageTimer timer(m_.profile, Stage::attention);
  if (failed()) return;
  attend_rows(*m_.kernels, *m_.pool, m_.attention, call, q, packed, out);
}

}  // namespace ridge
