#include "model/operators.h"

namespace ridge {
namespace {

struct Prefix {
  std::string_view name;
  Operator op;
};

// Longer names before their beginnings.
constexpr Prefix kPrefixes[] = {
    {"attn_output", Operator::output},
    {"attn_kv_b", Operator::attention},
    {"attn_k_b", Operator::attention},
    {"attn_v_b", Operator::attention},
    {"attn_", Operator::qkv},
    {"ffn_gate_inp_shexp", Operator::ffn},
    {"ffn_gate_inp", Operator::experts},
    {"ffn_gate_exps", Operator::experts},
    {"ffn_up_exps", Operator::experts},
    {"ffn_down_exps", Operator::experts},
    {"ffn_", Operator::ffn},
};

// Of a stage outside of all products.
Operator operator_of(Stage stage) {
  switch (stage) {
    case Stage::attention:
      return Operator::attention;
    case Stage::glu:
      return Operator::ffn;
    case Stage::head:
      return Operator::head;
    default:
      return Operator::other;
  }
}

// Of diffusion transformers and text adapters: "blocks.3.self_attn.q_proj.weight".
Operator operator_of_module(std::string_view tensor) {
  auto has = [&](std::string_view part) { return tensor.find(part) != std::string_view::npos; };
  if (has(".q_proj.") || has(".k_proj.") || has(".v_proj.")) return Operator::qkv;
  if (has(".output_proj.") || has(".o_proj.")) return Operator::output;
  return has(".mlp.") ? Operator::ffn : Operator::other;
}

}  // namespace

Operator operator_of(std::string_view tensor) {
  if (tensor == "output.weight") return Operator::head;
  constexpr std::string_view kLayer = "blk.";
  if (!tensor.starts_with(kLayer)) return operator_of_module(tensor);
  const size_t dot = tensor.find('.', kLayer.size());
  if (dot == std::string_view::npos) return Operator::other;
  const std::string_view name = tensor.substr(dot + 1);
  for (const Prefix& p : kPrefixes) {
    if (name.starts_with(p.name)) return p.op;
  }
  return Operator::other;
}

Operator operator_of(const Program& program, TensorId tensor, TensorId head) {
  if (tensor == head) return Operator::head;
  while (tensor > 0 && program.tensors[tensor].name.empty()) --tensor;
  return operator_of(program.tensors[tensor].name);
}

OperatorTimes times_by_operator(const StageProfile& profile, const Program& program, TensorId head) {
  OperatorTimes times{};
  auto add = [&](Operator op, std::chrono::nanoseconds time) { times[static_cast<size_t>(op)] += time; };
  for (const auto& [tensor, time] : profile.steps()) {
    add(operator_of(program, tensor, head), time);
  }
  for (size_t i = 0; i < kStageCount; ++i) {
    const Stage stage = static_cast<Stage>(i);
    add(operator_of(stage), profile.loose_time(stage));
  }
  return times;
}

}  // namespace ridge
