// Attention without order: every row of q sees every key. On the kernel of causal attention: the rows of a tile stand
// where the heads of one token do, and all of them see the same positions.
//
//   Matrix<float> packed = …;                                            // [heads, packed_floats(keys, head_dim)]
//   pack_rows(kernels, pool, k, v, heads, packed);
//   attend_rows(kernels, pool, scratch, {.heads = heads, .head_dim = dim, .keys = n, .scale = s}, q, packed, out);
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/ops.h"

namespace ridge {

// Scratch of all workers for attend_rows().
uint64_t attend_floats(uint32_t head_dim, int workers);

void pack_rows(const Kernels& kernels, ThreadPool& pool, Rows k, Rows v, uint32_t heads, Rows packed);
void attend_rows(const Kernels& kernels, ThreadPool& pool, std::span<float> scratch, const AttendCall& call, Rows q,
                 Rows packed, Rows out);

}  // namespace ridge
