// The operations of diffusion transformers (ops.h), counted.
#include "model/outline.h"

namespace ridge {
namespace {

constexpr uint64_t kGeluFlops = 40;

}  // namespace

void Outline::layer_norm(Rows x, Rows, Rows, float, Rows) {
  use({Op::layer_norm});
  elementwise(Operator::other, 2 * x.rows * x.cols, 8 * x.rows * x.cols);
}

void Outline::gelu(Rows x) {
  use({Op::gelu});
  elementwise(Operator::ffn, 2 * x.rows * x.cols, kGeluFlops * x.rows * x.cols);
}

void Outline::silu(Rows x) { elementwise(Operator::other, 2 * x.rows * x.cols, kExpFlops * x.rows * x.cols); }

void Outline::add_scaled(Rows into, Rows, Rows) {
  use({Op::add_scaled});
  elementwise(Operator::other, 3 * into.rows * into.cols, 2 * into.rows * into.cols);
}

void Outline::scale_rows(Rows x, Rows, Rows) { elementwise(Operator::other, 2 * x.rows * x.cols, x.rows * x.cols); }

void Outline::rotate(Rows x, Rows, uint32_t) {
  use({Op::rope_neox});
  elementwise(Operator::other, 2 * x.rows * x.cols, 3 * x.rows * x.cols);
}

void Outline::pack_keys(Rows k, Rows, uint32_t, Rows) {
  use({Op::store_key_f32, Op::store_value_f32});
  count_other(Operator::attention, {.kv_bytes = 2 * k.rows * k.cols * sizeof(float)});
  elementwise(Operator::attention, 2 * k.rows * k.cols, 0);
}

// Keys and values of a head are read once: they stay in a cache from tile to tile.
void Outline::attend(const AttendCall& call, Rows q, Rows, Rows out) {
  use({Op::attention});
  const uint64_t width = uint64_t{call.heads} * call.head_dim;
  count_other(Operator::attention,
              {.kv_bytes = 2 * call.keys * width * sizeof(float),
               .flops = q.rows * call.keys * call.heads * (4 * uint64_t{call.head_dim} + kExpFlops)});
  elementwise(Operator::attention, q.rows * q.cols + out.rows * out.cols, 0);
}

}  // namespace ridge
