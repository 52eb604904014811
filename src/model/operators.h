// Which operator a matrix belongs to, by the name that GGUF gives it: "blk.3.attn_q.weight" → Operator::qkv. Costs
// (outline.h) and times (stage_profile.h) are sorted by it, so both sides of a roofline's point mean the same thing.
//
// Not for: what the head does (it may be the embedding's tensor), which callers know by themselves.
//
//   Operator op = operator_of(program.tensors[id].name);
//   OperatorTimes times = times_by_operator(profile, program, model.head().id);
#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "model/stage_profile.h"
#include "program/program.h"

namespace ridge {

// Projections to queries, keys and values (and to latents) are qkv; what latent attention expands or absorbs is
// attention; routers and routed experts are experts, shared ones ffn. A name that is none of these: other.
Operator operator_of(std::string_view tensor);

// Of a tensor of a program: matrices of a stack have the name of the first, and the head may be the embedding's tensor.
Operator operator_of(const Program& program, TensorId tensor, TensorId head);

// The time of a profile by operator; `other` is what is left. Waiting for a streamed block, and turning activations to
// int8, count to the product that needs it.
using OperatorTimes = std::array<std::chrono::nanoseconds, kOperators>;
OperatorTimes times_by_operator(const StageProfile& profile, const Program& program, TensorId head);

}  // namespace ridge
