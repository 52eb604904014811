#include "analyze/bench_stages.h"

#include <algorithm>
#include <map>
#include <set>

namespace ridge {
namespace {

constexpr const char* kOther = "other";

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::embed:
      return "embedding, rope angles";
    case Stage::norm:
      return "norms";
    case Stage::rope:
      return "rope";
    case Stage::attention:
      return "attention";
    case Stage::glu:
      return "gate activation";
    case Stage::residual:
      return "residual sums";
    case Stage::quantize:
      return "activations to int8";
    case Stage::storage:
      return "waiting for storage";
    case Stage::bias:
      return "biases";
    case Stage::head:
      return "head";
    case Stage::sampling:
      return "sampling";
    case Stage::product:
    case Stage::other:
      break;
  }
  return kOther;
}

// "blk.12.ffn_gate.weight" → "ffn_gate".
std::string kind_of(std::string name) {
  constexpr std::string_view kLayer = "blk.", kSuffix = ".weight";
  if (name.starts_with(kLayer)) {
    size_t dot = name.find('.', kLayer.size());
    if (dot != std::string::npos) name.erase(0, dot + 1);
  }
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

// What the product that begins with this tensor multiplies: all tensors of its step.
std::string product_name(const Engine& engine, TensorId first) {
  const Program& program = engine.plan().program;
  if (first == engine.model().head().id) return "head";
  std::string name = kind_of(program.tensors[first].name);
  for (const std::vector<Slice>& step : program.steps) {
    std::set<TensorId> members;
    for (const Slice& slice : step) {
      const std::vector<Piece>& pieces = program.blocks[slice.block].pieces;
      for (uint32_t i = 0; i < slice.piece_count; ++i) members.insert(pieces[slice.first_piece + i].tensor);
    }
    if (!members.contains(first)) continue;
    for (TensorId member : members) {
      if (member != first) name += " " + kind_of(program.tensors[member].name);
    }
    break;
  }
  return name;
}

}  // namespace

std::vector<StageTime> stage_times(const StageProfile& profile, const Engine& engine, uint64_t tokens) {
  std::map<std::string, double> seconds;
  auto add = [&](const std::string& name, std::chrono::nanoseconds time) {
    seconds[name] += std::chrono::duration<double>(time).count();
  };
  for (size_t i = 0; i < kStageCount; ++i) {
    Stage stage = static_cast<Stage>(i);
    if (stage != Stage::product) add(name_of(stage), profile.time(stage));
  }
  for (const auto& [tensor, time] : profile.products()) add(product_name(engine, tensor), time);
  double total = 0;
  for (const auto& [name, s] : seconds) total += s;
  std::vector<StageTime> rows;
  if (total <= 0 || tokens == 0) return rows;
  constexpr double kWorthARow = 1e-3;
  double rest = 0;
  auto row = [&](const std::string& name, double s) {
    rows.push_back({name, s * 1e6 / static_cast<double>(tokens), s / total});
  };
  for (const auto& [name, s] : seconds) {
    if (name == kOther || s < kWorthARow * total) {
      rest += s;
    } else {
      row(name, s);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const StageTime& a, const StageTime& b) { return a.share > b.share; });
  row(kOther, rest);
  return rows;
}

}  // namespace ridge
